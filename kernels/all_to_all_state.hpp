// What the blocks of a rank share in expert dispatch and combine (protocol in all_to_all_protocol.hpp): the rank's state in memory
// and, in a block's shared memory, the batches of tokens that are on their way out.
#pragma once
#include "kernels/all_to_all_layout.hpp"

namespace rackcast::a2a {

struct alignas(16) Vec16 {
  uint32_t word[4];
};

constexpr int tile_tokens = 8;  // most tokens of a batch
constexpr int held_pieces = 2;  // pieces of rows that a warp has in registers: a batch

// Division by a number that all threads share, as a product: a division would come before the first load. Exact below 2^15.
struct Divisor {
  uint32_t inverse = 0;  // in 2^-31, rounded up
  RACKCAST_BOTH static Divisor of(int32_t number) { return {((1U << 31) + static_cast<uint32_t>(number) - 1) / static_cast<uint32_t>(number)}; }
  RACKCAST_BOTH int divide(int32_t value) const { return static_cast<int>(static_cast<uint64_t>(value) * inverse >> 31); }
};

// One rank as its blocks see it. Pointers are to memory of that rank's GPU, except window[], which reaches the peers.
struct RankState {
  Shape shape;
  Divisor by_experts, by_pieces;     // set_shape
  int32_t rank = 0;
  int32_t tokens = 0;
  char* const* window = nullptr;     // [ranks]
  const uint16_t* input = nullptr;   // bf16 [tokens][hidden]
  const int32_t* expert = nullptr;   // [tokens][top_k]
  const float* weight = nullptr;     // [tokens][top_k]
  const float* gain = nullptr;       // [experts_per_rank] stand-in for the experts: y = gain * x
  uint16_t* output = nullptr;        // bf16 [tokens][hidden]
  uint64_t* destination = nullptr;   // [tokens_max][top_k]: rank in the upper half, slot in the lower; all ones = none
  uint32_t* slot_count = nullptr;    // [2][ranks], each in a cache line of its own
  uint32_t* arrived_blocks = nullptr;  // [3]
  uint32_t* epoch = nullptr;         // [2]: last finished dispatch and combine
  uint32_t* sent = nullptr;          // [ranks]: rows of the last dispatch to each rank, for transports without flags
};
constexpr uint64_t no_destination = ~uint64_t{0};

inline void set_shape(RankState& rank, const Shape& shape) {
  rank.shape = shape;
  rank.by_experts = Divisor::of(shape.experts_per_rank);
  rank.by_pieces = Divisor::of(shape.pieces());
}

// Meta data and scales are gathered here and follow a row's values in one store of a warp: small stores of their own cost as
// many requests as whole lines do.
struct DispatchTile {
  char* row[tile_tokens][top_k_max];  // where each copy goes
  RowMeta meta[tile_tokens][top_k_max];
  Vec16 scales[tile_tokens][hidden_max / piece_values];
  int32_t copies[tile_tokens];
};
struct DispatchShared {
  DispatchTile tile[3];  // a batch whose tails are stored, one whose values are, and the next
  int32_t last;
};

constexpr int count_stride = 32;  // words: counters that many blocks add to at once should not share a line
RACKCAST_BOTH inline int64_t count_place(const Shape& shape, uint32_t epoch, int peer) {
  return (int64_t{epoch & 1} * shape.ranks + peer) * count_stride;
}
RACKCAST_BOTH inline int64_t count_words(const Shape& shape) { return int64_t{2} * shape.ranks * count_stride; }

RACKCAST_BOTH inline int rank_of(uint64_t destination) { return static_cast<int>(destination >> 32); }
RACKCAST_BOTH inline int64_t slot_of(uint64_t destination) { return static_cast<int64_t>(destination & 0xffffffffU); }

}  // namespace rackcast::a2a
