// Admission, KV memory and preemption of a serving engine.
#include <algorithm>
#include <cmath>

#include "sim/engine/serving_engine.hpp"

namespace rackcast {

namespace {

constexpr double growth_lump_tokens = 64;  // answer space is taken per rank in lumps of this many tokens a request

}  // namespace

bool ServingEngine::can_ever_hold(const Request& request) const {
  // A preempted answer is part of a later prompt.
  const bool grows = shape_.role != EngineRole::prefill || shape_.when_full == KvFullPolicy::preempt;
  const std::int64_t answer = grows ? request.tokens_left : 0;
  return std::int64_t{request.prompt_tokens} + answer + shape_.kv_fixed_tokens <= shape_.kv_tokens;
}

std::int64_t ServingEngine::decode_need(const Request& request) const {
  return kv_needed(shape_.when_full, request.prompt_tokens, request.tokens_left) + shape_.kv_fixed_tokens;
}

void ServingEngine::enqueue(RequestId id, std::uint32_t r, std::uint32_t expected_hit_tokens, bool first) {
  Request& request = arena_[id];
  request.state = RequestState::waiting;
  request.prefill_engine = index_;
  request.prefill_rank = r;
  request.queued_estimate = static_cast<double>(request.prompt_tokens - std::min(expected_hit_tokens, request.prompt_tokens - 1));
  targets_[r].queued_tokens += request.queued_estimate;
  ++targets_[r].requests;
  if (first) ranks_[r].waiting.push_front(arena_, id);
  else ranks_[r].waiting.push_back(arena_, id);
}

// Finds what the cache holds and takes the space for the rest. False: it does not fit now.
bool ServingEngine::admit(RequestId id, Rank& rank, std::uint32_t r) {
  Request& request = arena_[id];
  const bool shares = shape_.prefix_cache && !request.ask.runs.empty();
  if (shares) {
    const LoadRequest& ask = request.ask;
    const std::uint32_t most = states_.everywhere() ? 0xffffffffU : states_.usable(ask.play, ask.runs, rank.kv.matched_blocks(ask.play, ask.runs), ask.block_tokens);
    request.held = rank.kv.acquire(ask.play, ask.runs, most);
  }
  const std::int64_t found = std::int64_t{request.held.blocks} * request.ask.block_tokens;
  const std::int64_t answer = shape_.role == EngineRole::prefill ? 0 : request.tokens_left;
  const std::int64_t need = kv_needed(shape_.when_full, request.prompt_tokens, answer) + shape_.kv_fixed_tokens - found;
  if (!rank.kv.reserve(need)) {
    if (shares) rank.kv.release(request.ask.play, request.ask.runs, request.held);
    request.held = {};
    return false;
  }
  request.private_tokens = need;
  ++rank.requests;
  ++batch_[r].new_requests;
  const bool load = shares && events_.host_match(id);
  const std::uint32_t host_blocks = load ? request.host_held.blocks : request.held.blocks;
  if (!request.admitted) {
    request.admitted = true;
    request.admitted_s = now_s_;
    request.hit_gpu_tokens = static_cast<std::uint32_t>(found);
    request.hit_host_tokens = (host_blocks - request.held.blocks) * request.ask.block_tokens;
    totals_.asked_tokens += request.ask.input_block_tokens();
    totals_.hit_gpu_tokens += request.hit_gpu_tokens;
    totals_.hit_host_tokens += request.hit_host_tokens;
  }
  // A prompt that is found whole still computes its last token, for the logits.
  request.computed_tokens = std::min(host_blocks * request.ask.block_tokens, request.prompt_tokens - 1);
  targets_[r].queued_tokens += static_cast<double>(request.prompt_tokens - request.computed_tokens) - request.queued_estimate;
  request.state = load ? RequestState::loading : RequestState::prefilling;
  if (load) events_.start_host_load(id);
  return true;
}

void ServingEngine::host_load_done(RequestId id) {
  Request& request = arena_[id];
  Rank& rank = ranks_[request.prefill_rank];
  request.private_tokens -=
      rank.kv.append(request.ask.play, request.ask.runs, request.host_held.blocks, request.ask.block_tokens, request.held);
  request.state = RequestState::prefilling;
  rank.prefilling.push_back(arena_, id);
}

void ServingEngine::release_prompt_kv(Request& request, Rank& rank) {
  if (request.held.blocks > 0) rank.kv.release(request.ask.play, request.ask.runs, request.held);
  rank.kv.release_private(request.private_tokens);
  request.held = {};
  request.private_tokens = 0;
}

void ServingEngine::leave(RequestId id) {
  Request& request = arena_[id];
  Rank& rank = ranks_[request.prefill_rank];
  release_prompt_kv(request, rank);
  if (shape_.prefix_cache) {
    rank.kv.leave(shape_.kv_left_tokens);
    states_.prompt_ended(request.ask.play, request.ask.runs);
  }
  --rank.requests;
  --targets_[request.prefill_rank].requests;
}

void ServingEngine::preload(std::uint32_t r, const LoadRequest& ask) {
  if (!shape_.prefix_cache || ask.runs.empty()) return;
  std::uint32_t blocks = 0;
  for (const HashRun& run : ask.runs) blocks += run.count;
  ranks_[r].kv.insert(ask.play, ask.runs, blocks, ask.block_tokens);
  states_.prompt_ended(ask.play, ask.runs);
}

void ServingEngine::reserve_decode(RequestId id, std::uint32_t r) {
  Request& request = arena_[id];
  request.decode_engine = index_;
  request.decode_rank = r;
  request.decode_private_tokens = decode_need(request);
  RACKCAST_CHECK(ranks_[r].kv.reserve(request.decode_private_tokens), "a decode rank was promised room that it lacks");
  DecodeRankLoad& load = decode_loads_[r];
  ++load.requests;
  load.kv_tokens += request.decode_private_tokens;
  load.kv_free -= request.decode_private_tokens;
}

// when_full: preempt. Before a step every rank must hold the tokens that the step adds.
void ServingEngine::make_room_for_growth(std::uint32_t r) {
  Rank& rank = ranks_[r];
  for (;;) {
    const auto needed = static_cast<std::int64_t>(std::ceil(rank.grown + rank.growth_per_step));
    const auto lump = static_cast<std::int64_t>(growth_lump_tokens * rank.decoding);
    const bool too_little = rank.grown_reserved < needed;
    const bool too_much = rank.grown_reserved > needed + 2 * lump;
    if (!too_little && !too_much) return;
    const std::int64_t wanted = needed + lump - rank.grown_reserved;
    const std::int64_t least = needed - rank.grown_reserved;
    std::int64_t change = wanted;
    if (too_much) {
      rank.kv.release_private(-change);
    } else if (!rank.kv.reserve(wanted)) {
      change = least;
      if (!rank.kv.reserve(least)) {
        RACKCAST_CHECK(put_back_youngest(r), "KV is full, and nobody holds it");
        continue;
      }
    }
    rank.grown_reserved += change;
    if (!decode_loads_.empty()) {
      decode_loads_[r].kv_tokens += change;
      decode_loads_[r].kv_free -= change;
    }
  }
}

// The youngest request of the rank starts again later: a prompt under way, else the answer that joined last.
bool ServingEngine::put_back_youngest(std::uint32_t r) {
  Rank& rank = ranks_[r];
  ++totals_.preemptions;
  if (rank.prefilling.tail != no_request) {
    const RequestId id = rank.prefilling.tail;
    Request& request = arena_[id];
    ++request.preemptions;
    rank.prefilling.erase(arena_, id);
    targets_[r].queued_tokens -= static_cast<double>(request.prompt_tokens - request.computed_tokens);
    leave(id);
    enqueue(id, r, 0, true);
    return true;
  }
  const RequestId id = rank.youngest;
  if (id == no_request) return false;
  Request& request = arena_[id];
  ++request.preemptions;
  finishing_.remove(arena_, id);
  const double answer = generated(request);
  drop_from_running(id, rank, answer);
  const auto whole = std::min(static_cast<std::uint32_t>(answer), request.tokens_left - 1);
  totals_.kept_tokens += whole;
  request.prompt_tokens += whole + (request.seeded ? 1 : 0);  // and the token that the prefill gave
  request.tokens_left -= whole;
  request.computed_tokens = 0;
  if (shape_.role == EngineRole::aggregated) {
    leave(id);
    enqueue(id, r, 0, true);
    return true;
  }
  rank.kv.release_private(request.decode_private_tokens);
  DecodeRankLoad& load = decode_loads_[r];
  --load.requests;
  load.kv_tokens -= request.decode_private_tokens;
  load.kv_free += request.decode_private_tokens;
  request.decode_private_tokens = 0;
  events_.preempted(id);
  return true;
}

void ServingEngine::check() const {
  std::uint32_t decoding = 0;
  for (const Rank& rank : ranks_) {
    rank.kv.check();
    double context = 0, growth = 0, grown = 0;
    std::uint32_t count = 0;
    for (RequestId id = rank.oldest; id != no_request; id = arena_[id].younger, ++count) {
      const Request& request = arena_[id];
      RACKCAST_CHECK(request.state == RequestState::decoding, "a running list holds a request that does not run");
      RACKCAST_CHECK(request.finish_step > step_, "a request should have ended before");
      context += request.prompt_tokens + generated(request);
      grown += generated(request);
      growth += request.tokens_per_step;
    }
    const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-6 * (1 + std::abs(b)); };
    RACKCAST_CHECK(count == rank.decoding, "the count of decoding requests is off");
    RACKCAST_CHECK(close(rank.context, context) && close(rank.growth_per_step, growth) && close(rank.grown, grown),
                   "the token sums of a rank are off");
    decoding += count;
  }
  RACKCAST_CHECK(decoding == decoding_, "the count of decoding requests of an engine is off");
}

}  // namespace rackcast
