// What dispatch, experts' stand-in and combine must give, computed without any window: every value in the same order and
// with the same roundings as the kernels, so a check compares bits.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/all_to_all_routing.hpp"

namespace rackcast::a2a {

// gain: [ranks * experts_per_rank]. input: bf16 [tokens][hidden]. Result: bf16 [tokens][hidden].
std::vector<uint16_t> reference(const Shape& shape, const RankTokens& tokens, const std::vector<uint16_t>& input,
                                const std::vector<float>& gain);

std::vector<uint16_t> draw_input(const Shape& shape, int tokens, uint64_t seed);  // bf16, N(0, 1)
std::vector<float> draw_gain(const Shape& shape, uint64_t seed);                  // 0.5 to 1.5, one per expert

}  // namespace rackcast::a2a
