#include "sim/engine/flow_step.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/engine/layered_step.hpp"

namespace rackcast {

void FlowStep::begin(const StepModel& model, std::span<const RankBatch> batch, const ExpertLoad& load, double collapsed_s, double now_s) {
  phases_ = model.phases(batch, load);
  RACKCAST_CHECK(phases_.layers_s.size() == batch.size() && !phases_.experts.empty(), "fidelity flow needs ranks that exchange");
  began_s_ = now_s;
  collapsed_s_ = collapsed_s;
  kind_of_.clear();
  for (std::uint32_t kind = 0; kind < phases_.experts.size(); ++kind)
    kind_of_.insert(kind_of_.end(), static_cast<std::size_t>(phases_.experts[kind].layers), kind);
  spread_.resize(kind_of_.size() * batch.size());
  std::normal_distribution<double> normal;
  for (double& factor : spread_) factor = std::max(0.0, 1 + LayeredStep::jitter * normal(random_));
  ranks_.assign(batch.size(), Rank{});
  ranks_waiting_ = ranks_through_ = 0;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) start_layer(r);
}

void FlowStep::start_layer(std::uint32_t rank) {
  Rank& r = ranks_[rank];
  if (r.layer == kind_of_.size()) {
    r.at = At::through;
    ++ranks_through_;
    return;
  }
  r.at = At::attention;
  timers.push_back({rank, attention_s(rank) * spread_[r.layer * ranks_.size() + rank] + experts_of(r.layer).before_s[rank]});
}

void FlowStep::timer_ended(std::uint32_t rank, double now_s) {
  Rank& r = ranks_[rank];
  switch (r.at) {
    case At::attention:
      if (!experts_of(r.layer).fused) {
        r.at = At::dispatching;
        send_all(rank, Direction::dispatch, now_s);
        return go_on(rank, now_s);
      }
      r.at = At::waiting;
      if (++ranks_waiting_ < ranks_.size()) return;
      ranks_waiting_ = 0;
      fused_began_s_ = now_s;
      for (Rank& other : ranks_) other.at = At::dispatching;
      for (std::uint32_t from = 0; from < ranks_.size(); ++from) send_all(from, Direction::dispatch, now_s);
      return;
    case At::experts:
      r.at = At::combining;
      send_all(rank, Direction::combine, now_s);
      return go_on(rank, now_s);
    case At::finishing:
      ++r.layer;
      return start_layer(rank);
    default: RACKCAST_CHECK(false, "a rank's timer ended that it had not set");
  }
}

// Rank `from` sends its rows out, or returns the rows of all others.
void FlowStep::send_all(std::uint32_t from, Direction direction, double now_s) {
  const ExpertPhases& e = experts_of(ranks_[from].layer);
  for (std::uint32_t to = 0; to < ranks_.size(); ++to) {
    if (to == from) continue;
    const double bytes = direction == Direction::dispatch ? e.rows[from] * e.share[to] * e.dispatch.row_bytes
                                                          : e.rows[to] * e.share[from] * e.combine.row_bytes;
    if (bytes >= 1) sends.push_back({from, to, direction, bytes});
    else landed(to, direction, now_s);  // a flag without data
  }
}

void FlowStep::landed(std::uint32_t to, Direction direction, double now_s) {
  ++(direction == Direction::dispatch ? ranks_[to].arrived : ranks_[to].returned);
  go_on(to, now_s);
}

void FlowStep::go_on(std::uint32_t rank, double now_s) {
  Rank& r = ranks_[rank];
  const std::size_t others = ranks_.size() - 1;
  const ExpertPhases* e = r.at == At::dispatching || r.at == At::combining ? &experts_of(r.layer) : nullptr;
  if (r.at == At::dispatching && r.arrived == others) {
    r.arrived = 0;
    if (!e->fused) {
      r.at = At::experts;
      timers.push_back({rank, e->experts_s[rank]});
      return;
    }
    r.at = At::combining;
    send_all(rank, Direction::combine, now_s);
  }
  if (r.at == At::combining && r.returned == others) {
    r.returned = 0;
    if (e->fused) {
      r.at = At::finishing;
      timers.push_back({rank, std::max(0.0, fused_began_s_ + e->fused_s(rank, now_s - fused_began_s_) - now_s)});
      return;
    }
    ++r.layer;
    start_layer(rank);
  }
}

bool FlowStep::take_through() {
  if (ranks_through_ < ranks_.size() || ranks_.empty()) return false;
  ranks_through_ = 0;
  return true;
}

const ExchangePhase& FlowStep::exchange(Direction direction) const {
  const ExpertPhases& e = phases_.experts.front();
  return direction == Direction::dispatch ? e.dispatch : e.combine;
}

double FlowStep::layer_excess_s(const ExpertPhases& e) const {
  const std::size_t ranks = ranks_.size();
  std::vector<double> ends(ranks, 0), means, deviations;
  if (e.fused) {
    double all = 0, most = 0;  // rows, and those over the busiest port
    for (const double rows : e.rows) all += rows;
    for (std::size_t r = 0; r < ranks; ++r) most = std::max({most, e.rows[r] * (1 - e.share[r]), e.share[r] * (all - e.rows[r])});
    const double links_s = most * (e.dispatch.row_bytes / e.dispatch.link_bytes_per_s + e.combine.row_bytes / e.combine.link_bytes_per_s);
    for (std::size_t r = 0; r < ranks; ++r) ends[r] = e.fused_s(r, links_s);
  }
  const double last = *std::max_element(ends.begin(), ends.end());
  double slowest = 0;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    slowest = std::max(slowest, attention_s(r));
    means.push_back(attention_s(r) + ends[r] - last);
    deviations.push_back(LayeredStep::jitter * attention_s(r));
  }
  return expected_maximum(means, deviations) - slowest;
}

double FlowStep::expected_ratio() const {
  double excess_s = 0;
  for (const ExpertPhases& e : phases_.experts) excess_s += e.layers * layer_excess_s(e);
  return 1 + excess_s / collapsed_s_;
}

}  // namespace rackcast
