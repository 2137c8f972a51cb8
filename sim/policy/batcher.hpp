// What one engine iteration holds: decode first, then prompt chunks in order of arrival under the token budget
// (continuous batching with chunked prefill). Pure arithmetic on a snapshot of one DP rank.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "sim/policy/choices.hpp"

namespace rackcast {

struct BatchLimits {
  std::uint32_t tokens = 16384;   // of one iteration of one DP rank
  std::uint32_t requests = 256;   // being prefilled or decoded on one DP rank
  std::uint32_t prompt_tokens = 0;      // of one prompt in an iteration; 0: as the budget has room
  std::uint32_t answer_iterations = 0;  // without prompts after one with them, while the engine has answers to make
};

// Prompt tokens that fit beside the rank's decode tokens.
inline std::uint32_t prefill_budget(const BatchLimits& limits, std::uint32_t decode_tokens) {
  return limits.tokens > decode_tokens ? limits.tokens - decode_tokens : 0;
}

inline std::uint32_t chunk_tokens(std::uint32_t remaining, std::uint32_t budget, std::uint32_t most = 0) {
  return std::min({remaining, budget, most > 0 ? most : budget});
}

// KV tokens that a request must find free to start: its whole life when a full cache makes requests wait, only its
// prompt when a full cache preempts.
inline std::int64_t kv_needed(KvFullPolicy policy, std::int64_t prompt_tokens, std::int64_t output_tokens) {
  return policy == KvFullPolicy::wait ? prompt_tokens + output_tokens : prompt_tokens;
}

// A decode rank as a hand-over sees it.
struct DecodeRankLoad {
  std::uint32_t requests = 0;     // running and on their way
  std::int64_t kv_tokens = 0;     // taken by them
  std::int64_t kv_free = 0;
};

// The rank with room that has least (by count or by tokens), or -1 when none has room.
inline int pick_decode_rank(std::span<const DecodeRankLoad> ranks, BalancePolicy balance, std::uint32_t most_requests,
                            std::int64_t needed_tokens) {
  int best = -1;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const DecodeRankLoad& rank = ranks[i];
    if (rank.requests >= most_requests || rank.kv_free < needed_tokens) continue;
    if (best < 0) {
      best = static_cast<int>(i);
      continue;
    }
    const DecodeRankLoad& least = ranks[static_cast<std::size_t>(best)];
    const bool by_count = rank.requests < least.requests;
    const bool by_tokens = rank.kv_tokens < least.kv_tokens;
    const bool tie = balance == BalancePolicy::count ? rank.requests == least.requests : rank.kv_tokens == least.kv_tokens;
    if (balance == BalancePolicy::count ? by_count || (tie && by_tokens) : by_tokens || (tie && by_count)) best = static_cast<int>(i);
  }
  return best;
}

}  // namespace rackcast
