// Failures: an engine dies with the iteration that it runs; until that is noticed its requests are stuck and new ones
// still come. Then its memory is gone, its requests start again elsewhere (or end with an error), and after a restart it
// takes part again with empty caches. Links and slow GPUs change what later iterations and flows take.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "sim/engine/simulation.hpp"

namespace rackcast {

namespace {

constexpr std::uint64_t most_lost_at_once = 1'000'000;

// An engine does not survive these.
bool takes_engine(const FailureRecord& f) {
  return f.kind == FailureKind::engine || f.kind == FailureKind::gpu || (f.kind == FailureKind::nvlink && f.share >= 1);
}

}  // namespace

void Simulation::schedule_failures() {
  const auto& sources = options_.failures.sources;
  spare_gpus_ = options_.failures.spare_gpus;
  for (std::uint32_t s = 0; s < sources.size(); ++s) {
    if (sources[s].at_s >= 0) plan_failure(s, sources[s].at_s, sources[s].first_engine, sources[s].gpu);
    else plan_random_failure(s, 0);
  }
}

void Simulation::plan_failure(std::uint32_t source, double at_s, std::uint32_t engine, std::uint32_t gpu) {
  FailureRecord record;
  record.kind = options_.failures.sources[source].kind;
  record.share = options_.failures.sources[source].share;
  record.engine = engine;
  record.gpu = gpu;
  record.at_s = at_s;
  failure_source_.push_back(source);
  outcome_.failures.push_back(record);
  queue_.add(outcome_.window_start_s + at_s, EventKind::failure, static_cast<std::uint32_t>(outcome_.failures.size() - 1));
}

void Simulation::plan_random_failure(std::uint32_t s, double after_s) {
  const FailureSource& source = options_.failures.sources[s];
  NumpyRandom draws = random_stream(options_.seed, "failure", (std::uint64_t{s} << 32) + outcome_.failures.size());
  const double wait_s = -source.every_s * std::log(1.0 - draws.uniform());
  const std::uint32_t engine = source.first_engine + static_cast<std::uint32_t>(draws.below(source.engines));
  const std::uint32_t gpu = static_cast<std::uint32_t>(draws.below(source.gpus));
  plan_failure(s, after_s + wait_s, engine, gpu);
}

void Simulation::fail(std::uint32_t index) {
  const std::uint32_t source_index = failure_source_[index];
  const FailureSource& source = options_.failures.sources[source_index];
  if (source.every_s > 0) {
    if (window_closed_) return;
    plan_random_failure(source_index, outcome_.failures[index].at_s);
  }
  FailureRecord& failure = outcome_.failures[index];
  ServingEngine& engine = engines_[failure.engine];
  const std::uint32_t gpu = places_[failure.engine].first_gpu + failure.gpu;
  failure.happened = true;
  if (takes_engine(failure)) {
    if (engine.halted()) return;  // it is away already
    engine.halt(now_s_);
    experts_lost(failure.engine);
    if (detailed_) tell_failure(failure, false);
    queue_.add(now_s_ + options_.failures.detection_s, EventKind::failure_noticed, index);
    return;
  }
  if (detailed_) tell_failure(failure, false);
  if (failure.kind == FailureKind::straggler) engine.slow_down(failure.gpu, 1 / (1 - failure.share));
  if (failure.kind == FailureKind::nvlink) {
    engine.use_model(*source.slowed);
    topology_.set_nvlink_share(now_s_, network_, gpu, 1 - failure.share);
  }
  if (failure.kind == FailureKind::nic) topology_.set_nic_share(now_s_, network_, gpu, 1 - failure.share);
  if (source.lasts_s >= 0) queue_.add(now_s_ + source.lasts_s, EventKind::failure_over, index);
}

void Simulation::failure_over(std::uint32_t index) {
  FailureRecord& failure = outcome_.failures[index];
  failure.back_s = now_s_ - outcome_.window_start_s;
  if (detailed_) tell_failure(failure, true);
  if (takes_engine(failure)) return engine_back(failure.engine);
  ServingEngine& engine = engines_[failure.engine];
  const std::uint32_t gpu = places_[failure.engine].first_gpu + failure.gpu;
  if (failure.kind == FailureKind::straggler) engine.slow_down(failure.gpu, 1);
  if (failure.kind == FailureKind::nvlink) {
    engine.use_model(engine.own_model());
    topology_.set_nvlink_share(now_s_, network_, gpu, 1);
  }
  if (failure.kind == FailureKind::nic) topology_.set_nic_share(now_s_, network_, gpu, 1);
  send_stopped();
}

void Simulation::failure_noticed(std::uint32_t index) {
  const FailureSource& source = options_.failures.sources[failure_source_[index]];
  const std::uint32_t dead = outcome_.failures[index].engine;
  ServingEngine& engine = engines_[dead];
  down_[dead] = 1;
  const bool needs_spare = outcome_.failures[index].kind != FailureKind::engine;
  if (needs_spare && spare_gpus_ == 0) gone_[dead] = 1;
  else if (needs_spare) --spare_gpus_;
  std::vector<RequestId> again;
  for (RequestId id = 0; id < arena_.capacity(); ++id) {
    if (!arena_[id].alive) continue;
    const Loss loss = loss_of(id, dead);
    if (loss == Loss::nothing) continue;
    if (loss == Loss::destination) {
      ++outcome_.failures[index].resent;
      drop_destination(id);
    } else {
      drop_request(id, loss);
      again.push_back(id);
    }
  }
  for (const std::uint32_t move : engine.reset()) moves_.remove(move);
  outcome_.failures[index].held = static_cast<std::uint32_t>(again.size());
  for (const RequestId id : again) {
    if (options_.failures.in_flight == InFlightPolicy::retry) start_again(id);
    else lose(id);
  }
  decode_room_changed_ = true;
  if (!gone_[dead]) queue_.add(now_s_ + source.down_s, EventKind::failure_over, index);
  else if (!any_left(prompt_engines_, engines_.size())) give_up_answers();
  else if (!any_left(0, prompt_engines_)) release_stranded();
}

bool Simulation::any_up(std::size_t begin, std::size_t end) const {
  return std::find(down_.begin() + static_cast<std::ptrdiff_t>(begin), down_.begin() + static_cast<std::ptrdiff_t>(end), 0) != down_.begin() + static_cast<std::ptrdiff_t>(end);
}

bool Simulation::any_left(std::size_t begin, std::size_t end) const {
  if (begin == end) return true;  // a pool that is not deployed
  return std::find(gone_.begin() + static_cast<std::ptrdiff_t>(begin), gone_.begin() + static_cast<std::ptrdiff_t>(end), 0) != gone_.begin() + static_cast<std::ptrdiff_t>(end);
}

// No decode engine will ever come back: computed prompts have nowhere to go.
void Simulation::give_up_answers() {
  while (!handing_over_.empty()) {
    const RequestId id = handing_over_.head;
    handing_over_.erase(arena_, id);
    engines_[arena_[id].prefill_engine].leave(id);
    lose(id);
  }
}

// What a request loses with an engine: itself, or only the place that its prompt's KV was to go to.
Simulation::Loss Simulation::loss_of(RequestId id, std::uint32_t dead) const {
  const Request& r = arena_[id];
  if (r.state == RequestState::stranded || r.state == RequestState::at_door) return Loss::nothing;
  const bool answers = r.state == RequestState::joining || r.state == RequestState::decoding;
  if (engines_[dead].shape().role == EngineRole::aggregated) return r.prefill_engine == dead ? (answers ? Loss::answer : Loss::prompt) : Loss::nothing;
  if (answers) return r.decode_engine == dead ? Loss::answer : Loss::nothing;
  if (r.prefill_engine == dead) return Loss::prompt;
  return r.decode_reserved && r.decode_engine == dead ? Loss::destination : Loss::nothing;
}

void Simulation::drop_destination(RequestId id) {
  Request& request = arena_[id];
  request.hand = ++lives_;
  request.decode_reserved = request.sends_layers = false;
  request.decode_private_tokens = 0;
  request.parts_under_way = 0;
  if (request.state == RequestState::handing_over) handing_over_.push_back(arena_, id);
}

void Simulation::drop_request(RequestId id, Loss loss) {
  Request& request = arena_[id];
  if (loss == Loss::answer) {
    engines_[request.decode_engine].keep_answer(id);
  } else {
    if (request.state == RequestState::handing_over && !request.decode_reserved) handing_over_.erase(arena_, id);
    if (request.decode_reserved) engines_[request.decode_engine].release_decode(id);
    if (request.state == RequestState::loading)
      host_tier_of(request.prefill_engine, request.prefill_rank)->release(request.ask.play, request.ask.runs, request.host_held);
    // A first token that nobody has seen is computed again.
    if (request.state == RequestState::handing_over) {
      ++request.tokens_left;
      --request.tokens_from_prefill;
    }
  }
  request.life = ++lives_;
  request.hand = ++lives_;
  request.held = request.host_held = {};
  request.private_tokens = request.decode_private_tokens = 0;
  request.computed_tokens = request.parts_under_way = 0;
  request.decode_reserved = request.sends_layers = false;
  request.seeded = true;
}

void Simulation::start_again(RequestId id) {
  ++arena_[id].retries;
  route(id, true);
}

void Simulation::lose(RequestId id) {
  const Request& request = arena_[id];
  ++outcome_.lost;
  lost_at_once_ = now_s_ == last_loss_s_ ? lost_at_once_ + 1 : 1;
  last_loss_s_ = now_s_;
  if (lost_at_once_ > most_lost_at_once)
    throw BoundMissed(fmt::format("at {:.3f} s no engine is left for good, and users without think time ask again at once, without end", now_s_));
  if (options_.admission.limits()) --inside_;
  computed_tokens_ += static_cast<double>(request.scheduled_tokens);
  answered_tokens_ += request.answer_tokens - request.tokens_left - request.tokens_from_prefill;
  if (request.ask.phase == LoadPhase::measured) {
    count_in_flight(-1);
    ++outcome_.lost_measured;
  }
  remove(id);
}

void Simulation::engine_back(std::uint32_t engine) {
  engines_[engine].come_back();
  down_[engine] = 0;
  decode_room_changed_ = true;
  release_stranded();
  wake(engine);
}

// Those that no engine could take are routed, or lost when there will be none.
void Simulation::release_stranded() {
  const RequestQueue waiting = stranded_;
  stranded_ = {};
  for (RequestId id = waiting.head; id != no_request;) {
    const RequestId next = arena_[id].next;
    route(id, false);
    id = next;
  }
}

// A flow of a link that went down, or one that found it down.
void Simulation::send_stopped() {
  std::vector<std::uint32_t> again;
  again.swap(stopped_);
  for (const std::uint32_t move : again) {
    if (stale_free(move)) continue;
    if (moves_[move].kind == MoveKind::host_load) start_host_flow(move);
    else transfer_posted(move);
  }
}

}  // namespace rackcast
