#include "sim/trace/agentx.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/trace/lengths.hpp"
#include "sim/trace/min_tree.hpp"
#include "sim/trace/play.hpp"
#include "sim/trace/start_point.hpp"

namespace rackcast {
namespace {

struct Lane {
  Play play;
  std::uint32_t row = 0;           // session plan
  std::uint32_t play_id = 0;
  std::uint32_t primers_left = 0;  // in flight
  std::uint32_t warmup_left = 0;   // requests still to send
};

struct InFlight {
  std::uint32_t lane = 0;
  std::uint32_t node = 0;
  std::uint32_t serial = 0;        // counts the uses of the slot; upper half of the request id
  bool primer = false;
};

// Due times inside plays and in the tree are on a clock that runs ahead of the engine's by all idle time left out so far
// (the system guard), so that one addition moves every timer.
class Agentx final : public Load {
 public:
  // Without ideal hits (ideal_cached_blocks stays 0) less is to be done.
  explicit Agentx(const AgentxOptions& options, bool ideal_hits = true)
      : options_(options), shared_plans_(options.plans ? options.plans : session_plans(*options.trace)), plans_(*shared_plans_),
        ideal_hits_(ideal_hits), due_(options.lanes), lanes_(options.lanes), next_row_(options.lanes) {
    for (std::uint32_t lane = 0; lane < options.lanes; ++lane) place(lane);
    phase_ = primers_.empty() ? LoadPhase::warmup : LoadPhase::primer;
    start_measuring_when_warm();
  }

  double next_time_s() const override {
    if (stopped_) return never_s;
    return primers_.empty() ? std::max(now_s_, due_.min() - skipped_s_) : now_s_;
  }

  void take_due(double now_s, std::vector<LoadRequest>& out) override {
    now_s_ = now_s;
    if (stopped_) return;
    for (const Primer& primer : primers_) out.push_back(give(primer.lane, primer.node, LoadPhase::primer));
    primers_.clear();
    if (phase_ == LoadPhase::primer) phase_ = LoadPhase::warmup;
    while (due_.min() - skipped_s_ <= now_s) {
      const std::uint32_t index = due_.lowest();
      Lane& lane = lanes_[index];
      const std::uint32_t node = lane.play.issue(plan_of(lane), ahead(now_s), gap_scale());
      if (phase_ != LoadPhase::measured && --lane.warmup_left == 0) --lanes_warming_;
      out.push_back(give(index, node, phase_));
      refresh(index);
    }
  }

  void finished(std::uint64_t id, double now_s) override {
    now_s_ = now_s;
    const auto slot = static_cast<std::uint32_t>(id);
    const InFlight call = slots_[slot];
    RACKCAST_CHECK(call.serial == id >> 32, "a finished request is in flight");
    free_.push_back(slot);
    --in_flight_;
    Lane& lane = lanes_[call.lane];
    if (call.primer) {
      --lane.primers_left;
    } else {
      lane.play.finish(plan_of(lane), call.node, ahead(now_s), gap_scale());
      if (lane.play.done(plan_of(lane))) begin_play(lane, next_row_++, now_s);
    }
    if (phase_ == LoadPhase::measured) guard_tree(lane, now_s);
    refresh(call.lane);
    if (phase_ == LoadPhase::measured) guard_system(now_s);
    else start_measuring_when_warm();
  }

  void preload(const std::function<void(const LoadRequest&)>& warmed) override {
    std::vector<LoadRequest> round;
    while (phase_ != LoadPhase::measured) {
      round.clear();
      take_due(now_s_, round);
      RACKCAST_CHECK(!round.empty(), "the warm-up of a load goes on until it is done");
      for (const LoadRequest& request : round) warmed(request);
      for (const LoadRequest& request : round) finished(request.id, now_s_);
    }
  }

  LoadPhase phase() const override { return phase_; }
  bool exhausted() const override { return stopped_; }
  void stop() override { stopped_ = true; }
  std::uint32_t lanes() const override { return options_.lanes; }

 private:
  struct Primer {
    std::uint32_t lane, node;
  };

  const SessionPlan& plan_of(const Lane& lane) const { return plans_[lane.row]; }
  double ahead(double now_s) const { return now_s + skipped_s_; }
  double gap_scale() const { return phase_ == LoadPhase::measured && options_.think_time ? 1 : 0; }

  // The first play: inside its session, or at turn 0 when the start range is empty.
  void place(std::uint32_t index) {
    Lane& lane = lanes_[index];
    lane.warmup_left = options_.warmup_requests;
    if (lane.warmup_left > 0) ++lanes_warming_;
    begin_play(lane, index, 0);
    const SessionPlan& plan = plan_of(lane);
    if (options_.start_max > 0) {
      const double share = start_share(options_.seed, plan.session().id, index, index >= plans_.size(), options_.start_min, options_.start_max);
      const double from_s = plan.first_start_s() + share * (plan.last_start_s() - plan.first_start_s());
      const std::vector<std::uint32_t> primers = lane.play.start_inside(plan, from_s, 0);
      for (const std::uint32_t node : primers) primers_.push_back({index, node});
      lane.primers_left = static_cast<std::uint32_t>(primers.size());
    }
    refresh(index);
  }

  void begin_play(Lane& lane, std::size_t row, double now_s) {
    lane.row = static_cast<std::uint32_t>(row % plans_.size());
    lane.play_id = next_play_++;
    lane.play.start(plan_of(lane), ahead(now_s));
  }

