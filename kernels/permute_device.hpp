// permute and unpermute as their launchers see them (mathematics in permute.hpp). Only for CUDA builds.
#pragma once
#include <cstdint>

#include "kernels/launcher.hpp"

namespace rackcast::kernels {

constexpr int positions_blocks = 8;  // that share the tokens

struct Permutation {
  int tokens = 0, hidden = 0, experts = 0, top_k = 0, align = 1;  // hidden a multiple of 128
  const std::int32_t* ids = nullptr;  // [tokens][top_k]
  std::int32_t* rank = nullptr;       // [tokens][top_k] of each choice among those of its expert in its share of the tokens
  std::int32_t* position = nullptr;   // [tokens][top_k] row of each choice, written by the scatter
  std::int32_t* count = nullptr;      // [experts]
  std::int32_t* offset = nullptr;     // [experts]
  std::int32_t* base = nullptr;       // [positions_blocks][experts] where an expert's rows of a share begin

  __host__ __device__ int share() const { return (tokens + positions_blocks - 1) / positions_blocks; }
};
void launch_positions(const Permutation& permutation, Stream stream);

struct QuantisedRows {
  std::uint8_t* codes = nullptr;  // [rows][hidden]
  float* scales = nullptr;        // [hidden / 128][pitch]
  int pitch = 0;
};
// After launch_positions on the same stream. x: bf16 [tokens][hidden].
void launch_scatter(const Permutation& permutation, const void* x, const QuantisedRows& rows, Stream stream);
// rows: bf16 [rows][hidden]; shared may be null; y: bf16 [tokens][hidden].
void launch_unpermute(const Permutation& permutation, const void* rows, const float* weights, const void* shared, void* y, Stream stream);

}  // namespace rackcast::kernels
