// The small kernels as their launchers see them (mathematics in small.hpp). Only for CUDA builds.
#pragma once
#include <cstdint>

#include "kernels/launcher.hpp"

namespace rackcast::kernels {

// row: bf16 [tokens][512]; pool rows of 584 bytes at slot[token].
void launch_insert(int tokens, const void* row, const float* gain, const std::int32_t* slot, std::uint8_t* pool, Stream stream);

constexpr int mhc_splits = 32;
// x: bf16 [tokens][4][hidden]; weights fp32 [24][4 hidden]; scratch floats [mhc_splits][tokens][25]; mixing fp32 [tokens][24]:
// pre, post, comb. hidden a multiple of 128.
void launch_mhc_pre(int tokens, int hidden, const void* x, const float* weights, float* scratch, float* mixing, void* y, Stream stream);
void launch_mhc_post(int tokens, int hidden, const void* x, const void* o, const float* mixing, void* out, Stream stream);

// values, gates: fp32 [tokens][512]; bias fp32 [group][512]; out bf16 [tokens / group][512].
void launch_compress(int tokens, int group, const float* values, const float* gates, const float* bias, const float* gain, void* out, Stream stream);

// index: [tokens][24] rows of 264 bytes (256 e4m3, eight UE8M0 scales, one a 32); out bf16 [tokens][24 * 256].
void launch_engram(int tokens, const std::int32_t* index, const std::uint8_t* table, void* out, Stream stream);

// For each row of bf16 logits: does its draft survive (uniform < softmax(logits)[draft]), and a token drawn from the softmax
// without the draft (largest logit + Gumbel noise of (seed, row, token)).
struct Verdict {
  float probability;   // of the draft
  std::int32_t token;  // the replacement
};
constexpr int verify_splits = 16;
// scratch: floats [rows][verify_splits][4].
void launch_verify(int rows, int vocabulary, const void* logits, const std::int32_t* drafts, std::uint64_t seed, float* scratch, Verdict* verdicts, Stream stream);

}  // namespace rackcast::kernels
