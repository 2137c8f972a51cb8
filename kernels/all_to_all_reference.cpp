#include "kernels/all_to_all_reference.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/block_fp8.hpp"
#include "kernels/draws.hpp"

namespace rackcast::a2a {

namespace {

// The row as it arrives: through FP8 blocks, or unchanged.
std::vector<float> received(const Shape& shape, const uint16_t* row) {
  std::vector<float> values(static_cast<std::size_t>(shape.hidden));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = bf16_to_float(row[i]);
  if (shape.payload == Payload::bf16) return values;
  for (std::size_t block = 0; block < values.size(); block += scale_block) {
    float largest = 0;
    for (std::size_t i = block; i < block + scale_block; ++i) largest = std::max(largest, std::fabs(values[i]));
    const float scale = ue8m0_to_float(ue8m0_for(largest));
    for (std::size_t i = block; i < block + scale_block; ++i) values[i] = e4m3_to_float(float_to_e4m3(values[i] / scale)) * scale;
  }
  return values;
}

}  // namespace

std::vector<uint16_t> reference(const Shape& shape, const RankTokens& tokens, const std::vector<uint16_t>& input,
                                const std::vector<float>& gain) {
  const auto hidden = static_cast<std::size_t>(shape.hidden);
  const auto top_k = static_cast<std::size_t>(shape.top_k);
  std::vector<uint16_t> output(static_cast<std::size_t>(tokens.tokens) * hidden);
  for (std::size_t t = 0; t < static_cast<std::size_t>(tokens.tokens); ++t) {
    const std::vector<float> row = received(shape, &input[t * hidden]);
    std::vector<float> sum(hidden, 0.0F);
    for (int32_t owner = 0; owner < shape.ranks; ++owner) {
      float factor = 0;
      bool here = false;
      for (std::size_t j = 0; j < top_k; ++j) {
        const int32_t expert = tokens.expert[t * top_k + j];
        if (expert / shape.experts_per_rank != owner) continue;
        here = true;
        factor = std::fma(tokens.weight[t * top_k + j], gain[static_cast<std::size_t>(expert)], factor);
      }
      if (!here) continue;
      for (std::size_t i = 0; i < hidden; ++i) sum[i] += bf16_to_float(float_to_bf16(factor * row[i]));
    }
    for (std::size_t i = 0; i < hidden; ++i) output[t * hidden + i] = float_to_bf16(sum[i]);
  }
  return output;
}

std::vector<uint16_t> draw_input(const Shape& shape, int tokens, uint64_t seed) {
  Draws draws(seed);
  std::vector<uint16_t> input(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(shape.hidden));
  for (uint16_t& value : input) value = float_to_bf16(static_cast<float>(draws.normal()));
  return input;
}

std::vector<float> draw_gain(const Shape& shape, uint64_t seed) {
  Draws draws(seed);
  std::vector<float> gain(static_cast<std::size_t>(shape.ranks) * static_cast<std::size_t>(shape.experts_per_rank));
  for (float& value : gain) value = static_cast<float>(0.5 + draws.uniform());
  return gain;
}

}  // namespace rackcast::a2a
