// Expert dispatch and combine as one block of threads sees it: push dispatch (one copy per destination rank), pull
// combine (FP32 sum in rank order), epoch-numbered flags, no resets. One source for windows that NCCL maps (LSA
// pointers), for virtual ranks on one GPU, and for threads on a CPU: the difference is the Context and the table of
// window addresses.
//
// Why it is safe to reuse half a window every other epoch: a rank ends dispatch e only with every peer's flag e, and a
// peer sends ready e only when it has read all of dispatch e. So whoever writes epoch e+2 has seen every peer past e.
//
// Context gives: block(), blocks(), thread(), threads() of the rank; warp(), warps(), lane(), lanes() of the block;
// one_lane (a thread is a lane); sync(); shared<T>(); store16(), load16(); release() - every earlier store of the block is
// visible, to peers or only to this GPU, before anything that thread 0 does next; acquire(), the other side of it; store_flag(), wait_flag(); take_slot() - the next value of
// a counter; fetch_inc_wrap(); quantise(),
// dequantise(), bf16 pairs; delay(), which tests use to shake the order of things.
#pragma once
#include "kernels/all_to_all_layout.hpp"

namespace rackcast::a2a {

struct alignas(16) Vec16 {
  uint32_t word[4];
};

constexpr int tile_tokens = 32;  // tokens whose destinations one block holds at a time

// One rank as its blocks see it. Pointers are to memory of that rank's GPU, except window[], which reaches the peers.
struct RankState {
  Shape shape;
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

// Meta data and scales are gathered here and follow a row's values in one store of a warp: small stores of their own cost as
// many requests as whole lines do.
struct DispatchTile {
  char* row[tile_tokens][top_k_max];  // where each copy goes
  RowMeta meta[tile_tokens][top_k_max];
  Vec16 scales[tile_tokens][hidden_max / piece_values];
  int32_t copies[tile_tokens];
  int32_t last;
};

constexpr int count_stride = 32;  // words: counters that many blocks add to at once should not share a line
RACKCAST_BOTH inline int64_t count_place(const Shape& shape, uint32_t epoch, int peer) {
  return (int64_t{epoch & 1} * shape.ranks + peer) * count_stride;
}
RACKCAST_BOTH inline int64_t count_words(const Shape& shape) { return int64_t{2} * shape.ranks * count_stride; }

RACKCAST_BOTH inline int rank_of(uint64_t destination) { return static_cast<int>(destination >> 32); }
RACKCAST_BOTH inline int64_t slot_of(uint64_t destination) { return static_cast<int64_t>(destination & 0xffffffffU); }

// True in every thread of the block that came last; that block then sees what all others released.
template <typename Context>
RACKCAST_BOTH bool arrive(Context& context, const RankState& rank, int phase, int32_t* last, bool for_peers = true) {
  context.release(for_peers);
  if (context.thread() == 0) {
    const auto blocks = static_cast<uint32_t>(context.blocks());
    *last = context.fetch_inc_wrap(&rank.arrived_blocks[phase], blocks - 1) == blocks - 1 ? 1 : 0;
    if (*last != 0) context.acquire(for_peers);
  }
  context.sync();
  return *last != 0;
}

// One thread for each choice of each token. The first choice that goes to a rank takes a row there and notes its meta
// data; the token's ranks are listed in ascending order, so that the sum's order does not depend on who was first.
// Everything that all choices of the token have in common is loaded and divided at once, with no loop that waits.
template <typename Context>
RACKCAST_BOTH void assign_choice(Context& context, const RankState& rank, uint32_t epoch, int t, int place, int choice, DispatchTile& tile) {
  const Shape& shape = rank.shape;
  const int32_t* experts = rank.expert + int64_t{t} * shape.top_k;
  uint64_t* kept = rank.destination + int64_t{t} * shape.top_k;
  int expert[top_k_max];
  int owner[top_k_max];
  float weight[top_k_max];
  int mine = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int j = 0; j < top_k_max; ++j) {
    expert[j] = j < shape.top_k ? experts[j] : -1;
    weight[j] = j < shape.top_k ? rank.weight[int64_t{t} * shape.top_k + j] : 0.0F;
  }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int j = 0; j < top_k_max; ++j) {
    owner[j] = j < shape.top_k ? expert[j] / shape.experts_per_rank : -1;
    if (j == choice) mine = owner[j];
  }
  bool first = true;
  int distinct = 0;
  int position = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int j = 0; j < top_k_max; ++j) {
    bool fresh = owner[j] >= 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int i = 0; i < j; ++i) fresh = fresh && owner[i] != owner[j];
    distinct += fresh ? 1 : 0;
    position += fresh && owner[j] < mine ? 1 : 0;
    if (fresh && owner[j] == mine) first = j == choice;
  }
  if (choice == 0) tile.copies[place] = distinct;
  if (choice >= distinct) kept[choice] = no_destination;
  if (!first) return;
  const uint32_t slot = context.take_slot(rank.slot_count + count_place(shape, epoch, mine), mine);  // on its way while the rest is noted
  RowMeta& meta = tile.meta[place][position];
  meta = RowMeta{};
  meta.token = t;
  int here = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int j = 0; j < top_k_max; ++j) {
    if (owner[j] != mine) continue;
    meta.expert[here] = static_cast<int16_t>(expert[j] - mine * shape.experts_per_rank);
    meta.weight[here] = weight[j];
    ++here;
  }
  meta.experts = here;
  kept[position] = (static_cast<uint64_t>(mine) << 32) | slot;
  tile.row[place][position] = rank.window[mine] + shape.dispatch_row(epoch, rank.rank, slot);
}

