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
// visible, to peers or only to this GPU, before anything that thread 0 does next; acquire(), the other side of it;
// store_flag(), wait_flag(); place_choice(); ask_slot() and slot() - the next value of a counter; fetch_inc_wrap();
// exchange(); from_first_lane(); encode(), dequantise(), bf16 pairs; delay(), which tests use to shake the order of things.
// What blocks share is in all_to_all_state.hpp, how rows leave in all_to_all_rows.hpp.
#pragma once
#include "kernels/all_to_all_rows.hpp"

namespace rackcast::a2a {

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

// With neither signal nor wait it is local work only, and the epoch stays.
template <typename Context>
RACKCAST_BOTH uint32_t dispatch(Context& context, const RankState& rank, bool signal, bool wait) {
  const uint32_t epoch = rank.epoch[0] + 1;
  if (rank.shape.payload == Payload::bf16) RowsOut<Payload::bf16, Context>(context, rank, epoch).run(!signal);
  else RowsOut<Payload::fp8_block, Context>(context, rank, epoch).run(!signal);
  if (signal && arrive(context, rank, 0, &context.template shared<DispatchShared>().last)) {
    if (context.thread() == 0) rank.epoch[0] = epoch;  // before any flag: a flag lets other blocks start the next epoch
    context.sync();
    send_flags(context, rank, flag_arrived, epoch);
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
  if (signal && arrive(context, rank, 1, &context.template shared<DispatchShared>().last))
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
  if ((signal || wait) && arrive(context, rank, 2, &context.template shared<DispatchShared>().last, false) && context.thread() == 0)
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
