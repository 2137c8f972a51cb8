// Time of uneven experts: a library's ratios against draws of every layer, each timed as it is.
#define BOOST_TEST_MODULE expert_load
#include "sim/cost/expert_load.hpp"

#include <boost/test/unit_test.hpp>

#include "sim/cost/experts.hpp"
#include "sim/policy/eplb.hpp"

using namespace rackcast;

namespace {

StepContext context(const char* model, int ranks) {
  const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  StepContext c;
  c.model = read_yaml_as<ModelSpec>(catalog.find("models", model), catalog.read_options());
  c.gpu = read_yaml_as<GpuSpec>(catalog.find("gpus", "gb300"), catalog.read_options());
  c.costs = read_costs(catalog, "gb300");
  c.ranks = ranks;
  return c;
}

}  // namespace

BOOST_AUTO_TEST_CASE(ratios_of_a_library_give_the_time_that_draws_of_every_layer_give) {
  const int ranks = 32, layers = 40;
  for (const char* name : {"deepseek-v4.1-flash", "deepseek-r1-nvfp4"}) {  // a fused kernel, and separate ones
    const StepContext c = context(name, ranks);
    const int experts = c.model.experts.count, top_k = c.model.experts.top_k;
    const ExpertSide side(c, {1, experts, top_k, true});
    const ExpertPopularity popularity({.skew = ExpertSkew::zipf, .exponent = 0.8}, layers, experts, top_k, 2);
    const std::vector<double> topics(4, 0.25);
    std::vector<ExpertPlacement> placements(layers, place_linear(experts, ranks, experts / ranks));
    ExpertDemandLibrary library(ReplicaChoice::round_robin, 3);
    library.reset(popularity, placements);
    std::mt19937_64 random(4);
    double most = 0;
    for (const double tokens : {90.0, 768.0, 5000.0, 100e3})
      for (const double unevenness : {1.0, 1.7}) {  // the rank with most tokens over the mean
        const double largest = unevenness * tokens / ranks;
        double fresh = 0, drawn = 0;
        const int steps = 12, looks = 1024;
        for (int s = 0; s < steps; ++s) {
          StepDemand step;
          for (int l = 0; l < layers; ++l)
            step.add_layer(rank_demands(placements[static_cast<std::size_t>(l)], popularity.draw_counts(l, tokens, topics, random), tokens, top_k, ReplicaChoice::round_robin));
          fresh += side.seconds(largest, tokens, &step, 0) / steps;
        }
        for (int s = 0; s < looks; ++s) {
          library.next_step(topics);
          drawn += side.seconds(largest, tokens, &library.at(tokens), 0) / looks;
        }
        BOOST_TEST_INFO(name << ", " << tokens << " tokens, " << unevenness);
        BOOST_TEST(drawn == fresh, boost::test_tools::tolerance(0.02));
        most = std::max(most, fresh / side.seconds(largest, tokens, nullptr, 0));
      }
    BOOST_TEST(most > 1.3);  // else nothing is shown
  }
}

BOOST_AUTO_TEST_CASE(the_order_of_steps_does_not_change_what_one_takes) {
  const StepContext c = context("deepseek-v4.1-flash", 32);
  const ExpertSide side(c, {1, c.model.experts.count, c.model.experts.top_k, true});
  const ExpertPopularity popularity({.skew = ExpertSkew::zipf}, 1, c.model.experts.count, c.model.experts.top_k, 2);
  const std::vector<ExpertPlacement> placements(1, place_linear(c.model.experts.count, 32, c.model.experts.count / 32));
  const auto library = [&] {
    ExpertDemandLibrary made(ReplicaChoice::round_robin, 3);
    made.reset(popularity, placements);
    made.next_step(std::vector<double>(4, 0.25));
    return made;
  };
  ExpertDemandLibrary a = library(), b = library();
  const StepDemand &one = a.at(1024), &other = b.at(1024);
  const double first = side.seconds(40, 1000, &one, 0), second = side.seconds(41, 1010, &one, 0);
  BOOST_TEST(side.seconds(41, 1010, &other, 0) == second);
  BOOST_TEST(side.seconds(40, 1000, &other, 0) == first);
}
