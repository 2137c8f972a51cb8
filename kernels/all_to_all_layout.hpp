// Shape of one expert all-to-all and where its rows and flags lie in a rank's window. Plain data, used on host and GPU.
// A window holds, twice (even and odd epochs), what every source rank sends here: a stripe of rows per source, so that
// no two ranks ever write the same row, one flag per source, and the expert results that the sources pull back.
#pragma once
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define RACKCAST_BOTH __host__ __device__
#else
#define RACKCAST_BOTH
#endif

namespace rackcast::a2a {

enum class Payload : int32_t { bf16, fp8_block };  // fp8_block: e4m3 with one UE8M0 scale per 32 values

constexpr int top_k_max = 8;
constexpr int piece_values = 512;  // one warp moves a row in pieces of this many values
constexpr int scale_block = 32;
constexpr int hidden_max = 8192;
constexpr int experts_max = 1 << 15;  // of all ranks together: they are divided by a product of 31 bits

// What a received row needs to know besides its values.
struct RowMeta {
  int32_t token = 0;                 // index on the source rank
  int32_t experts = 0;               // how many of the token's experts live here
  int16_t expert[top_k_max] = {};    // index within this rank
  float weight[top_k_max] = {};
  int32_t unused[2] = {};
};
static_assert(sizeof(RowMeta) == 64);

struct Shape {
  int32_t ranks = 0;
  int32_t tokens_max = 0;       // capacity of a stripe: most tokens that one rank may send in one epoch
  int32_t hidden = 0;           // multiple of piece_values
  int32_t top_k = 0;            // at most top_k_max
  int32_t experts_per_rank = 0;
  Payload payload = Payload::bf16;

  RACKCAST_BOTH int64_t payload_bytes() const {
    return payload == Payload::bf16 ? int64_t{2} * hidden : int64_t{hidden} + hidden / scale_block;
  }
  RACKCAST_BOTH int64_t dispatch_row_bytes() const { return payload_bytes() + int64_t{sizeof(RowMeta)}; }
  RACKCAST_BOTH int64_t dispatch_row_stride() const { return (dispatch_row_bytes() + 127) / 128 * 128; }  // whole lines
  RACKCAST_BOTH int64_t combine_row_bytes() const { return int64_t{2} * hidden; }
  RACKCAST_BOTH int pieces() const { return hidden / piece_values; }

  RACKCAST_BOTH int64_t dispatch_region_bytes() const { return int64_t{ranks} * tokens_max * dispatch_row_stride(); }
  RACKCAST_BOTH int64_t combine_region_bytes() const { return int64_t{ranks} * tokens_max * combine_row_bytes(); }
  RACKCAST_BOTH int64_t flags_bytes() const { return int64_t{3} * 2 * ranks * 8; }  // arrived, ready, barrier
  RACKCAST_BOTH int64_t window_bytes() const {
    return 2 * (dispatch_region_bytes() + combine_region_bytes()) + flags_bytes();
  }

  // Row that `source` writes here as its `slot`-th row.
  RACKCAST_BOTH int64_t dispatch_row(uint32_t epoch, int source, int64_t slot) const {
    return (epoch & 1) * dispatch_region_bytes() + (int64_t{source} * tokens_max + slot) * dispatch_row_stride();
  }
  // Expert result for that row; `source` pulls it.
  RACKCAST_BOTH int64_t combine_row(uint32_t epoch, int source, int64_t slot) const {
    return 2 * dispatch_region_bytes() + (epoch & 1) * combine_region_bytes() +
           (int64_t{source} * tokens_max + slot) * combine_row_bytes();
  }
  // Flags are 64-bit words: epoch in the upper half, a count in the lower.
  RACKCAST_BOTH int64_t flag(int kind, uint32_t epoch, int peer) const {
    return 2 * (dispatch_region_bytes() + combine_region_bytes()) +
           ((int64_t{kind} * 2 + (epoch & 1)) * ranks + peer) * 8;
  }
};
constexpr int flag_arrived = 0;  // count = rows that the peer sent here
constexpr int flag_ready = 1;    // the peer's expert results may be pulled
constexpr int flag_barrier = 2;

// nullptr when the shape can be run, else why not.
const char* shape_problem(const Shape& shape);

}  // namespace rackcast::a2a
