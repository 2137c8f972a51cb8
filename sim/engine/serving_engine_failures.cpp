// What a failure does to a serving engine.
#include <algorithm>

#include "sim/engine/serving_engine.hpp"

namespace rackcast {

void ServingEngine::halt(double now_s) {
  totals_.busy_s = busy_s(now_s);
  halted_ = true;
  running_ = false;
  ++generation_;
}

// What the user has of an answer: whole tokens. At least one is left, so that there is something to go on with.
void ServingEngine::keep_answer(RequestId id) {
  Request& request = arena_[id];
  std::uint32_t whole = 0;
  if (request.state == RequestState::decoding) whole = std::min(static_cast<std::uint32_t>(generated(request)), request.tokens_left - 1);
  totals_.kept_tokens += whole;
  request.prompt_tokens += whole + (request.seeded ? 1 : 0);
  request.tokens_left -= whole;
}

void ServingEngine::release_decode(RequestId id) {
  Request& request = arena_[id];
  ranks_[request.decode_rank].kv.release_private(request.decode_private_tokens);
  DecodeRankLoad& load = decode_loads_[request.decode_rank];
  --load.requests;
  load.kv_tokens -= request.decode_private_tokens;
  load.kv_free += request.decode_private_tokens;
  request.decode_private_tokens = 0;
}

std::vector<std::uint32_t> ServingEngine::reset() {
  RACKCAST_CHECK(halted_, "a working engine was reset");
  std::vector<std::uint32_t> moves;
  moves.reserve(posting_.size());
  for (const Posting& posting : posting_) moves.push_back(posting.move);
  ranks_.clear();
  for (std::uint32_t r = 0; r < shape_.ranks; ++r) ranks_.emplace_back(shape_.kv_tokens);
  chunks_.clear();
  joining_.clear();
  started_.clear();
  posting_.clear();
  posted_.clear();
  finishing_ = FinishRing();
  decoding_ = 0;
  decode_topics_.assign(decode_topics_.size(), 0.0);
  for (TargetLoad& target : targets_) {
    target.queued_tokens = 0;
    target.requests = 0;
    target.down = true;
  }
  for (DecodeRankLoad& load : decode_loads_) load = {0, 0, -1};
  return moves;
}

void ServingEngine::come_back() {
  halted_ = false;
  for (TargetLoad& target : targets_) target.down = false;
  for (DecodeRankLoad& load : decode_loads_) load.kv_free = shape_.kv_tokens;
}

void ServingEngine::slow_down(std::uint32_t gpu, double factor) {
  slow_by_gpu_.resize(shape_.gpus, 1);
  slow_by_gpu_[gpu] = factor;
  slowest_gpu_ = *std::max_element(slow_by_gpu_.begin(), slow_by_gpu_.end());
}

// Ranks meet twice a layer, so the whole step goes at the pace of the slowest GPU.
void ServingEngine::slow(StepTime& time) const {
  for (double StepTime::*part : {&StepTime::attention_s, &StepTime::moe_s, &StepTime::other_s, &StepTime::head_s, &StepTime::draft_s}) {
    time.total_s += time.*part * (slowest_gpu_ - 1);
    time.*part *= slowest_gpu_;
  }
}

}  // namespace rackcast
