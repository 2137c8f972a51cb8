// Fidelity `flow`: timers and messages of an engine's ranks on the clock and the network.
#include <algorithm>

#include "sim/engine/simulation.hpp"

namespace rackcast {

void Simulation::rank_ready(std::uint32_t global_rank) {
  const Target at = all_ranks_[global_rank];
  engines_[at.engine].flow_step().timer_ended(at.rank, now_s_);
  exchange(at.engine);
}

void Simulation::message_landed(std::uint64_t tag) {
  const Target at = all_ranks_[static_cast<std::uint32_t>(tag)];
  engines_[at.engine].flow_step().landed(at.rank, tag & dispatch_tag ? FlowStep::Direction::dispatch : FlowStep::Direction::combine, now_s_);
  exchange(at.engine);
}

// Starts what the engine's step asks for. An exchange does not fill a port, so its bytes are stretched by what it reaches
// of it: alone it takes the time that was measured, and beside other flows it takes its share of the port.
void Simulation::exchange(std::uint32_t e) {
  FlowStep& step = engines_[e].flow_step();
  for (const FlowStep::Timer& timer : step.timers) queue_.add(now_s_ + timer.after_s, EventKind::rank_ready, first_rank_[e] + timer.rank);
  step.timers.clear();
  const std::uint32_t gpu = places_[e].first_gpu;
  for (const FlowStep::Send& send : step.sends) {
    const ExchangePhase& rates = step.exchange(send.direction);
    const bool near = topology_.same_domain(gpu + send.from, gpu + send.to);
    const double stretch = near ? topology_.options().nvlink_bytes_per_s / rates.link_bytes_per_s
                                : topology_.options().nic_bytes_per_s / rates.nic_bytes_per_s;
    const auto bytes = static_cast<std::uint64_t>(std::max(1.0, send.bytes * stretch));
    const std::uint64_t tag = (send.direction == FlowStep::Direction::dispatch ? dispatch_tag : combine_tag) | (first_rank_[e] + send.to);
    ++outcome_.exchange_flows;
    RACKCAST_CHECK(network_.start(now_s_, topology_.route(gpu + send.from, gpu + send.to), bytes, tag), "a link is down");
  }
  step.sends.clear();
  if (step.take_through()) queue_.add(now_s_ + step.rest_s(), EventKind::iteration_done, e | engines_[e].generation() << 16);
}

}  // namespace rackcast