// What follows the values of every copy of the tile's rows: scales, then meta data, a warp a copy.
template <typename Context>
RACKCAST_BOTH void push_tails(Context& context, const RankState& rank, int count, const DispatchTile& tile) {
  const Shape& shape = rank.shape;
  const int scales = shape.payload == Payload::bf16 ? 0 : shape.pieces();  // in units of 16 bytes, as lanes store them
  const int64_t payload = shape.payload == Payload::bf16 ? int64_t{2} * shape.hidden : int64_t{shape.hidden};
  for (int i = context.warp(); i < count * shape.top_k; i += context.warps()) {
    const int place = i / shape.top_k;
    const int copy = i % shape.top_k;
    if (copy >= tile.copies[place]) continue;
    char* row = tile.row[place][copy] + payload;
    const Vec16* meta = reinterpret_cast<const Vec16*>(&tile.meta[place][copy]);
    for (int lane = context.lane(); lane < scales + 4; lane += context.lanes()) {
      context.delay(1);
      context.store16(row + 16 * lane, lane < scales ? tile.scales[place][lane] : meta[lane - scales]);
    }
  }
}

// A lane's share of a piece as it lies in the input.
struct LaneValues {
  Vec16 low, high;
  const uint16_t* piece;  // where the piece begins
};
template <typename Context>
RACKCAST_BOTH LaneValues fetch(Context& context, const RankState& rank, int first, int item, int lane) {
  const int pieces = rank.shape.pieces();
  const int64_t t = first + int64_t{item / pieces} * context.blocks();
  const uint16_t* from = rank.input + t * rank.shape.hidden + item % pieces * piece_values;
  return {context.load16(from + lane * 8), context.load16(from + 256 + lane * 8), from};
}

// Stores a lane's share into every copy of the row: read once, stored once per rank that needs it.
template <typename Context>
RACKCAST_BOTH void push(Context& context, const RankState& rank, int item, int lane, const LaneValues& values, DispatchTile& tile) {
  const Shape& shape = rank.shape;
  const int place = item / shape.pieces();
  const int piece = item % shape.pieces();
  const int copies = tile.copies[place];
  if (shape.payload == Payload::bf16) {
    for (int c = 0; c < copies; ++c) {
      char* to = tile.row[place][c] + piece * piece_values * 2 + lane * 16;
      context.delay(2);
      context.store16(to, values.low);
      context.store16(to + 512, values.high);
    }
    return;
  }
  Vec16 codes;   // of 16 values in a row, from byte segment() of the piece on
  Vec16 scales;  // of the whole piece; meaningful in lane 0
  context.quantise(values, lane, codes, scales);
  const int segment = (lane & 1) * 256 + (lane >> 1) * 16;
  if (lane == 0) tile.scales[place][piece] = scales;
  for (int c = 0; c < copies; ++c) {
    context.delay(3);
    context.store16(tile.row[place][c] + piece * piece_values + segment, codes);
  }
}

