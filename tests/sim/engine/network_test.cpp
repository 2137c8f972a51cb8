#define BOOST_TEST_MODULE network
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "sim/base/error.hpp"
#include "tests/support/flow_list.hpp"
#include "tests/support/isolated.hpp"

using namespace rackcast;
using namespace rackcast::test;
namespace data = boost::unit_test::data;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const NetworkKind both[] = {NetworkKind::simgrid, NetworkKind::fluid};

std::vector<double> played(NetworkKind kind, const FlowList& list) {
  return isolated([&] { return play(list, *make_network(kind)); });
}

void check_close(const std::vector<double>& seen, const std::vector<double>& wanted) {
  BOOST_REQUIRE_GE(seen.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::isinf(wanted[i])) BOOST_TEST(seen[i] == wanted[i]);
    else BOOST_TEST(std::abs(seen[i] - wanted[i]) <= 1e-12 * std::abs(wanted[i]), "event " << i << ": " << seen[i] << " instead of " << wanted[i]);
  }
}

}  // namespace

namespace std {
ostream& operator<<(ostream& out, rackcast::NetworkKind kind) { return out << (kind == rackcast::NetworkKind::fluid ? "fluid" : "simgrid"); }
}  // namespace std

BOOST_DATA_TEST_CASE(one_flow_takes_its_bytes_over_the_slowest_link, data::make(both), kind) {
  FlowList list{{100, 40, 200}, {}};
  list.flow(0.5, {0, 1, 2}, 80);
  check_close(played(kind, list), {2.5, 80, 80, 80});
}

BOOST_DATA_TEST_CASE(two_flows_share_a_link_and_the_longer_one_speeds_up, data::make(both), kind) {
  FlowList list{{100}, {}};
  list.flow(0, {0}, 100);
  list.flow(0, {0}, 50);
  check_close(played(kind, list), {1.5, 1.0, 150});
}

BOOST_DATA_TEST_CASE(a_long_flow_gets_what_the_short_ones_of_a_chain_leave, data::make(both), kind) {
  // Links of 10 and 20; flow 0 over both, 1 over the first, 2 over the second: max-min rates 5, 5, 15.
  FlowList list{{10, 20}, {}};
  list.flow(0, {0, 1}, 10);
  list.flow(0, {0}, 20);
  list.flow(0, {1}, 30);
  check_close(played(kind, list), {2, 3, 2, 30, 40});
}

BOOST_DATA_TEST_CASE(an_infinite_link_never_binds_but_can_go_down, data::make(both), kind) {
  FlowList list{{100, infinity}, {}};
  list.flow(0, {1, 0}, 100);
  list.capacity(2, 1, 0);
  list.flow(2, {1, 0}, 100);
  list.capacity(3, 1, infinity);
  list.flow(3, {1, 0}, 100);
  check_close(played(kind, list), {1, 0, -infinity, 0, 4, 200, 200});
}

BOOST_DATA_TEST_CASE(a_link_that_goes_down_fails_its_flows_at_once_and_frees_the_others, data::make(both), kind) {
  FlowList list{{100, 1000}, {}};
  list.flow(0, {0}, 100);
  list.flow(0, {0, 1}, 100);
  list.capacity(0.5, 1, 0);   // flow 1 has moved 25 bytes; flow 0 has 75 left and now the whole link
  list.flow(0.6, {1}, 10);    // refused
  list.capacity(0.7, 1, 1000);
  list.flow(0.7, {1}, 100);
  check_close(played(kind, list), {1.25, -0.5, 0, -infinity, 0, 0.8, 125, 125});
}

BOOST_DATA_TEST_CASE(capacity_changes_reach_flows_under_way, data::make(both), kind) {
  FlowList list{{100}, {}};
  list.flow(0, {0}, 100);
  list.capacity(0.5, 0, 10);
  list.capacity(1.5, 0, 400);
  check_close(played(kind, list), {1.6, 0, 0, 100});
}

BOOST_DATA_TEST_CASE(flows_that_end_within_a_nanosecond_end_together_in_the_order_of_their_start, data::make(both), kind) {
  const std::vector<double> order = isolated([kind = kind] {
    auto network = make_network(kind);
    std::vector<double> seen;
    network->on_done = [&](std::uint64_t tag, bool, double time_s) { seen.insert(seen.end(), {static_cast<double>(tag), time_s}); };
    for (int i = 0; i < 3; ++i) network->add_link(1e12);
    const LinkId routes[] = {0, 1, 2};
    network->start(0, {&routes[0], 1}, 1'000'000'000'300, 7);
    network->start(0, {&routes[1], 1}, 1'000'000'000'000, 5);
    network->start(0, {&routes[2], 1}, 1'000'000'009'000, 6);
    while (network->next_time_s() < infinity) network->fire();
    return seen;
  });
  check_close(order, {7, 1, 5, 1, 6, 1.000000009});
}

BOOST_DATA_TEST_CASE(a_flow_may_be_started_from_the_report_of_another, data::make(both), kind) {
  const std::vector<double> ends = isolated([kind = kind] {
    auto network = make_network(kind);
    const LinkId route[] = {network->add_link(10)};
    std::vector<double> seen;
    network->on_done = [&](std::uint64_t tag, bool, double time_s) {
      seen.push_back(time_s);
      if (tag < 4) network->start(time_s, route, 10, tag + 1);
    };
    network->start(0, route, 10, 0);
    while (network->next_time_s() < infinity) network->fire();
    return seen;
  });
  check_close(ends, {1, 2, 3, 4, 5});
}

BOOST_DATA_TEST_CASE(misuse_is_caught_as_our_bug, data::make(both), kind) {
  for (const int misuse : {0, 1, 2, 3})
    BOOST_CHECK_THROW(isolated([&, kind = kind] {
      auto network = make_network(kind);
      network->on_done = [](std::uint64_t, bool, double) {};
      const LinkId route[] = {network->add_link(10)};
      network->start(1, route, 10, 0);
      if (misuse == 0) network->start(0.5, route, 10, 1);              // the past
      if (misuse == 1) network->start(2.5, route, 10, 1);              // over a completion
      if (misuse == 2) network->start(1, route, 0, 1);                 // nothing to move
      if (misuse == 3) network->start(1, std::span<const LinkId>(), 10, 1);  // no way
      return std::vector<double>{};
    }), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(both_networks_agree_on_random_flow_lists) {
  double worst = 0;
  int failed = 0, refused = 0, finished = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    // From few flows on many links to hundreds alive on few links.
    const FlowList list = random_flows(seed, seed % 2 ? 12 : 72, 300, seed % 4 < 2 ? 0.05 : 5, seed > 8);
    const std::vector<double> reference = played(NetworkKind::simgrid, list), ours = played(NetworkKind::fluid, list);
    BOOST_REQUIRE_EQUAL(reference.size(), ours.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (std::isinf(reference[i])) {
        BOOST_TEST(ours[i] == reference[i]);
        ++refused;
        continue;
      }
      const double error = reference[i] == 0 ? std::abs(ours[i]) : std::abs(ours[i] / reference[i] - 1);
      worst = std::max(worst, error);
      BOOST_TEST(error <= 1e-12, "seed " << seed << " event " << i << ": simgrid " << reference[i] << " fluid " << ours[i]);
      if (i < list.events.size()) ++(reference[i] < 0 ? failed : finished);
    }
  }
  BOOST_TEST_MESSAGE("worst relative difference " << worst << ", " << finished << " finished, " << failed << " failed, " << refused << " refused");
  BOOST_TEST(failed > 100);
  BOOST_TEST(refused > 100);
  BOOST_TEST(finished > 8000);
}
