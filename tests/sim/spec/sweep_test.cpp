#define BOOST_TEST_MODULE sweep
#include <boost/test/unit_test.hpp>

#include <set>

#include "sim/base/error.hpp"
#include "sim/spec/sweep.hpp"

using namespace rackcast;

namespace {

const Catalog& catalog() {
  static const Catalog found({std::string(RACKCAST_SOURCE_DIR) + "/scenarios"});
  return found;
}

SweepSpec read(const std::string& text) { return read_yaml_as<SweepSpec>({"s.yaml", text}); }
Space space_of(const std::string& text, std::vector<std::string> sets = {}) { return Space(read(text).space, "s.yaml", catalog(), std::move(sets)); }

std::string refused(const std::string& text) {
  try {
    space_of(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

struct Expanded {
  std::vector<SweepPoint> points;
  std::map<std::string, int> invalid;
};
Expanded expand(const Space& space) {
  Expanded all;
  for (std::uint64_t i = 0; i < space.combinations(); ++i) {
    std::string reason;
    if (auto point = space.at(i, reason)) all.points.push_back(std::move(*point));
    else ++all.invalid[reason];
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(axes_are_multiplied_the_first_slowest) {
  const Space space = space_of(R"(
name: s
base: standard
set: [workload.duration=1 min]
axes:
  - {key: deployment.prefill.engines, values: [2, 4]}
  - {key: workload.concurrency, range: {from: 256, to: 1024, factor: 2}}
)");
  BOOST_TEST(space.combinations() == 6u);
  const Expanded all = expand(space);
  BOOST_REQUIRE(all.points.size() == 6u);
  BOOST_TEST(all.points[4].scenario.deployment.prefill->engines == 4);
  BOOST_TEST(all.points[4].scenario.workload.concurrency == 512);
  BOOST_TEST(all.points[4].scenario.workload.duration.value() == 60);
  BOOST_TEST(all.points[4].scenario.name == "prefill.engines=4 concurrency=512");
}

BOOST_AUTO_TEST_CASE(paired_keys_go_together_and_ranges_take_units) {
  const Space space = space_of(R"(
name: s
base: standard
axes:
  - paired:
      - {key: deployment.speculation.draft_tokens, values: [0, 5]}
      - {key: deployment.speculation.acceptance_length, values: [1, 3.51]}
  - {key: workload.duration, range: {from: 1, to: 3, step: 1, unit: min}}
)");
  const Expanded all = expand(space);
  BOOST_REQUIRE(all.points.size() == 6u);
  BOOST_TEST(all.points[2].scenario.deployment.speculation.draft_tokens == 0);
  BOOST_TEST(all.points[2].scenario.workload.duration.value() == 180);
  BOOST_TEST(all.points[3].scenario.deployment.speculation.acceptance_length == 3.51);
}

BOOST_AUTO_TEST_CASE(combinations_that_cannot_be_are_counted_with_their_reason) {
  const Space space = space_of(R"(
name: s
base: standard
axes:
  - {key: deployment.prefill.engines, values: [4, 8, 16]}
  - {key: deployment.decode.dep, values: [16, 32, 48]}
conditions:
  - prefill.engines * prefill.dep + decode.dep <= rack.gpus
  - decode.dep != 48 or prefill.engines > 4
)");
  const Expanded all = expand(space);
  // 4: 32, 48 (64 breaks the second); 8: 48, 64, 80; 16: 80, 96, 112.
  BOOST_TEST(all.points.size() == 4u);
  BOOST_TEST(all.invalid.at("condition: prefill.engines * prefill.dep + decode.dep <= rack.gpus") == 4);
  BOOST_TEST(all.invalid.at("condition: decode.dep != 48 or prefill.engines > 4") == 1);
}

BOOST_AUTO_TEST_CASE(rules_of_the_scenario_count_too) {
  const Expanded all = expand(space_of("name: s\nbase: standard\naxes: [{key: deployment.prefill.engines, values: [8, 80]}]\n"));
  BOOST_TEST(all.points.size() == 1u);
  BOOST_TEST(all.invalid.begin()->first.find("deployment: needs 352 GPUs") == 0u);
}

BOOST_AUTO_TEST_CASE(a_condition_sees_what_an_axis_changes_underneath) {
  // The rack is a file: only reading the scenario tells its GPUs.
  const Expanded all = expand(space_of(R"(
name: s
base: standard
axes: [{key: rack, values: [gb300-nvl72, gb200-nvl72]}, {key: workload.concurrency, values: [1K, 2K, 3000]}]
conditions: [rack.gpu.memory > 200e9, workload.concurrency <= 2048, model.name == 'deepseek-v4.1-flash']
)"));
  for (const SweepPoint& point : all.points) BOOST_TEST(point.scenario.rack.name == "gb300-nvl72");
  BOOST_TEST(all.invalid.size() >= 1u);
}

BOOST_AUTO_TEST_CASE(mistakes_are_told_before_anything_runs) {
  const std::string head = "name: s\nbase: standard\n";
  BOOST_TEST(refused(head + "axes: [{key: deployment.prefil.engines, values: [1]}]") ==
             "s.yaml: axes[0]: 'deployment.prefil.engines' is no key of a scenario; did you mean 'deployment.prefill.engines'?");
  BOOST_TEST(refused(head + "axes: [{key: rack, values: [gb300-nvl72]}, {key: rack.gpus, values: [36]}]") ==
             "s.yaml: axes[1]: 'rack.gpus' is also set by another axis");
  BOOST_TEST(refused(head + "conditions: ['prefill.engine > 2']").find("'prefill.engine > 2': 'prefill.engine' is no key of a scenario; did you mean 'prefill.engines'?") != std::string::npos);
  BOOST_TEST(refused(head + "conditions: ['1 +']") == "s.yaml: conditions[0]: '1 +': column 4: a value is missing before the end");
  BOOST_TEST(refused(head + "axes: [{key: seed}]").find("give one of values, range and paired") != std::string::npos);
  BOOST_TEST(refused(head + "axes: [{key: seed, range: {from: 1, to: 2, step: 1, factor: 2}}]").find("give one of step and factor") != std::string::npos);
  BOOST_TEST(refused(head + "axes: [{paired: [{key: seed, values: [1]}, {key: uncertainty, values: [1, 2]}]}]").find("as many values as the first") != std::string::npos);
  BOOST_TEST(refused("name: s\nbase: standart\n").find("standard") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(sets_go_to_the_sweep_or_to_its_base) {
  const auto [own, other] = split_sets({"axes[0].key=seed", "workload.duration=1 min", "limits.time=5 s"}, {"name", "axes", "limits"});
  BOOST_TEST(own.size() == 2u);
  BOOST_TEST(other.at(0) == "workload.duration=1 min");
  BOOST_TEST(space_of("name: s\nbase: standard\n", other).base().workload.duration.value() == 60);
}
