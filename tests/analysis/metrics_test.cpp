#define BOOST_TEST_MODULE metrics
#include "analysis/metrics.hpp"

#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

using namespace rackcast;
namespace tt = boost::test_tools;

BOOST_AUTO_TEST_CASE(percentiles_interpolate_between_samples) {
  Samples samples;
  for (const double value : {4.0, 1.0, 3.0, 2.0}) samples.add(value);
  BOOST_TEST(samples.percentile(0) == 1.0);
  BOOST_TEST(samples.percentile(0.5) == 2.5);
  BOOST_TEST(samples.percentile(0.9) == 3.7, tt::tolerance(1e-12));
  BOOST_TEST(samples.percentile(1) == 4.0);
  BOOST_TEST(Samples().percentile(0.5) == 0.0);
}

BOOST_AUTO_TEST_CASE(beyond_the_limit_percentiles_stay_within_a_hundredth_of_a_percent) {
  Samples samples;
  std::vector<double> all;
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> lengths(0, 2);
  for (std::size_t i = 0; i < Samples::exact_limit * 2; ++i) {
    all.push_back(lengths(random));
    samples.add(all.back());
  }
  BOOST_TEST(!samples.exact());
  std::sort(all.begin(), all.end());
  for (const double share : {0.1, 0.5, 0.9, 0.99})
    BOOST_TEST(samples.percentile(share) == all[static_cast<std::size_t>(share * static_cast<double>(all.size()))], tt::tolerance(2e-4));
}

BOOST_AUTO_TEST_CASE(metrics_of_two_requests_are_what_one_works_out_by_hand) {
  RequestStatistics statistics;
  RequestRecord a;
  a.arrival_s = 10;
  a.first_token_s = 11;
  a.finish_s = 15;
  a.input_tokens = 1000;
  a.input_block_tokens = 960;
  a.output_tokens = 101;
  a.hit_gpu_tokens = 640;
  a.hit_host_tokens = 128;
  a.hit_ideal_tokens = 960;
  RequestRecord b = a;
  b.first_token_s = 12;
  b.finish_s = 20;
  b.output_tokens = 1;        // no inter-token latency
  b.hit_gpu_tokens = b.hit_host_tokens = 0;
  statistics.add(a);
  statistics.add(b);
  const Metrics m = metrics_of(statistics, {.gpus = 2, .rack_gpus = 4, .racks = 1, .lanes = 2, .gpu_usd_per_s = 3.6 / 3600,
                                            .cached_usd = 1e-6, .input_usd = 2e-6, .output_usd = 5e-6, .lane_demand_tok_s = 600, .sim_seconds = 1});
  const auto close = [&](const char* name, double value) { BOOST_TEST_CONTEXT(name) BOOST_TEST(metric(m, name) == value, tt::tolerance(1e-12)); };
  close("total_tok_s_gpu", 2102.0 / 10 / 2);
  close("cached_tok_s_gpu", 768.0 / 20);
  close("uncached_tok_s_gpu", 1232.0 / 20);
  close("output_tok_s_gpu", 102.0 / 20);
  close("p90_tok_s_user", 100.0 / 4);
  close("tpot_mean_s", 0.04);
  close("ttft_p50_s", 1.5);
  close("cache_hit_gpu", 640.0 / 1920);
  close("cache_hit_total", 768.0 / 1920);
  close("cache_hit_ideal", 1.0);
  close("requests_per_lane_hour", 360.0);
  close("revenue_usd_gpu_hour", (768 * 1e-6 + 1232 * 2e-6 + 102 * 5e-6) / 20 * 3600);
  close("cost_usd_per_mtok", 3.6 / 3600 * 1e6 / 105.1);
  close("revenue_usd_per_mtok", (768 + 2 * 1232 + 5 * 102) / 2102.0);
  close("total_tok_s_rack", 210.2);
  close("achieved_of_demand", 105.1 / 300);
}

BOOST_AUTO_TEST_CASE(every_metric_has_a_definition_and_every_definition_a_metric) {
  const Metrics m = metrics_of({}, {.gpus = 1, .rack_gpus = 1});
  std::set<std::string> given, defined;
  for (const auto& [name, value] : m) given.insert(name);
  for (const MetricDefinition& definition : metric_definitions()) defined.insert(std::string(definition.name));
  BOOST_TEST(given == defined, tt::per_element());
}

BOOST_AUTO_TEST_CASE(what_a_load_does_not_have_is_no_number_rather_than_zero) {
  RequestStatistics statistics;
  RequestRecord one_token;
  one_token.first_token_s = one_token.finish_s = 2;
  one_token.input_tokens = 100;
  one_token.output_tokens = 1;
  statistics.add(one_token);
  const Metrics m = metrics_of(statistics, {.gpus = 1, .lane_demand_tok_s = std::numeric_limits<double>::infinity()});
  for (const char* name : {"p50_tok_s_user", "p90_tok_s_user", "tpot_mean_s", "tpot_p90_s", "lane_demand_tok_s_gpu", "achieved_of_demand"})
    BOOST_TEST_CONTEXT(name) BOOST_TEST(std::isnan(metric(m, name)));
  BOOST_TEST(metric(m, "ttft_p50_s") == 2);
}
