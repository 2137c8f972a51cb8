#define BOOST_TEST_MODULE agreement
#include <boost/test/unit_test.hpp>

#include "calib/agreement.hpp"

using namespace rackcast;
using namespace rackcast::calib;

namespace {

Measurement row(const char* op, int tokens, double us, bool ok = true) {
  Measurement m;
  m.op = op;
  m.implementation = "portable";
  m.shape = kernels::Shape().set("tokens", tokens);
  m.time_us = {20, us, 0, us, us, us};
  m.ok = ok;
  return m;
}

}  // namespace

BOOST_AUTO_TEST_CASE(short_times_may_differ_by_more_than_long_ones) {
  const std::vector<Measurement> a = {row("x", 1, 10), row("x", 2, 100), row("x", 3, 100)};
  const std::vector<Measurement> b = {row("x", 1, 10.7), row("x", 2, 107), row("x", 3, 97.5)};
  const auto differences = compare_runs(a, b, {});
  BOOST_REQUIRE(differences.size() == 3u);
  for (const Difference& d : differences) BOOST_TEST(d.inside == (d.a->shape.number("tokens") != 2), d.a->shape.key());
}

BOOST_AUTO_TEST_CASE(rows_that_failed_or_that_only_one_run_has_are_not_compared_and_the_last_row_of_a_point_counts) {
  const std::vector<Measurement> a = {row("x", 1, 50), row("x", 1, 100), row("x", 2, 100, false), row("x", 3, 100)};
  const std::vector<Measurement> b = {row("x", 1, 100), row("x", 2, 100), row("x", 4, 100)};
  const auto differences = compare_runs(a, b, {});
  BOOST_REQUIRE(differences.size() == 1u);
  BOOST_TEST(differences.front().change == 0);
}

BOOST_AUTO_TEST_CASE(the_table_gives_each_family_its_share_and_names_what_is_outside) {
  const std::vector<Measurement> a = {row("x", 1, 100), row("x", 2, 100), row("y", 1, 100)};
  const std::vector<Measurement> b = {row("x", 1, 120), row("x", 2, 100), row("y", 1, 101)};
  const std::string table = agreement_table(compare_runs(a, b, {}), 10);
  BOOST_TEST(table.find("50.0%") != std::string::npos, table);
  BOOST_TEST(table.find("+20.0%  x cold tokens=1") != std::string::npos, table);
  BOOST_TEST(table.find("y cold") == std::string::npos, table);
}
