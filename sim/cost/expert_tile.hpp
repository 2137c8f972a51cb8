// Experts are multiplied in tiles of rows: a kernel picks the tile from the rows that its experts would get if every choice of
// the tokens it sees were its own (half of that, a power of two from 8 to 128: the steps that tables of flashinfer's
// MXFP4 kernels show), and multiplies a tile's empty rows, too.
#pragma once
#include <algorithm>
#include <cmath>

namespace rackcast {

constexpr double smallest_expert_tile = 8, largest_expert_tile = 128;

// choices_per_slot: tokens that reach the rank x top_k / slots of the rank
inline double expert_tile(double choices_per_slot) {
  const double half = choices_per_slot / 2;
  if (half <= smallest_expert_tile) return smallest_expert_tile;
  if (half >= largest_expert_tile) return largest_expert_tile;
  int exponent = 0;
  const double mantissa = std::frexp(half, &exponent);
  return std::ldexp(1.0, mantissa == 0.5 ? exponent - 1 : exponent);
}

// Expected rows with the empty ones, when `rows` fall on `touched` experts by chance: half of each expert's last tile.
inline double padded_rows(double rows, double touched, double tile) {
  return std::max(touched * tile, rows + touched * tile / 2);
}

}  // namespace rackcast