// Rows out. On the GPU a warp has the next pieces (`ahead`) on their way while it stores one, and the first while slots are
// taken. Two ahead is faster for bf16 rows by 6% at a thousand tokens and slower for fp8 ones, which need registers to convert.
template <int ahead, typename Context>
RACKCAST_BOTH void push_rows(Context& context, const RankState& rank, uint32_t epoch) {
  const Shape& shape = rank.shape;
  DispatchTile& tile = context.template shared<DispatchTile>();
  const int block = context.block();
  const int blocks = context.blocks();
  for (int first = block; first < rank.tokens; first += tile_tokens * blocks) {
    const int left = (rank.tokens - first + blocks - 1) / blocks;
    const int count = left < tile_tokens ? left : tile_tokens;
    const int items = count * shape.pieces();
    int item = context.warp();
    LaneValues values[ahead] = {};
    for (int i = 0; i < ahead; ++i)
      if (Context::one_lane && item + i * context.warps() < items) values[i] = fetch(context, rank, first, item + i * context.warps(), context.lane());
    for (int i = context.thread(); i < count * shape.top_k; i += context.threads())
      assign_choice(context, rank, epoch, first + (i / shape.top_k) * blocks, i / shape.top_k, i % shape.top_k, tile);
    context.sync();
    if (shape.payload == Payload::bf16) push_tails(context, rank, count, tile);
    for (; item < items; item += context.warps()) {
      if constexpr (Context::one_lane) {
        const LaneValues now = values[0];
        for (int i = 1; i < ahead; ++i) values[i - 1] = values[i];
        const int next = item + ahead * context.warps();
        if (next < items) values[ahead - 1] = fetch(context, rank, first, next, context.lane());
        push(context, rank, item, context.lane(), now, tile);
      } else {
        for (int lane = 0; lane < 32; ++lane) push(context, rank, item, lane, fetch(context, rank, first, item, lane), tile);
      }
    }
    context.sync();
    if (shape.payload == Payload::bf16) continue;
    push_tails(context, rank, count, tile);
    context.sync();
  }
}

template <typename Context>
RACKCAST_BOTH void send_flags(Context& context, const RankState& rank, int kind, uint32_t epoch) {
  const Shape& shape = rank.shape;
  for (int peer = context.thread(); peer < shape.ranks; peer += context.threads()) {
    uint32_t count = 0;
    if (kind == flag_arrived) {
      uint32_t& rows = rank.slot_count[count_place(shape, epoch, peer)];
      count = rows;
      rows = 0;  // for epoch + 2
    }
    context.delay(4);
    context.store_flag(reinterpret_cast<uint64_t*>(rank.window[peer] + shape.flag(kind, epoch, rank.rank)),
                       (static_cast<uint64_t>(epoch) << 32) | count);
  }
}

// Waits for the flags of all peers; afterwards the whole block may read what they released.
template <typename Context>
RACKCAST_BOTH void wait_for_flags(Context& context, const RankState& rank, int kind, uint32_t epoch) {
  const Shape& shape = rank.shape;
  for (int peer = context.thread(); peer < shape.ranks; peer += context.threads())
    context.wait_flag(reinterpret_cast<const uint64_t*>(rank.window[rank.rank] + shape.flag(kind, epoch, peer)), epoch, kind, peer);
  context.sync();
}

template <typename Context>
RACKCAST_BOTH void take_counts(Context& context, const RankState& rank, uint32_t epoch) {
  for (int peer = context.thread(); peer < rank.shape.ranks; peer += context.threads()) {
    uint32_t& rows = rank.slot_count[count_place(rank.shape, epoch, peer)];
    if (rank.sent != nullptr) rank.sent[peer] = rows;
    rows = 0;
  }
}

// With neither signal nor wait it is local work only, and the epoch stays.
template <typename Context>
RACKCAST_BOTH uint32_t dispatch(Context& context, const RankState& rank, bool signal, bool wait) {
  const uint32_t epoch = rank.epoch[0] + 1;
  if (rank.shape.payload == Payload::bf16) push_rows<2>(context, rank, epoch);
  else push_rows<1>(context, rank, epoch);
  if (arrive(context, rank, 0, &context.template shared<DispatchTile>().last, signal)) {
    if (signal) {
      if (context.thread() == 0) rank.epoch[0] = epoch;  // before any flag: a flag lets other blocks start the next epoch
      context.sync();
      send_flags(context, rank, flag_arrived, epoch);
    } else {
      take_counts(context, rank, epoch);
    }
  }
  if (wait && context.block() == 0) wait_for_flags(context, rank, flag_arrived, epoch);
  return epoch;
}

