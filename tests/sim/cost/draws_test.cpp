#define BOOST_TEST_MODULE draws
#include "sim/cost/draws.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/cost/step_case.hpp"
#include "sim/cost/step_model.hpp"

using namespace rackcast;

namespace {

const Catalog& catalog() {
  static const Catalog found({RACKCAST_SOURCE_DIR "/scenarios"});
  return found;
}

double step_s(const CostSpec& costs) {
  StepContext c;
  c.model = read_yaml_as<ModelSpec>(catalog().find("models", "deepseek-v4.1-flash"), catalog().read_options());
  c.gpu.fp4 = FlopsPerSecond(1e16);
  c.costs = costs;
  c.ranks = 16;
  const std::vector<RankBatch> ranks(16, batch_of(parse_case("32*6@64K"), c.model, CasePhase::automatic));
  return make_step_model(c)->step(ranks).total_s;
}

}  // namespace

BOOST_AUTO_TEST_CASE(draw_zero_is_the_file_and_equal_draws_are_equal) {
  const CostSpec central = read_costs(catalog(), "gb300");
  BOOST_CHECK_EQUAL(step_s(draw_costs(central, 1, 0)), step_s(central));
  BOOST_CHECK_EQUAL(step_s(draw_costs(central, 1, 5)), step_s(draw_costs(central, 1, 5)));
  BOOST_CHECK_NE(step_s(draw_costs(central, 1, 5)), step_s(draw_costs(central, 1, 6)));
  BOOST_CHECK_NE(step_s(draw_costs(central, 1, 5)), step_s(draw_costs(central, 2, 5)));
}

BOOST_AUTO_TEST_CASE(draws_lie_on_both_sides_of_the_centre_within_a_sane_band) {
  const CostSpec central = read_costs(catalog(), "gb300");
  const double middle = step_s(central);
  std::vector<double> times;
  for (int draw = 1; draw <= 64; ++draw) times.push_back(step_s(draw_costs(central, 1, draw)));
  std::sort(times.begin(), times.end());
  BOOST_CHECK_LT(times[6], middle);
  BOOST_CHECK_GT(times[57], middle);
  BOOST_CHECK_GT(times[57] / times[6], 1.02);
  BOOST_CHECK_LT(times[57] / times[6], 1.5);
}

BOOST_AUTO_TEST_CASE(variations_are_read_by_name) {
  const CostSpec central = read_costs(catalog(), "gb300");
  BOOST_CHECK_EQUAL(step_s(read_costs(catalog(), "gb300@7")), step_s(draw_costs(central, 1, 7)));
  BOOST_CHECK_EQUAL(step_s(read_costs(catalog(), "gb300@moe_fused*1.1")), step_s(scale_costs(central, "moe_fused", 1.1)));
  BOOST_CHECK_THROW(read_costs(catalog(), "gb300@x"), UserError);
  BOOST_CHECK_THROW(read_costs(catalog(), "gb300@moe_fused*0"), UserError);
}

BOOST_AUTO_TEST_CASE(scaling_all_families_scales_the_step) {
  const CostSpec central = read_costs(catalog(), "gb300");
  BOOST_CHECK_GT(step_s(scale_costs(central, "moe_fused", 1.1)), step_s(central));
  BOOST_CHECK_CLOSE(step_s(scale_costs(central, "link_that_is_not_there", 1.1)), step_s(central), 1e-12);
}
