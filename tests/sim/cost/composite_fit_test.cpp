// The composites in the cost files are what their derivation gives from the published steps, and reproduce them.
#define BOOST_TEST_MODULE composite_fit
#include "sim/cost/composite_fit.hpp"

#include <boost/test/unit_test.hpp>

#include "sim/base/error.hpp"

using namespace rackcast;

namespace {

const Catalog& catalog() {
  static const Catalog found({RACKCAST_SOURCE_DIR "/scenarios"});
  return found;
}

StepAnchors anchors() {
  return read_yaml_as<StepAnchors>(catalog().find("published", "deepseek-v4.1-flash-steps"), catalog().read_options());
}

StepContext context(const std::string& gpu) {
  StepContext c;
  c.model = read_yaml_as<ModelSpec>(catalog().find("models", "deepseek-v4.1-flash"), catalog().read_options());
  c.costs = read_costs(catalog(), gpu);
  c.gpu.fp4 = FlopsPerSecond(1e16);  // has FP4: experts stay FP4
  return c;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_shipped_composites_are_the_solution_of_the_published_steps) {
  const Composite solved = fit_composite(anchors().anchors, {context("gb200"), context("gb300")});
  for (const char* gpu : {"gb200", "gb300"}) {
    const CostSpec costs = read_costs(catalog(), gpu);
    const std::string model = "deepseek-v4.1-flash";
    BOOST_CHECK_CLOSE(costs.get("moe_fused", "g", model).value, solved.g, 0.01);
    BOOST_CHECK_CLOSE(costs.get("indexer", "mma_tflops", model).value, solved.index_tflops, 0.01);
    BOOST_CHECK_CLOSE(costs.get("composite", "a0_us", model).value, solved.a0_us, 0.01);
    BOOST_CHECK_CLOSE(costs.get("composite", "a1_us", model).value, solved.a1_us, 0.01);
  }
}

BOOST_AUTO_TEST_CASE(the_published_steps_come_out_within_half_a_percent) {
  for (const StepAnchor& anchor : anchors().anchors)
    BOOST_CHECK_CLOSE(predicted(anchor, context(anchor.gpu)), anchor.value.value(), 0.5);
}

BOOST_AUTO_TEST_CASE(one_batch_size_cannot_tell_the_two_floor_parameters_apart) {
  StepAnchors given = anchors();
  given.anchors.back().gpu = "gb300";
  given.anchors.back().ranks = 32;
  given.anchors.back().case_text = "16*6@128K";
  BOOST_CHECK_THROW(fit_composite(given.anchors, {context("gb200"), context("gb300")}), UserError);
}

BOOST_AUTO_TEST_CASE(a_missing_anchor_is_named) {
  StepAnchors given = anchors();
  given.anchors.pop_back();
  BOOST_CHECK_THROW(fit_composite(given.anchors, {context("gb200"), context("gb300")}), UserError);
}