// Stand-in for the experts, so that a check sees who computed what: each row times the weighted gains of its experts.
template <typename Context>
RACKCAST_BOTH void run_experts(Context& context, const RankState& rank, uint32_t epoch, bool signal) {
  const Shape& shape = rank.shape;
  wait_for_flags(context, rank, flag_arrived, epoch);
  char* window = rank.window[rank.rank];
  const int pieces = shape.pieces();
  for (int source = 0; source < shape.ranks; ++source) {
    const uint64_t flag = context.load_flag(reinterpret_cast<const uint64_t*>(window + shape.flag(flag_arrived, epoch, source)));
    const auto rows = static_cast<int64_t>(flag & 0xffffffffU);
    for (int64_t item = context.block() * context.warps() + context.warp(); item < rows * pieces; item += context.blocks() * context.warps()) {
      const int64_t slot = item / pieces;
      const int piece = static_cast<int>(item % pieces);
      const char* row = window + shape.dispatch_row(epoch, source, slot);
      const RowMeta& meta = *reinterpret_cast<const RowMeta*>(row + shape.payload_bytes());
      float factor = 0;
      for (int j = 0; j < meta.experts; ++j) factor = context.multiply_add(meta.weight[j], rank.gain[meta.expert[j]], factor);
      char* result = window + shape.combine_row(epoch, source, slot) + piece * piece_values * 2;
      for (int lane = context.lane(); lane < 32; lane += context.lanes()) {
        // Lane's 16 values: two runs of 8 in bf16 rows, one run of 16 in fp8 rows.
        Vec16 first;
        Vec16 second;
        if (shape.payload == Payload::bf16) {
          first = context.scale_bf16(context.load16(row + piece * piece_values * 2 + lane * 16), factor);
          second = context.scale_bf16(context.load16(row + piece * piece_values * 2 + 512 + lane * 16), factor);
          context.store16(result + lane * 16, first);
          context.store16(result + 512 + lane * 16, second);
        } else {
          const auto scale = static_cast<uint8_t>(row[shape.hidden + (piece * piece_values + lane * 16) / scale_block]);
          context.dequantise(context.load16(row + piece * piece_values + lane * 16), scale, factor, first, second);
          context.store16(result + lane * 32, first);
          context.store16(result + lane * 32 + 16, second);
        }
      }
    }
  }
  if (signal && arrive(context, rank, 1, &context.template shared<DispatchTile>().last))
    send_flags(context, rank, flag_ready, epoch);
}

// All loads first, so that they are in flight together; then the sum in the order of the list.
template <typename Context>
RACKCAST_BOTH Vec16 sum_copies(Context& context, const RankState& rank, uint32_t epoch, const uint64_t* destination, int64_t at) {
  const Shape& shape = rank.shape;
  Vec16 part[top_k_max];
  bool there[top_k_max];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int j = 0; j < top_k_max; ++j) {
    there[j] = j < shape.top_k && destination[j] != no_destination;
    if (there[j])
      part[j] = context.load16(rank.window[rank_of(destination[j])] +
                               shape.combine_row(epoch, rank.rank, slot_of(destination[j])) + at);
  }
  float sum[8] = {};
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int j = 0; j < top_k_max; ++j)
    if (there[j]) context.add_bf16(sum, part[j]);
  return context.to_bf16(sum);
}

// Fetches the expert results of this rank's tokens and adds them up, in FP32, in rank order.
template <typename Context>
RACKCAST_BOTH void pull_rows(Context& context, const RankState& rank, uint32_t epoch) {
  const Shape& shape = rank.shape;
  const int pieces = shape.pieces();
  const int block = context.block();
  const int blocks = context.blocks();
  const int mine = rank.tokens > block ? (rank.tokens - block + blocks - 1) / blocks : 0;
  for (int item = context.warp(); item < mine * pieces; item += context.warps()) {
    const int t = block + (item / pieces) * blocks;
    const int64_t offset = (item % pieces) * int64_t{piece_values} * 2;
    const uint64_t* destination = rank.destination + int64_t{t} * shape.top_k;
    for (int lane = context.lane(); lane < 32; lane += context.lanes()) {
      for (int half = 0; half < 2; ++half) {
        const int64_t at = offset + half * 512 + lane * 16;
        char* to = reinterpret_cast<char*>(rank.output) + int64_t{t} * shape.hidden * 2 + at;
        context.store16(to, sum_copies(context, rank, epoch, destination, at));
      }
    }
  }
}

template <typename Context>
RACKCAST_BOTH void combine(Context& context, const RankState& rank, bool signal, bool wait) {
  const uint32_t epoch = rank.epoch[1] + 1;
  // The kernel before this one wrote the results; its end ordered them before this flag on this GPU, and the flag's
  // own release orders them for the peers.
  if (signal && context.block() == 0) {
    context.release(true);
    send_flags(context, rank, flag_ready, epoch);
  }
  if (wait) wait_for_flags(context, rank, flag_ready, epoch);
  pull_rows(context, rank, epoch);
  if ((signal || wait) && arrive(context, rank, 2, &context.template shared<DispatchTile>().last, false) && context.thread() == 0)
    rank.epoch[1] = epoch;
}

// Everybody has come this far. Uses its own flags; epoch counts barriers.
template <typename Context>
RACKCAST_BOTH void barrier(Context& context, const RankState& rank, uint32_t epoch) {
  context.release(true);
  send_flags(context, rank, flag_barrier, epoch);
  wait_for_flags(context, rank, flag_barrier, epoch);
}

}  // namespace rackcast::a2a
