// Host half of permute and unpermute: between tokens in their order and rows grouped by expert.
// permute: from expert ids [tokens][k] count the rows of each expert, place the experts' segments (aligned), quantise each
// token once to e4m3 (a power-of-two scale a row and 128 columns) and write it to its k rows.
// unpermute: y[token] = sum_k weight[token][k] * row[position[token][k]] + shared[token], fp32 sums, bf16 in and out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rackcast::kernels {

// k distinct experts a token, drawn by popularity: balanced (uniform) or zipf06/zipf10/zipf14. Same arguments, same ids.
std::vector<std::int32_t> draw_expert_ids(int tokens, int experts, int top_k, const std::string& spread, std::uint64_t seed);

// References in double. rows are dequantised; positions index rows.
std::vector<double> reference_unpermute(const std::vector<double>& rows, const std::vector<std::int32_t>& positions,
                                        const std::vector<double>& weights, const std::vector<double>& shared, int hidden);

struct QuantisedRow {
  std::vector<std::uint8_t> codes;
  std::vector<double> scales;  // one a 128 columns
};
QuantisedRow reference_quantise(const std::vector<double>& row);

}  // namespace rackcast::kernels
