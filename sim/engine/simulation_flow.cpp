// A request's way: arrival, routing, prompt, hand-over, answer.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/engine/simulation.hpp"

namespace rackcast {

void Simulation::arrive(const LoadRequest& ask) {
  const RequestId id = arena_.add();
  Request& request = arena_[id];
  request.ask = ask;
  request.arrival_s = now_s_;
  request.life = ++lives_;
  request.hand = ++lives_;
  request.prompt_tokens = std::max(1U, ask.input_tokens);
  const bool answers = engines_.size() > prompt_engines_ || engines_.front().shape().role == EngineRole::aggregated;
  request.answer_tokens = request.tokens_left = answers ? std::max(1U, ask.output_tokens) : 1;
  ++outcome_.arrivals;
  if (ask.phase == LoadPhase::measured) {
    ++outcome_.arrivals_measured;
    count_in_flight(+1);
  }
  const bool fits = engines_.front().can_ever_hold(request) &&
                    (engines_.size() == prompt_engines_ || engines_.back().can_ever_hold(request));
  if (fits) return come_in(id);
  ++outcome_.refused;
  // A closed loop asks again at once: with nothing but refusals its clock would stand still.
  refused_now_ = refused_at_s_ == now_s_ ? refused_now_ + 1 : 1;
  refused_at_s_ = now_s_;
  if (load_.lanes() > 0 && refused_now_ > 10000 + 1000ULL * load_.lanes())
    throw UserError(fmt::format("the load stands still: prompt and answer ({} and {} tokens) do not fit a rank's KV memory, and the next request comes at once",
                                request.prompt_tokens, request.answer_tokens));
  send_away(id);
}

void Simulation::route(RequestId id, bool first) {
  if (!any_left(0, prompt_engines_) || !any_left(prompt_engines_, engines_.size())) return lose(id);
  if (!any_up(0, prompt_engines_)) {
    arena_[id].state = RequestState::stranded;
    return stranded_.push_back(arena_, id);
  }
  const LoadRequest& ask = arena_[id].ask;
  const RouteQuery query{.lane = ask.lane, .play = ask.play, .runs = ask.runs, .block_tokens = ask.block_tokens, .input_tokens = ask.input_tokens};
  tier_matches_.clear();
  const std::uint32_t target = router_->pick(query, target_loads_, *this);
  const std::uint32_t expected_hit = ask.runs.empty() ? 0 : matched_tokens(target, query);
  engines_[targets_[target].engine].enqueue(id, targets_[target].rank, expected_hit, first);
  wake(targets_[target].engine);
}

std::uint32_t Simulation::matched_tokens(std::uint32_t target, const RouteQuery& query) const {
  const auto [e, r] = targets_[target];
  if (!engines_[e].shape().prefix_cache) return 0;
  std::uint32_t blocks = engines_[e].kv(r).matched_blocks(query.play, query.runs);
  if (const KvCache* tier = host_tier_of(e, r)) blocks = std::max(blocks, tier_match(tier, query));
  return engines_[e].states().usable(query.play, query.runs, blocks, query.block_tokens) * query.block_tokens;
}

void Simulation::expect(std::uint32_t target, const RouteQuery& query) const {
  const auto [e, r] = targets_[target];
  engines_[e].kv(r).prefetch(query.play, query.runs);
  if (const KvCache* tier = host_tier_of(e, r)) tier->prefetch(query.play, query.runs);
}

// Targets of one node share its tier, and a router asks about several of them: each tier is asked once a query.
std::uint32_t Simulation::tier_match(const KvCache* tier, const RouteQuery& query) const {
  for (const auto& [asked, blocks] : tier_matches_)
    if (asked == tier) return blocks;
  return tier_matches_.emplace_back(tier, tier->matched_blocks(query.play, query.runs)).second;
}

bool Simulation::host_match(RequestId id) {
  Request& request = arena_[id];
  KvCache* tier = host_tier_of(request.prefill_engine, request.prefill_rank);
  if (!tier) return false;
  const LoadRequest& ask = request.ask;
  const std::uint32_t blocks = engines_[request.prefill_engine].states().usable(ask.play, ask.runs, tier->matched_blocks(ask.play, ask.runs), ask.block_tokens);
  if (blocks <= request.held.blocks) return false;
  request.host_held = tier->acquire(ask.play, ask.runs, blocks);
  return true;
}

void Simulation::start_host_load(RequestId id) {
  const Request& request = arena_[id];
  const std::uint32_t blocks = request.host_held.blocks - request.held.blocks;
  const double bytes = static_cast<double>(blocks) * request.ask.block_tokens * options_.transfer.bytes_per_token;
  start_host_flow(moves_.add({MoveKind::host_load, id, request.life, bytes, 0, 0}));
}

void Simulation::host_load_done(RequestId id) {
  Request& request = arena_[id];
  engines_[request.prefill_engine].host_load_done(id);
  host_tier_of(request.prefill_engine, request.prefill_rank)->release(request.ask.play, request.ask.runs, request.host_held);
  request.host_held = {};
  wake(request.prefill_engine);
}

void Simulation::prompt_done(RequestId id) {
  Request& request = arena_[id];
  ServingEngine& engine = engines_[request.prefill_engine];
  write_through(request.prefill_engine, request.prefill_rank, request.ask, request.held.blocks);
  --request.tokens_left;
  ++request.tokens_from_prefill;
  if (request.preemptions == 0) request.prompt_done_s = now_s_;
  const bool last = request.tokens_left == 0;
  if (last || engine.shape().role == EngineRole::aggregated) {
    if (request.first_token_s == not_yet_s) request.first_token_s = now_s_;
    if (!last) return engine.join(id);
    engine.leave(id);
    return finish(id);
  }
  request.state = RequestState::handing_over;
  request.computed_s = now_s_;
  if (!any_left(prompt_engines_, engines_.size())) {
    engine.leave(id);
    return lose(id);
  }
  if (request.sends_layers) {
    if (request.parts_under_way == 0) hand_over_done(id);
    return;
  }
  handing_over_.push_back(arena_, id);
  decode_room_changed_ = true;
}

void Simulation::answer_done(RequestId id) {
  decode_room_changed_ = !handing_over_.empty();
  finish(id);
}

// A decode engine put it back: the prompt, now with the answer so far, is computed again.
void Simulation::preempted(RequestId id) {
  arena_[id].decode_reserved = arena_[id].sends_layers = false;
  decode_room_changed_ = decode_room_changed_ || !handing_over_.empty();
  route(id, true);
}

void Simulation::finish(RequestId id) {
  const Request& request = arena_[id];
  const LoadRequest& ask = request.ask;
  ++finished_;
  if (options_.admission.limits()) --inside_;
  computed_tokens_ += static_cast<double>(request.scheduled_tokens);
  answered_tokens_ += request.answer_tokens - request.tokens_from_prefill;
  if (request.preemptions == 0 && request.retries == 0) {
    const std::uint32_t hits = std::min(request.hit_gpu_tokens + request.hit_host_tokens, request.prompt_tokens - 1);
    RACKCAST_CHECK(request.scheduled_tokens == request.prompt_tokens - hits, "a prompt was computed in part, or twice");
    RACKCAST_CHECK(request.tokens_from_prefill == (request.seeded ? 1U : 0U), "a prompt gave more than one token");
  }
  if (ask.phase == LoadPhase::measured) {
    count_in_flight(-1);
    ++outcome_.finished_measured;
    if (request.retries > 0) ++outcome_.retried_measured;
    if (!options_.failures.sources.empty())
      outcome_.goodput.add(now_s_ - outcome_.window_start_s, static_cast<double>(ask.input_tokens) + request.answer_tokens);
    RequestRecord record;
    record.arrival_s = request.arrival_s;
    record.admitted_s = request.admitted_s;
    record.prompt_done_s = request.prompt_done_s;
    record.first_token_s = request.first_token_s;
    record.finish_s = now_s_;
    record.lane = ask.lane;
    record.play = ask.play;
    record.stream = ask.stream;
    record.input_tokens = ask.input_tokens;
    record.output_tokens = request.answer_tokens;
    record.input_block_tokens = ask.input_block_tokens();
    record.hit_gpu_tokens = request.hit_gpu_tokens;
    record.hit_host_tokens = request.hit_host_tokens;
    record.hit_ideal_tokens = ask.ideal_cached_blocks * ask.block_tokens;
    record.prefill_engine = request.prefill_engine;
    record.prefill_rank = request.prefill_rank;
    record.decode_engine = request.decode_engine;
    record.decode_rank = request.decode_rank;
    record.preemptions = request.preemptions;
    observer_.finished(record);
  }
  remove(id);
}

void Simulation::remove(RequestId id) {
  if (detailed_) observer_.ended(arena_[id], now_s_);
  const std::uint64_t load_id = arena_[id].ask.id;
  arena_.remove(id);
  load_.finished(load_id, now_s_);
  if (!window_closed_) load_next_s_ = now_s_;  // ask the load again in this instant
}

// Puts the warmed caches in place without simulating the warm-up: each of its requests is routed, and its prompt is
// resident at once.
void Simulation::preload() {
  load_.preload([this](const LoadRequest& ask) {
    const RouteQuery query{.lane = ask.lane, .play = ask.play, .runs = ask.runs, .block_tokens = ask.block_tokens, .input_tokens = ask.input_tokens};
    tier_matches_.clear();
    const auto [e, r] = targets_[router_->pick(query, target_loads_, *this)];
    engines_[e].preload(r, ask);
    std::uint32_t blocks = 0;
    for (const HashRun& run : ask.runs) blocks += run.count;
    write_through(e, r, ask, blocks);
  });
}

// The tier of the node that the rank's first GPU is in.
const KvCache* Simulation::host_tier_of(std::uint32_t engine, std::uint32_t rank) const {
  return host_tiers_.empty() ? nullptr : &host_tiers_[topology_.node_of(places_[engine].first_gpu + rank)];
}
KvCache* Simulation::host_tier_of(std::uint32_t engine, std::uint32_t rank) {
  return const_cast<KvCache*>(std::as_const(*this).host_tier_of(engine, rank));
}

// Copies to host memory take the other direction of the host link and compete with nothing: only their space counts.
void Simulation::write_through(std::uint32_t engine, std::uint32_t rank, const LoadRequest& ask, std::uint32_t blocks) {
  KvCache* tier = host_tier_of(engine, rank);
  if (tier && blocks > 0) tier->insert(ask.play, ask.runs, blocks, ask.block_tokens);
}

std::uint32_t Simulation::gpu_of(std::uint32_t engine, std::uint32_t rank, RequestId id) const {
  const EngineShape& shape = engines_[engine].shape();
  // A tensor-parallel rank spans GPUs that hold the same latent rows; requests take turns on their links.
  const std::uint32_t within = shape.ranks == shape.gpus ? rank : id % shape.gpus;
  return places_[engine].first_gpu + within;
}

}  // namespace rackcast
