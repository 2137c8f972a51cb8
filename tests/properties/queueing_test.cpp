// The engine against queueing theory, written from the closed-form side: nothing here knows how the engine works.
// Sources: Kleinrock, Queueing Systems I (M/M/1, Erlang B and C, M/G/infinity).
#define BOOST_TEST_MODULE queueing
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "tests/support/small_rack.hpp"

using namespace rackcast;
using namespace rackcast::test;
namespace tt = boost::test_tools;

namespace {

// Poisson arrivals; lengths are drawn by the caller.
class Arrivals {
 public:
  explicit Arrivals(std::uint64_t seed) : random_(seed) {}
  double exponential(double mean) { return -mean * std::log(1 - std::uniform_real_distribution<>()(random_)); }
  std::uint32_t whole(double mean) { return 1 + static_cast<std::uint32_t>(std::floor(exponential(mean))); }

 private:
  std::mt19937_64 random_;
};

// Chance that all of c servers are busy and an arrival is lost.
double erlang_b(int c, double offered) {
  double b = 1;
  for (int k = 1; k <= c; ++k) b = offered * b / (k + offered * b);
  return b;
}

// Chance that an arrival waits.
double erlang_c(int c, double offered) {
  const double b = erlang_b(c, offered);
  return b / (1 - offered / c * (1 - b));
}

double quantile(std::vector<double> values, double q) {
  const auto at = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

// One step serves every running request by one token, so that up to `requests` of them are served side by side.
constexpr double step_s = 0.01;

SimulationOptions token_a_step(const StepModel& model, std::uint32_t requests) {
  SimulationOptions options;
  options.pools = {pool(EngineRole::aggregated, 1, 1, model)};
  options.pools[0].shape.limits = {1'000'000, requests};
  options.duration_s = never_s;
  return options;
}

std::vector<Scripted::Ask> answers(double rate_per_s, double mean_tokens, int count, std::uint64_t seed) {
  Arrivals draw(seed);
  std::vector<Scripted::Ask> asks;
  double now_s = 0;
  for (int i = 0; i < count; ++i) {
    now_s += draw.exponential(1 / rate_per_s);
    asks.push_back({now_s, 1, draw.whole(mean_tokens - 0.5)});
  }
  return asks;
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_server_with_exponential_work_keeps_requests_as_long_as_m_m_1) {
  // Time in system is exponential with mean 1 / (mu - lambda).
  const double per_token_s = 1e-5, mean_tokens = 2000;
  const LinearSteps steps(0, per_token_s, 0);
  for (const double rho : {0.3, 0.7}) {
    const double mean_s = per_token_s * mean_tokens, rate = rho / mean_s;
    Arrivals draw(static_cast<std::uint64_t>(100 * rho));
    std::vector<Scripted::Ask> asks;
    double now_s = 0;
    for (int i = 0; i < 300000; ++i) {
      now_s += draw.exponential(1 / rate);
      asks.push_back({now_s, draw.whole(mean_tokens - 0.5), 1});
    }
    Scripted load(std::move(asks));
    const Run run = simulate(token_a_step(steps, 1), load);
    std::vector<double> times;
    double sum = 0;
    for (const RequestRecord& row : run.records.rows) {
      times.push_back(row.finish_s - row.arrival_s);
      sum += times.back();
    }
    const double expected = 1 / (1 / mean_s - rate);
    BOOST_TEST_CONTEXT("rho " << rho) {
      BOOST_TEST(sum / static_cast<double>(times.size()) == expected, tt::tolerance(0.03));
      BOOST_TEST(quantile(times, 0.5) == expected * std::log(2), tt::tolerance(0.03));
      BOOST_TEST(quantile(times, 0.9) == expected * std::log(10), tt::tolerance(0.04));
      BOOST_TEST(quantile(times, 0.99) == expected * std::log(100), tt::tolerance(0.06));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_batch_without_limit_holds_as_many_requests_as_m_g_infinity) {
  const LinearSteps steps(step_s, 0, 0);
  const double rate = 30, mean_tokens = 200;
  Scripted load(answers(rate, mean_tokens, 100000, 5));
  SimulationOptions options = token_a_step(steps, 100000);
  options.duration_s = 3000;
  const Run run = simulate(options, load);
  // An arrival waits half a step for the next one to start.
  BOOST_TEST(run.outcome.in_flight_area / (run.outcome.window_end_s - run.outcome.window_start_s) == rate * (mean_tokens + 0.5) * step_s, tt::tolerance(0.03));
}

BOOST_AUTO_TEST_CASE(a_full_system_turns_away_as_many_as_erlang_b_says) {
  const LinearSteps steps(step_s, 0, 0);
  const double mean_tokens = 200;
  for (const double offered : {6.0, 10.0, 15.0}) {
    constexpr int servers = 10;
    Scripted load(answers(offered / (mean_tokens * step_s), mean_tokens, 100000, static_cast<std::uint64_t>(offered)));
    SimulationOptions options = token_a_step(steps, 1000);
    options.admission.requests = servers;
    options.admission.over_limit = OverLimit::refuse;
    const Run run = simulate(options, load);
    const double lost = static_cast<double>(run.outcome.turned_away) / static_cast<double>(run.outcome.arrivals);
    BOOST_TEST_CONTEXT("offered " << offered) BOOST_TEST(lost == erlang_b(servers, offered), tt::tolerance(0.05));
  }
}

BOOST_AUTO_TEST_CASE(requests_wait_for_a_place_in_the_batch_as_erlang_c_says) {
  const LinearSteps steps(step_s, 0, 0);
  const double mean_tokens = 200;
  for (const double offered : {7.0, 9.0}) {
    constexpr int servers = 10;
    Scripted load(answers(offered / (mean_tokens * step_s), mean_tokens, 300000, static_cast<std::uint64_t>(offered)));
    const Run run = simulate(token_a_step(steps, servers), load);
    double wait = 0;
    for (const RequestRecord& row : run.records.rows) wait += row.admitted_s - row.arrival_s;
    wait /= static_cast<double>(run.records.rows.size());
    // Every request, also one that finds room, waits half a step for the next to start.
    const double mean_s = mean_tokens * step_s;
    const double expected = erlang_c(servers, offered) * mean_s / (servers - offered) + step_s / 2;
    BOOST_TEST_CONTEXT("offered " << offered) BOOST_TEST(wait == expected, tt::tolerance(0.06));
  }
}
