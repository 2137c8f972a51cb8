// Admission: requests wait outside the engines while the limits say so. Their time to first token counts from arrival.
#include "sim/engine/simulation.hpp"

namespace rackcast {

void Simulation::come_in(RequestId id) {
  if (!options_.admission.limits()) return route(id, false);
  if (at_door_.empty() && admits(options_.admission, inside_, target_loads_)) {
    ++inside_;
    return route(id, false);
  }
  if (options_.admission.over_limit == OverLimit::refuse) {
    ++outcome_.turned_away;
    return send_away(id);
  }
  arena_[id].state = RequestState::at_door;  // no engine has it: none can lose it
  at_door_.push_back(arena_, id);
  ++outcome_.waited_at_door;
}

void Simulation::open_door() {
  while (!at_door_.empty() && admits(options_.admission, inside_, target_loads_)) {
    const RequestId id = at_door_.head;
    at_door_.erase(arena_, id);
    ++inside_;
    route(id, false);
  }
}

// It leaves without an answer; the load goes on as if it had one.
void Simulation::send_away(RequestId id) {
  const LoadRequest ask = arena_[id].ask;
  if (ask.phase == LoadPhase::measured) count_in_flight(-1);
  arena_.remove(id);
  load_.finished(ask.id, now_s_);
}

}  // namespace rackcast
