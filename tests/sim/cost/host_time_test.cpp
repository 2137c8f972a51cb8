#define BOOST_TEST_MODULE host_time
#include "sim/cost/host_time.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "sim/cost/step_model.hpp"

using namespace rackcast;
namespace tt = boost::test_tools;

namespace {

HostTime host_of(HostMode mode, int hosts, double jitter_s, double agreement_s = 0) {
  const CostSpec none;
  ParameterReader read(none, "");
  return HostTime({.mode = mode, .per_step = Seconds(1e-3), .per_request = Seconds(1e-5), .per_new_request = Seconds(1e-4), .jitter = Seconds(jitter_s), .agreement = Seconds(agreement_s)}, hosts, 61, read);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_slowest_of_exponential_delays_is_the_harmonic_number_of_them) {
  BOOST_TEST(expected_slowest_delay(2e-4, 1) == 2e-4);
  BOOST_TEST(expected_slowest_delay(2e-4, 4) == 2e-4 * (1 + 0.5 + 1.0 / 3 + 0.25), tt::tolerance(1e-12));
  BOOST_TEST(expected_slowest_delay(0, 72) == 0.0);
}

BOOST_AUTO_TEST_CASE(expected_delays_agree_with_draws) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> delay(1 / 1e-4);
  constexpr int ranks = 32, draws = 200000;
  for (const double slack : {0.0, 1e-4, 4e-4}) {
    double slowest_sum = 0, excess_sum = 0;
    for (int i = 0; i < draws; ++i) {
      double slowest = 0;
      for (int r = 0; r < ranks; ++r) slowest = std::max(slowest, delay(random));
      slowest_sum += slowest;
      excess_sum += std::max(0.0, slowest - slack);
    }
    BOOST_TEST(expected_slowest_delay(1e-4, ranks) == slowest_sum / draws, tt::tolerance(0.005));
    BOOST_TEST(expected_excess_delay(1e-4, ranks, slack) == excess_sum / draws, tt::tolerance(0.01));
  }
}

BOOST_AUTO_TEST_CASE(a_host_works_for_its_requests_for_new_ones_and_for_what_it_posts) {
  RankBatch rank;
  rank.decode_requests = 10;
  rank.new_requests = 2;
  rank.host_s = 5e-3;
  BOOST_TEST(host_of(HostMode::sync, 1, 0).work_s(rank) == 1e-3 + 1e-4 + 2e-4 + 5e-3, tt::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(a_synchronous_host_exposes_work_the_slowest_delay_and_the_agreement) {
  const HostTime host = host_of(HostMode::sync, 8, 1e-4, 2e-4);
  const double expected = 3e-3 + expected_slowest_delay(1e-4, 8) + 3 * 2e-4;
  BOOST_TEST(host.exposed_s(3e-3, 0, 10e-3) == expected, tt::tolerance(1e-12));
  BOOST_TEST(host.exposed_s(3e-3, 9e-3, 10e-3) == expected, tt::tolerance(1e-12));   // posted while the GPU works
  BOOST_TEST(host.exposed_s(3e-3, 14e-3, 10e-3) == expected + 4e-3, tt::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(an_asynchronous_host_exposes_only_what_outlasts_the_gpu) {
  const HostTime host = host_of(HostMode::async, 8, 0, 2e-4);
  BOOST_TEST(host.exposed_s(3e-3, 0, 10e-3) == 0.0);
  BOOST_TEST(host.exposed_s(3e-3, 9e-3, 10e-3) == 2e-3, tt::tolerance(1e-9));
  const HostTime late = host_of(HostMode::async, 8, 1e-4);
  BOOST_TEST(late.exposed_s(10e-3, 0, 10e-3) == expected_slowest_delay(1e-4, 8), tt::tolerance(1e-9));
  BOOST_TEST(late.exposed_s(3e-3, 0, 10e-3) < 1e-12);
}

BOOST_AUTO_TEST_CASE(more_ranks_never_wait_less) {
  for (const HostMode mode : {HostMode::sync, HostMode::async}) {
    double last = -1;
    for (const int ranks : {1, 2, 4, 8, 16, 32, 72}) {
      const double exposed = host_of(mode, ranks, 1e-4, 6e-4).exposed_s(9.9e-3, 0, 10e-3);
      BOOST_TEST(exposed > last);
      last = exposed;
    }
  }
}

BOOST_AUTO_TEST_CASE(a_prompt_that_is_launched_kernel_by_kernel_lasts_as_long_as_its_launches) {
  const CostSpec none;
  ParameterReader read(none, "");
  const HostSpec eager{.mode = HostMode::async, .per_step = Seconds(0), .per_request = Seconds(0), .per_new_request = Seconds(0), .jitter = Seconds(0),
                       .agreement = Seconds(0), .prompt_graphs = false, .eager_layer = Seconds(2e-3)};
  const HostTime host(eager, 1, 50, read);
  BOOST_TEST(host.exposed_s(0, 0, 0.04, true) == 0.06, tt::tolerance(1e-12));   // 50 x 2 ms of launches under 40 ms of kernels
  BOOST_TEST(host.exposed_s(0, 0, 0.04, false) == 0.0);                         // decode iterations are graphs
  BOOST_TEST(host.exposed_s(0, 0, 0.25, true) == 0.0);                          // hidden under longer kernels
}
