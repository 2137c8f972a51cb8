// An open-loop list of flows and capacity changes, played on one network.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "sim/engine/network.hpp"

namespace rackcast::test {

struct FlowEvent {
  double time_s = 0;
  std::vector<LinkId> route;  // empty: a capacity change
  std::uint64_t bytes = 0;
  LinkId link = 0;
  double bytes_per_s = 0;
};

struct FlowList {
  std::vector<double> links;  // capacities
  std::vector<FlowEvent> events;
  void flow(double time_s, std::vector<LinkId> route, std::uint64_t bytes) { events.push_back({time_s, std::move(route), bytes, 0, 0}); }
  void capacity(double time_s, LinkId link, double bytes_per_s) { events.push_back({time_s, {}, 0, link, bytes_per_s}); }
};

// For each event the date at which its flow ended; negative if it failed then, -infinity if it was refused, 0 for
// capacity changes. Then the bytes carried by each link.
inline std::vector<double> play(const FlowList& list, Network& network) {
  std::vector<double> ends(list.events.size(), 0);
  network.on_done = [&](std::uint64_t tag, bool ok, double time_s) { ends[tag] = ok ? time_s : -time_s; };
  for (const double capacity : list.links) network.add_link(capacity);
  for (std::size_t i = 0; i <= list.events.size(); ++i) {
    const double until = i < list.events.size() ? list.events[i].time_s : std::numeric_limits<double>::max();
    while (network.next_time_s() <= until) network.fire();
    if (i == list.events.size()) break;
    const FlowEvent& event = list.events[i];
    if (event.route.empty()) network.set_capacity(event.time_s, event.link, event.bytes_per_s);
    else if (!network.start(event.time_s, event.route, event.bytes, i)) ends[i] = -std::numeric_limits<double>::infinity();
  }
  for (LinkId link = 0; link < list.links.size(); ++link) ends.push_back(network.bytes_carried(link));
  return ends;
}

// Flows over one to four of `links` links; several at one date; capacities fall, rise, fail and recover.
inline FlowList random_flows(std::uint64_t seed, int links, int flows, double spread_s, bool changes) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double low, double high) { return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53; };
  FlowList list;
  for (int i = 0; i < links; ++i) list.links.push_back(random() % 8 == 0 ? 50e9 : random() % 16 == 0 ? std::numeric_limits<double>::infinity() : 900e9);
  std::vector<FlowEvent> events;
  double date = 0;
  for (int i = 0; i < flows; ++i) {
    if (random() % 3 != 0) date = uniform(0, spread_s);
    FlowEvent event;
    event.time_s = date;
    const std::size_t hops = 1 + random() % 4;
    bool finite = false;
    while (event.route.size() < hops || !finite) {
      if (event.route.size() >= 8) { event.route.clear(); continue; }
      const LinkId link = static_cast<LinkId>(random() % static_cast<unsigned>(links));
      if (std::find(event.route.begin(), event.route.end(), link) != event.route.end()) continue;
      finite = finite || !std::isinf(list.links[link]);
      event.route.push_back(link);
    }
    event.bytes = static_cast<std::uint64_t>(std::exp(uniform(0, std::log(4e9))));
    events.push_back(event);
  }
  for (int i = 0; changes && i < flows / 4; ++i) {
    FlowEvent event;
    event.time_s = random() % 4 == 0 ? events[random() % static_cast<unsigned>(flows)].time_s : uniform(0, 1.2 * spread_s);
    event.link = static_cast<LinkId>(random() % static_cast<unsigned>(links));
    const double nominal = list.links[event.link];
    const std::uint64_t kind = random() % 5;
    event.bytes_per_s = kind == 0 ? 0 : kind == 1 || std::isinf(nominal) ? nominal : nominal * uniform(0.05, 2);
    events.push_back(event);
  }
  std::stable_sort(events.begin(), events.end(), [](const FlowEvent& a, const FlowEvent& b) { return a.time_s < b.time_s; });
  list.events = std::move(events);
  return list;
}

}  // namespace rackcast::test
