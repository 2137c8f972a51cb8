// Iterations. Admission and KV memory are in serving_engine_kv.cpp.
#include "sim/engine/serving_engine.hpp"

#include <algorithm>

#include "sim/engine/engine_experts.hpp"
#include "sim/policy/adaptive_verification.hpp"

namespace rackcast {

namespace {

constexpr std::uint64_t basis_first = 16, basis_every = 256;  // iterations sampled; the mix of bases changes slowly
constexpr std::uint32_t prefill_tail = 128;         // rows that V4.1's decoder layers run on, see RankBatch

// One seed per request and engine run, whatever else was drawn.
std::uint64_t mix(std::uint64_t seed, std::uint64_t id) { return seed * 0x9e3779b97f4a7c15ULL ^ (id + 0x632be59bd9b4e019ULL) * 0xff51afd7ed558ccdULL; }

}  // namespace

ServingEngine::ServingEngine(std::uint32_t index, const EngineShape& shape, const StepModel& model,
                             const Acceptance& acceptance, std::uint64_t seed, RequestArena& arena, EngineEvents& events)
    : index_(index), shape_(shape), own_model_(model), acceptance_(acceptance), seed_(seed), arena_(arena), events_(events),
      states_(shape.retention_interval), batch_(shape.ranks), layered_(std::max(1U, shape.layers), mix(seed, index)), flow_(mix(seed, index)) {
  ranks_.reserve(shape.ranks);
  for (std::uint32_t r = 0; r < shape.ranks; ++r) ranks_.emplace_back(shape.kv_tokens);
}

void ServingEngine::use_loads(std::span<TargetLoad> targets, std::span<DecodeRankLoad> decode_loads) {
  targets_ = targets;
  decode_loads_ = decode_loads;
  for (DecodeRankLoad& load : decode_loads_) load.kv_free = shape_.kv_tokens;
}

void ServingEngine::use_experts(std::shared_ptr<EngineExperts> experts) {
  experts_ = std::move(experts);
  decode_topics_.assign(experts_ ? experts_->topics() : 0, 0.0);
}

std::size_t ServingEngine::topic_of(const Request& request) const {
  return topic_of_session(seed_, request.ask.lane, request.ask.play, decode_topics_.size());
}

// Draws what the step's tokens ask of the experts.
ExpertLoad ServingEngine::draw_load(double now_s) {
  if (!experts_) return expert_load;
  double tokens = 0;
  for (const RankBatch& batch : batch_) tokens += batch.decode_tokens + batch.prefill_tokens;
  topics_ = decode_topics_;
  for (const Chunk& chunk : chunks_) ++topics_[topic_of(arena_[chunk.id])];
  return experts_->begin_step(now_s, tokens, topics_);
}

bool ServingEngine::begin(double now_s, double& duration_s) {
  RACKCAST_CHECK(!running_, "an engine began an iteration inside another");
  if (halted_) return false;
  now_s_ = now_s;
  for (RankBatch& batch : batch_) batch.new_requests = batch.host_s = batch.host_behind_s = 0;
  for (const RequestId id : joining_) start_decoding(id);
  started_.swap(joining_);
  joining_.clear();
  chunks_.clear();
  post_descriptors();
  if (has_decode() && shape_.when_full == KvFullPolicy::preempt)
    for (std::uint32_t r = 0; r < shape_.ranks; ++r) make_room_for_growth(r);
  if (has_decode()) {
    verify_ = acceptance_.query_tokens() - 1;
    if (shape_.adaptive_verify && decoding_ > 0) choose_verify_length();
    fill_decode(1 + verify_);
  }
  const bool answers_only = decoding_ > 0 && since_prompts_ < shape_.limits.answer_iterations;
  if (has_prefill())
    for (std::uint32_t r = 0; r < shape_.ranks; ++r) compose_prefill(r, answers_only);
  since_prompts_ = chunks_.empty() ? std::min(since_prompts_, shape_.limits.answer_iterations) + 1 : 0;
  StepTime time;
  ExpertLoad drawn;
  if (decoding_ == 0 && chunks_.empty()) {
    if (posted_.empty()) return false;
    for (const RankBatch& batch : batch_) time.host_s = std::max(time.host_s, batch.host_s + batch.host_behind_s);
    time.total_s = time.host_s;
  } else {
    drawn = draw_load(now_s);
    time = model_->step(batch_, drawn);
    if (drawn.link_taken > 0) {
      ExpertLoad alone = drawn;
      alone.link_taken = 0;
      totals_.eplb_slowdown_s += time.total_s - model_->step(batch_, alone).total_s;
    }
    if (slowest_gpu_ > 1) slow(time);
  }
  duration_s = time.total_s;
  running_ = true;
  flowing_ = shape_.flows && time.total_s > time.host_s;
  if (flowing_) {
    collapsed_ = time;
    iteration_s_ = time.total_s;
    flow_.begin(*model_, batch_, drawn, time.total_s, now_s);
    if (totals_.iterations % basis_every == 0) {
      totals_.layered_collapsed_s += time.total_s;
      totals_.layered_expected_s += time.total_s * flow_.expected_ratio();
    }
    return true;
  }
  if (shape_.layers > 0 && time.total_s > time.host_s) {
    const double collapsed_s = time.total_s;
    layered_.plan(*model_, batch_, drawn, time);
    layered_.next(duration_s);
    if (totals_.iterations % basis_every == 0) {
      totals_.layered_collapsed_s += collapsed_s;
      totals_.layered_expected_s += collapsed_s * layered_.expected_ratio();
    }
  }
  iteration_s_ = time.total_s;
  account(time);
  return true;
}

void ServingEngine::fill_decode(double query_tokens) {
  for (std::uint32_t r = 0; r < shape_.ranks; ++r) {
    RankBatch& batch = batch_[r];
    const double requests = ranks_[r].decoding;
    const double context = ranks_[r].context + requests * query_tokens;  // the verified tokens see themselves
    batch.decode_requests = requests;
    batch.decode_tokens = requests * query_tokens;
    batch.decode_context = context;
    batch.decode_query_context = query_tokens * context;
    batch.draft_requests = shape_.drafts ? requests : 0;
  }
}

// Looked at again when the number of requests has moved, and now and then because contexts grow.
void ServingEngine::choose_verify_length() {
  constexpr std::uint32_t again_after = 64;  // steps
  const bool moved = decoding_ * 10 > chosen_for_ * 11 || decoding_ * 11 < chosen_for_ * 10;
  const int drafts = verify_;
  if (chosen_for_ > 0 && !moved && ++chosen_ago_ < again_after) {
    verify_ = chosen_verify_;
    return;
  }
  std::vector<double> kept, seconds;
  for (RankBatch& batch : batch_) {
    batch.prefill_tokens = batch.prefill_requests = batch.prefill_context = batch.prefill_query_context = 0;
    batch.prefill_tail_tokens = batch.prefill_tail_query_context = 0;
  }
  for (int length = 0; length <= drafts; ++length) {
    fill_decode(1 + length);
    kept.push_back(acceptance_.kept(length));
    seconds.push_back(model_->step(batch_, experts_ ? experts_->peek() : expert_load).total_s);
  }
  verify_ = chosen_verify_ = best_verify_length(kept, seconds);
  chosen_for_ = decoding_;
  chosen_ago_ = 0;
  advance_ = kept[static_cast<std::size_t>(verify_)] / acceptance_.mean();
}

// One after another on each rank's host.
void ServingEngine::post_descriptors() {
  posted_.clear();
  for (const Posting& posting : posting_) {
    RankBatch& batch = batch_[posting.rank];
    double& sum = shape_.posts_behind_launch ? batch.host_behind_s : batch.host_s;
    sum += posting.seconds;
    posted_.push_back({posting.move, sum});
  }
  posting_.clear();
}

bool ServingEngine::next_layer(double& duration_s) { return layered_.next(duration_s); }

void ServingEngine::account(const StepTime& time) {
  ++totals_.iterations;
  totals_.busy_s += time.total_s;
  totals_.parts.total_s += time.total_s;
  totals_.parts.attention_s += time.attention_s;
  totals_.parts.moe_s += time.moe_s;
  totals_.parts.other_s += time.other_s;
  totals_.parts.head_s += time.head_s;
  totals_.parts.draft_s += time.draft_s;
  totals_.parts.host_s += time.host_s;
  if (!chunks_.empty()) totals_.prefill_busy_s += time.total_s;
  if (decoding_ > 0) {
    totals_.decode_iterations += 1;
    totals_.decode_requests += decoding_;
    for (const RankBatch& batch : batch_) {
      totals_.decode_context += batch.decode_context;
      totals_.verified_tokens += batch.decode_tokens;
    }
  }
  if (time.total_s <= time.host_s) return;  // nothing but posting
  if (totals_.iterations > basis_first && totals_.iterations % basis_every != 0) return;
  const std::vector<OperatorCost> operators = model_->operators(batch_);
  totals_.basis_sampled_s += time.total_s;
  totals_.basis.add(operators, time.total_s);
  add_outside(outside_, operators, time.total_s);
}

double ServingEngine::busy_s(double now_s) const {
  if (!running_) return totals_.busy_s;
  if (flowing_) return totals_.busy_s + (now_s - now_s_);  // counted at its end
  return totals_.busy_s - std::max(0.0, now_s_ + iteration_s_ - now_s);
}

EngineTotals ServingEngine::totals_at(double now_s) const {
  EngineTotals totals = totals_;
  totals.busy_s = busy_s(now_s);
  return totals;
}

void ServingEngine::end(double now_s) {
  running_ = false;
  if (flowing_) {  // what the exchange really took shows in its side
    const double difference = now_s - flow_.began_s() - collapsed_.total_s;
    collapsed_.moe_s += difference;
    collapsed_.total_s += difference;
    account(collapsed_);
  }
  if (shape_.role == EngineRole::decode)
    for (const RequestId id : started_)  // unless it was put back before the step
      if (arena_[id].state == RequestState::decoding && arena_[id].join_step == step_) events_.answer_started(id);
  if (decoding_ > 0) {
    progress_ += advance_;
    if (progress_ >= 1 - 1e-12) {
      progress_ -= 1;
      ++step_;
      for (Rank& rank : ranks_) {
        rank.context += rank.growth_per_step;
        rank.grown += rank.growth_per_step;
      }
      for (RequestId id = finishing_.take(arena_, step_); id != no_request; id = finishing_.take(arena_, step_))
        finish_decoding(id);
    }
  }
  for (const Chunk& chunk : chunks_) {
    Request& request = arena_[chunk.id];
    if (request.state != RequestState::prompt_done) continue;  // an earlier chunk of a longer prompt
    events_.prompt_done(chunk.id);
  }
}

// Prompts under way first, then new ones, under what the rank's decode tokens leave of the budget.
void ServingEngine::compose_prefill(std::uint32_t r, bool answers_only) {
  Rank& rank = ranks_[r];
  RankBatch& batch = batch_[r];
  batch.prefill_tokens = batch.prefill_requests = batch.prefill_context = batch.prefill_query_context = 0;
  batch.prefill_tail_tokens = batch.prefill_tail_query_context = 0;
  std::uint32_t budget = answers_only ? 0 : prefill_budget(shape_.limits, static_cast<std::uint32_t>(batch.decode_tokens));
  for (RequestId id = rank.prefilling.head; id != no_request && budget > 0;) {
    const RequestId next = arena_[id].next;
    budget -= schedule_chunk(id, rank, r, budget);
    if (arena_[id].state == RequestState::prompt_done) rank.prefilling.erase(arena_, id);
    id = next;
  }
  while (budget > 0 && !rank.waiting.empty() && rank.requests < shape_.limits.requests) {
    const RequestId id = rank.waiting.head;
    if (!admit(id, rank, r)) break;
    rank.waiting.erase(arena_, id);
    if (arena_[id].state == RequestState::loading) continue;
    budget -= schedule_chunk(id, rank, r, budget);
    if (arena_[id].state == RequestState::prefilling) rank.prefilling.push_back(arena_, id);
  }
}

// The next chunk of a prompt. Its blocks are visible to requests that are scheduled later: one GPU works in order.
std::uint32_t ServingEngine::schedule_chunk(RequestId id, Rank& rank, std::uint32_t r, std::uint32_t budget) {
  Request& request = arena_[id];
  const std::uint32_t tokens = chunk_tokens(request.prompt_tokens - request.computed_tokens, budget, shape_.limits.prompt_tokens);
  request.computed_tokens += tokens;
  request.scheduled_tokens += tokens;
  if (shape_.prefix_cache && !request.ask.runs.empty()) {
    const std::uint32_t full = request.computed_tokens / request.ask.block_tokens;
    if (full > request.held.blocks)
      request.private_tokens -= rank.kv.append(request.ask.play, request.ask.runs, full, request.ask.block_tokens, request.held);
  }
  const double chunk = tokens, context = request.computed_tokens, tail = std::min(tokens, prefill_tail);
  RankBatch& batch = batch_[r];
  batch.prefill_tokens += chunk;
  batch.prefill_requests += 1;
  batch.prefill_context += context;
  batch.prefill_query_context += chunk * (context - chunk / 2);
  batch.prefill_tail_tokens += tail;
  batch.prefill_tail_query_context += tail * (context - tail / 2);
  totals_.prefill_tokens += chunk;
  totals_.prefill_chunks += 1;
  totals_.prefill_context += context;
  totals_.prefill_query_context += chunk * (context - chunk / 2);
  totals_.prefill_tail_tokens += tail;
  totals_.prefill_tail_query_context += tail * (context - tail / 2);
  targets_[r].queued_tokens -= chunk;
  chunks_.push_back({id, tokens});
  request.state = request.computed_tokens == request.prompt_tokens ? RequestState::prompt_done : RequestState::prefilling;
  if (request.state == RequestState::prompt_done) totals_.prefill_requests += 1;
  return tokens;
}

void ServingEngine::join(RequestId id) {
  Request& request = arena_[id];
  request.state = RequestState::joining;
  if (shape_.role == EngineRole::aggregated) {
    request.decode_engine = index_;
    request.decode_rank = request.prefill_rank;
  }
  joining_.push_back(id);
}

void ServingEngine::start_decoding(RequestId id) {
  Request& request = arena_[id];
  Rank& rank = ranks_[request.decode_rank];
  const std::uint32_t steps = acceptance_.steps_for(request.tokens_left, mix(seed_, request.ask.id + request.preemptions * 0x10001ULL));
  request.state = RequestState::decoding;
  request.join_step = step_;
  request.tokens_per_step = static_cast<double>(request.tokens_left) / steps;
  finishing_.add(arena_, id, step_, step_ + steps);
  request.older = rank.youngest;
  request.younger = no_request;
  (rank.youngest == no_request ? rank.oldest : arena_[rank.youngest].younger) = id;
  rank.youngest = id;
  ++rank.decoding;
  ++decoding_;
  if (experts_) ++decode_topics_[topic_of(request)];
  ++batch_[request.decode_rank].new_requests;
  rank.context += request.prompt_tokens;
  rank.growth_per_step += request.tokens_per_step;
}

void ServingEngine::drop_from_running(RequestId id, Rank& rank, double answer_tokens) {
  const Request& request = arena_[id];
  (request.older == no_request ? rank.oldest : arena_[request.older].younger) = request.younger;
  (request.younger == no_request ? rank.youngest : arena_[request.younger].older) = request.older;
  --rank.decoding;
  --decoding_;
  if (experts_) --decode_topics_[topic_of(request)];
  rank.context -= request.prompt_tokens + answer_tokens;
  rank.grown -= answer_tokens;
  rank.growth_per_step -= request.tokens_per_step;
  if (rank.decoding == 0) rank.context = rank.grown = rank.growth_per_step = 0;  // no rounding survives an idle rank
}

void ServingEngine::finish_decoding(RequestId id) {
  Request& request = arena_[id];
  Rank& rank = ranks_[request.decode_rank];
  drop_from_running(id, rank, request.tokens_left);
  totals_.kept_tokens += request.tokens_left;
  if (shape_.role == EngineRole::aggregated) {
    leave(id);
  } else {
    rank.kv.release_private(request.decode_private_tokens);
    DecodeRankLoad& load = decode_loads_[request.decode_rank];
    --load.requests;
    load.kv_tokens -= request.decode_private_tokens;
    load.kv_free += request.decode_private_tokens;
    request.decode_private_tokens = 0;
  }
  events_.answer_done(id);
}

EngineTotals EngineTotals::minus(const EngineTotals& before) const {
  EngineTotals d = *this;
  d.iterations -= before.iterations;
  d.preemptions -= before.preemptions;
  for (double EngineTotals::*sum : {&EngineTotals::busy_s, &EngineTotals::prefill_tokens, &EngineTotals::prefill_requests,
                                    &EngineTotals::decode_iterations, &EngineTotals::decode_requests, &EngineTotals::decode_context,
                                    &EngineTotals::prefill_busy_s, &EngineTotals::asked_tokens, &EngineTotals::hit_gpu_tokens, &EngineTotals::hit_host_tokens,
                                    &EngineTotals::kept_tokens, &EngineTotals::verified_tokens, &EngineTotals::basis_sampled_s, &EngineTotals::prefill_chunks,
                                    &EngineTotals::prefill_context, &EngineTotals::prefill_query_context,
                                    &EngineTotals::prefill_tail_tokens, &EngineTotals::prefill_tail_query_context,
                                    &EngineTotals::eplb_slowdown_s, &EngineTotals::layered_collapsed_s, &EngineTotals::layered_expected_s})
    d.*sum -= before.*sum;
  for (double StepTime::*part : {&StepTime::total_s, &StepTime::attention_s, &StepTime::moe_s, &StepTime::other_s,
                                 &StepTime::head_s, &StepTime::draft_s, &StepTime::host_s})
    d.parts.*part -= before.parts.*part;
  for (double BasisShare::*share : {&BasisShare::measured, &BasisShare::published, &BasisShare::transferred, &BasisShare::assumed})
    d.basis.*share -= before.basis.*share;
  return d;
}

}  // namespace rackcast