  LoadRequest give(std::uint32_t index, std::uint32_t node, LoadPhase phase) {
    Lane& lane = lanes_[index];
    const SessionPlan& plan = plan_of(lane);
    const TraceRequest& recorded = options_.trace->requests[plan.nodes()[node].request];
    LoadRequest request;
    request.id = open_slot(index, node, phase == LoadPhase::primer);
    request.lane = index;
    request.play = lane.play_id;
    request.stream = plan.nodes()[node].stream;
    // A server reads and writes at least one token.
    request.input_tokens = std::max(1U, recorded.input_tokens);
    request.output_tokens = phase == LoadPhase::measured ? limited(std::max(1U, recorded.output_tokens), options_.output_limit) : 1;
    request.block_tokens = plan.session().block_tokens;
    request.runs = options_.trace->runs_of(recorded);
    if (ideal_hits_) request.ideal_cached_blocks = lane.play.see(plan, request.runs, plan.segments(recorded));
    request.phase = phase;
    ++in_flight_;
    return request;
  }

  std::uint64_t open_slot(std::uint32_t lane, std::uint32_t node, bool primer) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    InFlight& call = slots_[slot];
    call = {lane, node, call.serial + 1, primer};
    return (std::uint64_t{call.serial} << 32) | slot;
  }

  void refresh(std::uint32_t index) {
    const Lane& lane = lanes_[index];
    const bool held = phase_ != LoadPhase::measured && (lane.primers_left > 0 || lane.warmup_left == 0);
    due_.set(index, held ? never_s : lane.play.next_s());
  }

  // Once everything has drained, each lane keeps its next full gap and the earliest one fires now.
  void start_measuring_when_warm() {
    if (in_flight_ > 0 || !primers_.empty() || lanes_warming_ > 0) return;
    phase_ = LoadPhase::measured;
    for (std::uint32_t index = 0; index < lanes_.size(); ++index) {
      lanes_[index].play.restart_gaps(ahead(now_s_), gap_scale());
      guard_tree(lanes_[index], now_s_);
      refresh(index);
    }
    skipped_s_ += due_.min() - ahead(now_s_);
  }

  void guard_tree(Lane& lane, double now_s) {
    if (lane.play.in_flight() > 0) return;
    const double idle_s = lane.play.next_s() - ahead(now_s);
    RACKCAST_CHECK(idle_s < never_s, "an idle tree has a next request");
    if (options_.tree_idle_cap_s > 0 && idle_s > options_.tree_idle_cap_s) lane.play.shift(idle_s - options_.tree_idle_cap_s);
  }

  void guard_system(double now_s) {
    if (in_flight_ > 0 || options_.system_idle_cap_s <= 0) return;
    const double idle_s = due_.min() - ahead(now_s);
    if (idle_s > options_.system_idle_cap_s) skipped_s_ += idle_s - options_.system_idle_cap_s;
  }

  AgentxOptions options_;
  std::shared_ptr<const SessionPlans> shared_plans_;
  const SessionPlans& plans_;
  bool ideal_hits_;
  MinTree due_;
  std::vector<Lane> lanes_;
  std::vector<Primer> primers_;  // not given out yet
  std::vector<InFlight> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t next_row_ = 0;
  std::uint32_t next_play_ = 0;
  std::uint32_t lanes_warming_ = 0;
  std::uint64_t in_flight_ = 0;
  double now_s_ = 0;
  double skipped_s_ = 0;
  bool stopped_ = false;
  LoadPhase phase_ = LoadPhase::primer;
};

}  // namespace

std::shared_ptr<const SessionPlans> session_plans(const Trace& trace) {
  if (trace.block_ids_global)
    throw UserError(trace.source, 0, 0, "", "holds arrivals of a service, no agent sessions; replay it with kind: open_loop");
  auto plans = std::make_shared<SessionPlans>();
  for (const Session& session : trace.sessions) {
    if (session.requests_count == 0) continue;
    plans->emplace_back(trace, session);
    if (plans->back().nodes().empty()) plans->pop_back();  // subagents of nobody
  }
  if (plans->empty()) throw UserError(trace.source, 0, 0, "", "no session has a request of a main agent to replay");
  return plans;
}

std::unique_ptr<Load> make_agentx(const AgentxOptions& options) { return std::make_unique<Agentx>(options); }

LaneDemand lane_demand(const AgentxOptions& asked, double duration_s) {
  if (!asked.think_time) return {never_s, never_s, never_s, 0};  // no gaps: an instant server is asked without end
  // Lanes are alike: so many of them say what any number would ask.
  constexpr std::uint32_t enough_lanes = 4096;
  AgentxOptions options = asked;
  options.lanes = std::min(asked.lanes, enough_lanes);
  const double scale = static_cast<double>(asked.lanes) / options.lanes;
  Agentx load(options, false);
  load.preload([](const LoadRequest&) {});
  const double start_s = load.next_time_s();
  double input = 0, output = 0;
  // Gaps may be 0 or shorter than any server (a tiny tree_idle_cap): so many requests say what all would.
  constexpr std::uint64_t enough_requests = 5'000'000;
  std::uint64_t requests = 0;
  double covered_s = duration_s;
  std::vector<LoadRequest> due;
  while (load.next_time_s() < start_s + duration_s) {
    const double now_s = load.next_time_s();
    if (requests > enough_requests) {
      covered_s = now_s - start_s;
      break;
    }
    due.clear();
    load.take_due(now_s, due);
    for (const LoadRequest& request : due) {
      input += request.input_tokens;
      output += request.output_tokens;
    }
    requests += due.size();
    for (const LoadRequest& request : due) load.finished(request.id, now_s);
  }
  if (!(covered_s > 0)) return {never_s, never_s, never_s, 0};
  const double count = static_cast<double>(requests);
  return {scale * (input + output) / covered_s, scale * output / covered_s, count / options.lanes / (covered_s / 3600), requests ? input / count : 0};
}

}  // namespace rackcast
