// Which launches leave the range of a family, what a run adds up of them, and what the cost file may say.
#define BOOST_TEST_MODULE cost_range
#include <boost/test/unit_test.hpp>

#include "sim/base/error.hpp"
#include "sim/base/schema_yaml.hpp"
#include "sim/cost/costs.hpp"
#include "sim/cost/step_case.hpp"
#include "sim/cost/step_model.hpp"
#include "sim/spec/gpu.hpp"

using namespace rackcast;

namespace {

CostRange seen(AxisSpan gflop, AxisSpan mb) {
  CostRange range{.points = 10, .mean_error = 0.03, .p90_error = 0.07, .cross_validated_error = 0.04, .spans = {}};
  range.spans[static_cast<std::size_t>(RangeAxis::gflop)] = gflop;
  range.spans[static_cast<std::size_t>(RangeAxis::mb)] = mb;
  return range;
}

StepContext context(CostRange range) {
  StepContext c;
  const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  c.model = read_yaml_as<ModelSpec>(catalog.find("models", "deepseek-v4.1-flash"), catalog.read_options({}, "models"));
  c.gpu = read_yaml_as<GpuSpec>(catalog.find("gpus", "gb300"), catalog.read_options({}, "gpus"));
  c.costs = read_costs(catalog, "gb300");
  for (auto& [name, family] : c.costs.families) family.range.reset();
  for (auto& [model, own] : c.costs.models)
    for (auto& [name, family] : own.families) family.range.reset();
  c.costs.families.at("dense_bf16").range = std::move(range);
  c.ranks = 8;
  return c;
}

RangeTally outside_of(const StepContext& c, const char* text) {
  const std::vector<RankBatch> ranks(8, batch_of(parse_case(text), c.model, CasePhase::automatic));
  RangeTally tally;
  const std::unique_ptr<StepModel> model = make_step_model(c);
  add_outside(tally, model->operators(ranks), 1);
  return tally;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_launch_at_the_ends_is_inside_and_beyond_either_is_not) {
  const CostRange range = seen({1, 10}, {2, 20});
  BOOST_TEST(range.exits(launch_work(1e9, 2e6)).empty());
  BOOST_TEST(range.exits(launch_work(10e9, 20e6)).empty());
  const std::vector<RangeExit> below = range.exits(launch_work(0.9e9, 5e6)), above = range.exits(launch_work(10.1e9, 20.1e6));
  BOOST_TEST_REQUIRE(below.size() == 1u);
  BOOST_CHECK(below[0].axis == RangeAxis::gflop);
  BOOST_CHECK_CLOSE(below[0].value, 0.9, 1e-9);
  BOOST_TEST(above.size() == 2u);
}

BOOST_AUTO_TEST_CASE(an_axis_that_a_launch_or_the_points_do_not_have_says_nothing) {
  BOOST_TEST(seen({1, 10}, {}).exits(launch_work(5e9, 1e12)).empty());
  BOOST_TEST(seen({1, 10}, {2, 20}).exits(launch_work(0, 5e6)).empty());
  BOOST_TEST(CostRange{}.exits(launch_work(1e30, 1e30, 1e30, 1e30, 1e30)).empty());
}

BOOST_AUTO_TEST_CASE(what_left_is_added_up_by_family_and_told_most_time_first) {
  const CostRange range = seen({1, 10}, {2, 20});
  RangeTally one, two;
  one.add("a", range.exits(launch_work(0.5e9, 5e6)), 1);
  one.add("a", range.exits(launch_work(5e9, 5e6)), 100);  // inside
  two.add("a", range.exits(launch_work(0.25e9, 5e6)), 1);
  two.add("b", range.exits(launch_work(5e9, 40e6)), 6);
  one.add(two);
  BOOST_TEST(one.seconds() == 8);
  BOOST_TEST(one.text(80) == "b 7.5% (mb 40, points 2 to 20), a 2.5% (gflop 0.25 to 0.5, points 1 to 10)");
  BOOST_TEST(RangeTally{}.text(1).empty());
  BOOST_TEST(one.share_of(80) == 0.1);
}

BOOST_AUTO_TEST_CASE(a_step_inside_every_range_has_nothing_to_say_and_one_outside_names_its_matrices) {
  BOOST_TEST(outside_of(context(seen({1e-9, 1e9}, {1e-9, 1e9})), "16*6@64K").families().empty());
  const RangeTally outside = outside_of(context(seen({1e-9, 1e9}, {1e-9, 1e-3})), "16*6@64K");
  BOOST_TEST_REQUIRE(outside.families().size() == 1u);
  BOOST_TEST(outside.families()[0].name == "dense_bf16");
  BOOST_TEST(outside.seconds() > 0);
}

BOOST_AUTO_TEST_CASE(work_is_that_of_one_launch_however_many_layers_repeat_it) {
  const StepContext one = context(seen({1e-9, 1e9}, {1e-9, 1e-3}));
  StepContext more = one;
  for (LayerGroup& group : more.model.layers) group.count *= 2;
  const auto most_mb = [](const RangeTally& t) { return t.families().at(0).reached[static_cast<std::size_t>(RangeAxis::mb)].hi; };
  BOOST_CHECK_CLOSE(most_mb(outside_of(one, "16*1@64K")), most_mb(outside_of(more, "16*1@64K")), 1e-9);
}

// Composites take time back; what the others take is the whole.
BOOST_AUTO_TEST_CASE(shares_of_a_step_add_up_to_one_at_most_when_composites_take_time_back) {
  const std::vector<RangeExit> left = seen({1, 10}, {}).exits(launch_work(20e9, 0));
  std::vector<OperatorCost> step(3);
  step[0].time_s = 3, step[0].family = "a", step[0].outside = left;
  step[1].time_s = 1, step[1].family = "b";
  step[2].time_s = -2, step[2].family = "composite", step[2].outside = left;
  RangeTally tally;
  add_outside(tally, step, 2);
  BOOST_TEST(tally.share_of(2) == 0.75);
  for (const RangeTally::Family& f : tally.families()) BOOST_TEST(f.seconds >= 0);
  step[1].outside = left;
  RangeTally all;
  add_outside(all, step, 2);
  BOOST_CHECK_CLOSE(all.share_of(2), 1, 1e-9);
}

BOOST_AUTO_TEST_CASE(a_value_that_prints_like_the_end_of_a_range_is_inside_it) {
  BOOST_TEST(seen({}, {8200e-6, 20}).exits(launch_work(0, 8200)).empty());
  BOOST_TEST(seen({}, {0.3, 20}).exits(launch_work(0, (0.1 + 0.2) * 1e6)).empty());
}

BOOST_AUTO_TEST_CASE(a_models_own_family_has_its_own_range_or_the_gpus) {
  CostSpec costs;
  costs.families["composite"].range = seen({1, 2}, {});
  costs.models["m"].families["composite"];
  BOOST_CHECK(costs.range("composite", "m") == &*costs.families["composite"].range);
  costs.models["m"].families["composite"].range = seen({3, 4}, {});
  BOOST_CHECK(costs.range("composite", "m") == &*costs.models["m"].families["composite"].range);
  BOOST_CHECK(costs.range("composite", "other") == &*costs.families["composite"].range);
  BOOST_CHECK(costs.range("none") == nullptr);
}

BOOST_AUTO_TEST_CASE(ranges_survive_writing_and_wrong_ones_are_refused) {
  const auto yaml = [](const std::string& range) {
    return "name: x\ngpu: h200\nfamilies:\n  small:\n    form: stream\n    parameters: {}\n    range: {points: 3, mean_error: 0.1, p90_error: 0.2" + range + "}\n";
  };
  const CostSpec read = read_yaml_as<CostSpec>(YamlSource{"x.yaml", yaml(", gflop: [0.5, 4], ranks: [2, 8]")}, {});
  const CostSpec again = read_yaml_as<CostSpec>(YamlSource{"y.yaml", yaml_of(read)}, {});
  BOOST_TEST(yaml_of(again) == yaml_of(read));
  const CostRange& range = *again.families.at("small").range;
  BOOST_TEST(range.points == 3);
  BOOST_TEST(range.p90_error == 0.2);
  BOOST_TEST(range.spans[static_cast<std::size_t>(RangeAxis::ranks)].hi == 8);
  BOOST_TEST(!range.spans[static_cast<std::size_t>(RangeAxis::mb)].given());
  for (const char* wrong : {", gflop: [4, 0.5]", ", mb: [1]", ", mb: [1, 2, 3]", ", ranks: [-1, 8]", ", rows: [0, 0]", ", gflop: [1, 2], cross_validated_error: -1", ", gflop: [1, 2], cross_validated_error: 1e300", ""})
    BOOST_CHECK_THROW(read_yaml_as<CostSpec>(YamlSource{"z.yaml", yaml(wrong)}, {}), UserError);
}

// What ships: every fitted family says on what, and its parameters meet it.
BOOST_AUTO_TEST_CASE(shipped_parameters_that_name_a_fit_stand_beside_its_range) {
  const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  int fitted = 0;
  for (const char* gpu : {"h100", "h200", "h200-measured", "b200", "b300", "gb200", "gb300"}) {
    const CostSpec costs = read_costs(catalog, gpu);
    const auto look = [&](const std::string& name, const CostFamily& family) {
      bool from_points = false;
      for (const auto& [key, parameter] : family.parameters) from_points |= parameter.source.starts_with("fit of ") && parameter.source.find(" points, mean error") != std::string::npos;
      if (!from_points) return;
      ++fitted;
      BOOST_CHECK_MESSAGE(family.range, gpu << ": " << name << " has no range");
      if (family.range) BOOST_CHECK_MESSAGE(family.range->mean_error <= 0.18, gpu << ": " << name << " is off its points");
    };
    for (const auto& [name, family] : costs.families) look(name, family);
    for (const auto& [model, own] : costs.models)
      for (const auto& [name, family] : own.families) look(model + "/" + name, family);
  }
  BOOST_TEST(fitted > 80);
}
