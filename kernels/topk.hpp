// Selection of the k largest of n scores a row, as indices in any order (the lowest index is not preferred among ties).
// group 8: the candidates are the maxima of 8 neighbouring scores (block top-k of V4.1's source layer).
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "kernels/family.hpp"

namespace rackcast::kernels {

// Empty when `chosen` are k different candidates of which none is beaten by one left out; else what is wrong.
std::string topk_problem(std::span<const float> scores, int group, std::span<const std::int32_t> chosen, int k);

}  // namespace rackcast::kernels
