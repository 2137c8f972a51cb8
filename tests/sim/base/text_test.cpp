#define BOOST_TEST_MODULE text
#include <boost/test/unit_test.hpp>

#include "sim/base/error.hpp"
#include "sim/base/text.hpp"
#include "sim/base/text_table.hpp"

using namespace rackcast;

BOOST_AUTO_TEST_CASE(a_near_match_is_the_closest_name_and_never_a_far_one) {
  const std::vector<std::string> names = {"decode", "prefill", "aggregated", "dep", "tp"};
  BOOST_TEST(near_match("decdoe", names) == "did you mean 'decode'?");
  BOOST_TEST(near_match("prefil", names) == "did you mean 'prefill'?");
  BOOST_TEST(near_match("dpe", names) == "did you mean 'dep'?");
  BOOST_TEST(near_match("experts", names) == "");
  BOOST_TEST(near_match("", names) == "");
  BOOST_TEST(near_match(std::string(1000, 'a'), names) == "");
}

BOOST_AUTO_TEST_CASE(the_shortest_number_reads_back_to_the_same_bits) {
  for (const double value : {0.1, 1.0 / 3, 1e300, 5e-324, 123456789.0, -2.5e-7, 16384.0}) BOOST_TEST(parse_double(shortest(value)).value == value);
  BOOST_TEST(shortest(16384.0) == "16384");
  BOOST_TEST(shortest(0.1) == "0.1");
}

BOOST_AUTO_TEST_CASE(input_is_shown_short_and_harmless) {
  BOOST_TEST(quote_input("abc") == "'abc'");
  BOOST_TEST(quote_input("a\x1b[31m\n") == "'a\\x1b[31m\\x0a'");
  BOOST_TEST(quote_input("caf\xc3\xa9 \xff") == "'caf\xc3\xa9 \\xff'");
  BOOST_TEST(quote_input(std::string(500, 'x')).size() < 70U);
}

BOOST_AUTO_TEST_CASE(columns_line_up_and_numbers_stand_right) {
  TextTable table({"name", ">GiB"});
  table.add({"gb300", "277.5"});
  table.add({"caf\xc3\xa9", "1"});
  BOOST_TEST(table.text() == "name     GiB\ngb300  277.5\ncaf\xc3\xa9       1\n");
  BOOST_CHECK_THROW(table.add({"one"}), InternalError);
}
