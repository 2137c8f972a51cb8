#define BOOST_TEST_MODULE expression
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <map>

#include "sim/base/error.hpp"
#include "sim/base/expression.hpp"

using namespace rackcast;
namespace data = boost::unit_test::data;

namespace {

const std::map<std::string, ExpressionValue, std::less<>> names = {
    {"prefill.engines", 8.0}, {"prefill.dep", 4.0}, {"decode.dep", 32.0}, {"rack.gpus", 72.0}, {"eplb.policy", std::string("none")}};

ExpressionValue lookup(std::string_view name) {
  const auto found = names.find(name);
  if (found == names.end()) throw UserError("no such name: " + std::string(name));
  return found->second;
}

double number(const std::string& text) { return std::get<double>(Expression::parse(text).value(lookup)); }

struct Case { std::string text; double value; };
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.text; }
struct Bad { std::string text; std::string message; };
std::ostream& operator<<(std::ostream& out, const Bad& b) { return out << b.text; }

const Case cases[] = {
    {"1 + 2 * 3", 7}, {"(1 + 2) * 3", 9}, {"10 - 4 - 3", 3}, {"100 / 10 / 5", 2}, {"7 % 4", 3}, {"-2 * -3", 6}, {"--2", 2},
    {"2 - -1", 3}, {"1.5e3", 1500}, {"16K", 16384}, {"2M", 2097152}, {"min(3, 1, 2)", 1}, {"max(1, 2 * 3)", 6},
    {"floor(2.7) + ceil(2.1)", 5}, {"abs(-3)", 3}, {"sqrt(16)", 4}, {"log(exp(2))", 2},
    {"prefill.engines * prefill.dep + decode.dep <= rack.gpus", 1}, {"prefill.engines * prefill.dep + decode.dep > rack.gpus", 0},
    {"eplb.policy == 'none'", 1}, {"eplb.policy != \"none\"", 0}, {"1 < 2 and 2 < 3", 1}, {"1 < 2 and 2 > 3", 0},
    {"0 or 5", 1}, {"not 0 and not not 3", 1}, {"1 or 0 and 0", 1}, {"true and not false", 1},
    {"1 or 1 / 0", 1}, {"0 and missing", 0},  // the right side is not looked at
};

const Bad bad[] = {
    {"", "column 1: the expression is empty"},
    {"1 +", "column 4: a value is missing before the end"},
    {"(1 + 2", "column 7: ')' is missing before the end"},
    {"1 2", "column 3: '2' is not expected here"},
    {"a = 2", "column 3: write == to compare"},
    {"a ; b", "column 3: ';' is not expected here"},
    {"1 < 2 < 3", "column 7: write 'a < b and b < c' instead of a chain"},
    {"mim(1, 2)", "column 1: 'mim' is no function; did you mean 'min'?"},
    {"system(1)", "column 1: 'system' is no function (min, max, abs, floor, ceil, sqrt, log, exp are)"},
    {"abs(1, 2)", "column 1: abs takes one value"},
    {"5 ms", "column 3: 'ms' is not expected here"},
    {"5ms", "column 2: a number may end in K or M; units are not written here (base units: s, bytes, USD, J)"},
    {"a == 'x", "column 6: the text has no closing quote"},
    {"and 1", "column 1: a value is missing before 'and'"},
};

const Bad failing[] = {
    {"1 / (2 - 2)", "column 3: divides by 0"},
    {"eplb.policy + 1", "column 13: '+' needs numbers; 'none' is a text"},
    {"eplb.policy == 1", "column 13: compares a number with a text"},
    {"nothing > 1", "no such name: nothing"},
    {"'text'", "column 1: 'condition' needs numbers; 'text' is a text"},
};

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const UserError& error) {
    return error.problems().at(0).rule;
  }
  return "no error";
}

}  // namespace

BOOST_DATA_TEST_CASE(an_expression_has_its_value, data::make(cases), c) { BOOST_TEST(number(c.text) == c.value, boost::test_tools::tolerance(1e-15)); }

BOOST_DATA_TEST_CASE(a_text_that_is_none_is_refused_with_its_column, data::make(bad), b) {
  BOOST_TEST(message_of([&] { Expression::parse(b.text); }) == b.message);
}

BOOST_DATA_TEST_CASE(a_value_that_does_not_exist_is_refused_with_its_column, data::make(failing), f) {
  BOOST_TEST(message_of([&] { Expression::parse(f.text).holds(lookup); }) == f.message);
}

BOOST_AUTO_TEST_CASE(names_are_listed_once) {
  const Expression e = Expression::parse("a.b + c * a.b + max(d[0].e, 2)");
  BOOST_TEST(e.names() == (std::vector<std::string>{"a.b", "c", "d[0].e"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(depth_and_length_are_bounded) {
  BOOST_CHECK_NO_THROW(Expression::parse(std::string(60, '(') + "1" + std::string(60, ')')));
  BOOST_CHECK_THROW(Expression::parse(std::string(100, '(') + "1" + std::string(100, ')')), UserError);
  BOOST_CHECK_THROW(Expression::parse(std::string(5000, '1')), UserError);
}
