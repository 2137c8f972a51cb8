#define BOOST_TEST_MODULE validation
#include "analysis/validation.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

using namespace rackcast;

namespace {

ValidationItem item(const std::string& id, const std::string& metric, double published, std::optional<double> predicted, std::vector<std::string> tags = {}) {
  ValidationItem i;
  i.id = id;
  i.metric = metric;
  i.published = published;
  i.predicted = predicted;
  i.tags = std::move(tags);
  if (!predicted) i.refused = "no such engine";
  return i;
}

}  // namespace

BOOST_AUTO_TEST_CASE(errors_are_fractions_of_the_published_value_and_the_bias_keeps_its_sign) {
  const MetricErrors e = errors_of({item("a", "tpot", 10, 11), item("b", "tpot", 10, 8), item("c", "tpot", 10, 13), item("d", "ttft", 1, 9)}, "tpot");
  BOOST_TEST(e.n == 3);
  BOOST_TEST(e.median_abs == 0.2, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(e.mean_abs == 0.2, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(e.bias == 0.2 / 3, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(fitted_items_are_no_evidence_while_others_exist) {
  std::vector<ValidationItem> items{item("a", "step", 10, 10), item("b", "step", 10, 12)};
  items[0].fitted = true;
  BOOST_TEST(errors_of(items, "step").n == 1);
  items[1].fitted = true;
  BOOST_TEST(errors_of(items, "step").n == 2);
}

BOOST_AUTO_TEST_CASE(a_band_is_widened_by_the_spread_of_its_own_item) {
  ValidationItem loaded = item("a", "tpot", 10, 8), alone = item("b", "tpot", 10, 8);
  loaded.lo = alone.lo = 7;
  loaded.hi = alone.hi = 9;
  alone.spread = run_to_run_spread_low_load;
  BOOST_TEST(inside_band({loaded, alone}).value() == 0.5);
  BOOST_TEST(half_band_width({loaded}).value() == 0.125);
  BOOST_TEST(!inside_band({item("c", "tpot", 1, 1)}).has_value());
}

BOOST_AUTO_TEST_CASE(ranks_agree_by_pairs_of_one_metric) {
  BOOST_TEST(rank_agreement({item("a", "tpot", 1, 5), item("b", "tpot", 2, 6), item("c", "tpot", 3, 4), item("d", "ttft", 9, 1)}).value() == 1.0 / 3, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(!rank_agreement({item("a", "tpot", 1, 5)}).has_value());
}

BOOST_AUTO_TEST_CASE(a_bound_counts_only_items_with_its_tags) {
  ValidationSuite suite{"s", {item("a", "tpot", 10, 11, {"gpu=gb300"}), item("b", "tpot", 10, 20, {"gpu=h200"}), item("c", "tpot", 10, std::nullopt, {"gpu=h200"})}, {}};
  suite.bounds = {{"tpot", {"gpu=gb300"}, 0.15, 0.9, true}, {"tpot", {"gpu=h200"}, 0.15, 0, true}, {"tpot", {"gpu=h200"}, 0, 0.6, true}};
  const auto checks = check_bounds(suite);
  BOOST_TEST(checks[0].kept);
  BOOST_TEST(!checks[1].kept);
  BOOST_TEST(!checks[2].kept);
  BOOST_TEST(checks[2].coverage == 0.5);
}

BOOST_AUTO_TEST_CASE(a_bound_without_rows_is_missed) {
  ValidationSuite suite{"s", {item("a", "tpot", 10, 11, {"gpu=gb300"})}, {}};
  suite.bounds = {{"tpot", {"gpu=b200"}, 0.15, 0, true}, {"ttft", {}, 0.5, 0, true}};
  for (const BoundCheck& check : check_bounds(suite)) BOOST_TEST(!check.kept);
}

BOOST_AUTO_TEST_CASE(the_json_holds_what_outside_checks_read) {
  const ValidationSuite suite{"s", {item("a", "tpot", 10, 11), item("b", "tpot", 10, std::nullopt)}, {}};
  const auto json = validation_json({suite}).at("suites").at(0);
  BOOST_TEST(json.at("rows") == 2);
  BOOST_TEST(json.at("predicted") == 1);
  BOOST_TEST(json.at("coverage") == 0.5);
  BOOST_TEST(json.at("metrics").at("tpot").at("n") == 1);
  BOOST_TEST(json.at("items").at(1).at("refused") == "no such engine");
  BOOST_TEST(json.at("items").at(1).at("predicted").is_null());
}

BOOST_AUTO_TEST_CASE(the_table_says_which_bounds_are_missed_and_why_rows_are_refused) {
  ValidationSuite suite{"s", {item("a", "tpot", 10, 15), item("b", "tpot", 10, std::nullopt)}, {}};
  suite.bounds = {{"tpot", {}, 0.15, 0, true}};
  const std::string table = validation_table({suite});
  BOOST_TEST(table.find("1 of 2 rows predicted") != std::string::npos);
  BOOST_TEST(table.find("MISSED tpot") != std::string::npos);
  BOOST_TEST(table.find("refused: no such engine") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_band_is_the_wider_of_the_draws_and_what_predictions_of_its_kind_missed) {
  ValidationItem narrow = item("a", "tpot", 10, 10.0);
  const RunKind few{.framework = "vllm", .disaggregated = false, .users = 16}, many{.framework = "vllm", .disaggregated = false, .users = 17};
  add_model_error(narrow, few);
  BOOST_TEST(!narrow.lo.has_value());  // no draws, no band
  narrow.lo = narrow.hi = 10.0;
  ValidationItem wide = narrow, crowded = narrow;
  wide.lo = 2.0;
  wide.hi = 30.0;
  add_model_error(narrow, few);
  add_model_error(wide, few);
  add_model_error(crowded, many);
  BOOST_TEST(*narrow.lo < 10.0);
  BOOST_TEST(*narrow.hi > 10.0);
  BOOST_TEST(*wide.lo == 2.0);  // what was missed holds the parameters' error: it is not added to it
  BOOST_TEST(*wide.hi == 30.0);
  BOOST_TEST(*crowded.hi > *narrow.hi);  // the next kind: more users wait for one another
  ValidationItem step = item("b", "step", 10, 10.0);
  step.lo = 9.0;
  step.hi = 11.0;
  add_model_error(step, few);
  BOOST_TEST(*step.lo == 9.0);
}

BOOST_AUTO_TEST_CASE(a_band_never_leaves_its_prediction_out_and_knows_frameworks_apart) {
  for (const double users : {64.0, 1024.0}) {
    ValidationItem steady = item("a", "ttft", 10, 10.0);
    steady.lo = steady.hi = 10.0;
    ValidationItem other = steady;
    add_model_error(steady, {.framework = "trtllm", .disaggregated = true, .users = users});
    add_model_error(other, {.framework = "sglang", .disaggregated = true, .users = users});
    BOOST_TEST(*steady.lo <= 10.0);
    BOOST_TEST(*steady.hi >= 10.0);
    BOOST_TEST(*other.hi > *steady.hi);  // kernels compiled while users wait
  }
}
