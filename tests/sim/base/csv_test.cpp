#define BOOST_TEST_MODULE csv
#include "sim/base/csv.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

#include "sim/base/error.hpp"

using namespace rackcast;

static std::string problem_of(std::string_view text) {
  try {
    CsvTable::parse("t.csv", text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

BOOST_AUTO_TEST_CASE(quotes_hold_commas_newlines_and_doubled_quotes) {
  const CsvTable t = CsvTable::parse("t.csv", "\xEF\xBB\xBF" "a,b\r\n\"x,\"\"y\"\"\nz\",2\r\n\n3,4");
  BOOST_TEST(t.rows() == 2u);
  BOOST_TEST(t.text(0, "a") == "x,\"y\"\nz");
  BOOST_TEST(t.line(0) == 2);
  BOOST_TEST(t.line(1) == 5);
  BOOST_TEST(t.number(1, "b").value() == 4.0);
  BOOST_TEST(!t.number(1, "absent").has_value());
}

BOOST_AUTO_TEST_CASE(every_fault_names_its_line) {
  BOOST_TEST(problem_of("") == "t.csv:1: no header row");
  BOOST_TEST(problem_of("a,a\n") == "t.csv:1: a: the column appears twice");
  BOOST_TEST(problem_of("a,b\n1\n") == "t.csv:2: 1 cells, the header has 2 columns");
  BOOST_TEST(problem_of("a\n1\n\"x\n") == "t.csv:3: a quote is opened here and never closed");
  BOOST_TEST(problem_of(std::string_view("a\nx\0y\n", 6)) == "t.csv:2: a NUL byte; is this a text file?");
}

BOOST_AUTO_TEST_CASE(a_cell_that_is_not_a_number_is_refused_where_it_stands) {
  const CsvTable t = CsvTable::parse("t.csv", "n\n1.5\nnan\n1e999\n12x\n\n");
  BOOST_TEST(t.number(0, "n").value() == 1.5);
  BOOST_CHECK_THROW(t.integer(0, "n"), UserError);
  for (const std::size_t row : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) BOOST_CHECK_THROW(t.number(row, "n"), UserError);
  BOOST_CHECK_THROW(t.require({"n", "m"}), UserError);
}
