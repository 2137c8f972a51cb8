#define BOOST_TEST_MODULE generate
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <queue>

#include "sim/trace/agentx.hpp"
#include "sim/trace/generate.hpp"
#include "sim/trace/shape_report.hpp"

using namespace rackcast;

namespace {

struct Served {
  std::vector<double> input, output;
  double share(const std::vector<double>& values, double q) const { return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))]; }
  double requests_per_lane_hour = 0, output_share = 0;
};

// Thirty minutes of a server that is never full and answers as a published one does: 39.8 tokens/s a user (V4.1-Flash
// on four GB300, 128 lanes, 2026-09-19), first token after 2 s.
Served serve(const Trace& trace) {
  constexpr std::uint32_t lanes = 3072;
  constexpr double first_token_s = 2, tokens_per_s = 39.8, window_s = 1800;
  auto load = make_agentx({.trace = &trace, .lanes = lanes});
  load->preload([](const LoadRequest&) {});
  using End = std::pair<double, std::uint64_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  Served served;
  double input = 0, output = 0;
  const double end_s = load->next_time_s() + window_s;
  std::vector<LoadRequest> due;
  for (double now_s = 0; now_s < end_s; now_s = std::min(load->next_time_s(), ends.empty() ? never_s : ends.top().first)) {
    while (!ends.empty() && ends.top().first <= now_s) {
      const std::uint64_t id = ends.top().second;
      ends.pop();
      load->finished(id, now_s);
    }
    due.clear();
    load->take_due(now_s, due);
    for (const LoadRequest& request : due) {
      ends.push({now_s + first_token_s + request.output_tokens / tokens_per_s, request.id});
      served.input.push_back(request.input_tokens);
      served.output.push_back(request.output_tokens);
      input += request.input_tokens;
      output += request.output_tokens;
    }
  }
  std::sort(served.input.begin(), served.input.end());
  std::sort(served.output.begin(), served.output.end());
  served.requests_per_lane_hour = static_cast<double>(served.input.size()) / lanes / (window_s / 3600);
  served.output_share = output / (input + output);
  return served;
}

void near(double value, double target, double tolerance, const std::string& what) {
  BOOST_TEST(std::abs(value / target - 1) <= tolerance, what << ": " << value << ", target " << target << " within " << tolerance);
}

}  // namespace

BOOST_AUTO_TEST_CASE(ten_seeds_meet_every_published_row_of_v1_and_the_served_mix) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Trace trace = generate_trace(agentx_v1_shape(), seed);
    const std::string of = " of seed " + std::to_string(seed);
    for (const ShapeRow& row : agentx_v1_rows(statistics_of(trace)))
      if (row.tolerance > 0) near(row.generated, row.target, row.tolerance + 1e-12, row.name + of);
    const Served served = serve(trace);
    near(served.share(served.input, 0.5), 88e3, 0.15, "served input p50" + of);
    near(served.share(served.input, 0.9), 272e3, 0.15, "served input p90" + of);
    near(served.share(served.input, 0.99), 675e3, 0.15, "served input p99" + of);
    near(served.share(served.output, 0.5), 413, 0.15, "served output p50" + of);
    near(served.share(served.output, 0.9), 2200, 0.15, "served output p90" + of);
    BOOST_TEST(served.output_share >= 0.0063, "served output share " << served.output_share << of);
    BOOST_TEST(served.output_share <= 0.0090, "served output share " << served.output_share << of);
    BOOST_TEST(served.requests_per_lane_hour >= 60, served.requests_per_lane_hour << " requests a lane-hour" << of);
    BOOST_TEST(served.requests_per_lane_hour <= 110, served.requests_per_lane_hour << " requests a lane-hour" << of);
  }
}

BOOST_AUTO_TEST_CASE(one_seed_gives_one_load_and_another_seed_another) {
  const Trace a = generate_trace(agentx_v1_shape(), 7), b = generate_trace(agentx_v1_shape(), 7), c = generate_trace(agentx_v1_shape(), 8);
  BOOST_TEST(a.content_hash == b.content_hash);
  BOOST_TEST(a.content_hash != c.content_hash);
  BOOST_REQUIRE(a.requests.size() == b.requests.size());
  BOOST_TEST(std::equal(a.requests.begin(), a.requests.end(), b.requests.begin(), [](const TraceRequest& x, const TraceRequest& y) {
    return x.start_s == y.start_s && x.input_tokens == y.input_tokens && x.output_tokens == y.output_tokens && x.runs_begin == y.runs_begin;
  }));
}
