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
// store_flag(), wait_flag(); place_choice(); ask_slot() and slot() - the next value of a counter; fetch_inc_wrap(); exchange(); from_first_lane(); encode(),
// dequantise(), bf16 pairs; delay(), which tests use to shake the order of things.
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

// A choice that has asked for what it needs and not looked at the answers yet.
template <typename Context>
struct AskedRow {
  int32_t peer = 0;
  int8_t place = -1;    // of the token in its batch; none: no choice
  int8_t position = 0;  // of the rank among the token's ranks
  int8_t here = 0;      // of the choice among the token's choices of that rank; the first takes the row
  float weight = 0;
  typename Context::AskedSlot slot = {};
};

// A choice among those of its token. The ranks of a token are listed in ascending order, so that the order of a sum does not
// depend on who was first.
struct ChoicePlace {
  int32_t here;      // choices of the same rank before this one
  int32_t together;  // choices of the same rank
  int32_t position;  // ranks below this one
  int32_t distinct;  // ranks of the token
};
constexpr int no_owner = 0xff;

// One thread for each choice of each token, top_k_max a token; those beyond top_k only take part. The first choice that goes
// to a rank takes a row there; all of them note their expert in its meta data.
template <typename Context>
RACKCAST_BOTH AskedRow<Context> ask_row(Context& context, const RankState& rank, uint32_t epoch, int t, int place, int choice, bool real,
                                        DispatchTile& tile) {
  const Shape& shape = rank.shape;
  const int64_t token = int64_t{t} * shape.top_k;
  const int32_t expert = real ? rank.expert[token + choice] : 0;
  AskedRow<Context> asked;
  asked.weight = real ? rank.weight[token + choice] : 0.0F;
  asked.peer = real ? rank.by_experts.divide(expert) : no_owner;
  const ChoicePlace among = context.place_choice(rank, rank.expert + token, choice, asked.peer);
  if (!real) return asked;
  if (among.here == 0) asked.slot = context.ask_slot(rank.slot_count + count_place(shape, epoch, asked.peer), asked.peer);
  asked.place = static_cast<int8_t>(place);
  asked.position = static_cast<int8_t>(among.position);
  asked.here = static_cast<int8_t>(among.here);
  RowMeta& meta = tile.meta[place][among.position];
  meta.expert[among.here] = static_cast<int16_t>(expert - asked.peer * shape.experts_per_rank);
  if (among.here == 0) {
    meta.token = t;
    meta.experts = among.together;
  }
  if (choice == 0) tile.copies[place] = among.distinct;
  if (choice >= among.distinct) rank.destination[token + choice] = no_destination;
  return asked;
}

// The answers.
template <typename Context>
RACKCAST_BOTH void note_row(Context& context, const RankState& rank, uint32_t epoch, const AskedRow<Context>& asked, DispatchTile& tile) {
  if (asked.place < 0) return;
  RowMeta& meta = tile.meta[asked.place][asked.position];
  meta.weight[asked.here] = asked.weight;
  if (asked.here > 0) return;
  const uint32_t slot = context.slot(asked.slot);
  rank.destination[int64_t{meta.token} * rank.shape.top_k + asked.position] = (static_cast<uint64_t>(asked.peer) << 32) | slot;
  tile.row[asked.place][asked.position] = rank.window[asked.peer] + rank.shape.dispatch_row(epoch, rank.rank, slot);
}

// A lane's share of a piece as it lies in the input.
struct LaneValues {
  Vec16 low, high;
  const uint16_t* piece;  // where the piece begins
};
template <typename Context>
RACKCAST_BOTH LaneValues fetch(Context& context, const RankState& rank, int64_t t, int piece, int lane) {
  const uint16_t* from = rank.input + t * rank.shape.hidden + piece * piece_values;
  return {context.load16(from + lane * 8), context.load16(from + 256 + lane * 8), from};
}

// The same as it travels: bf16 values in two runs of 8, or fp8 codes of 16 values in a row.
template <Payload payload>
struct LaneBytes {
  Vec16 part[payload == Payload::bf16 ? 2 : 1];
};
template <Payload payload, typename Context>
RACKCAST_BOTH LaneBytes<payload> encode(Context& context, const LaneValues& values, int lane, Vec16& scales) {
  if constexpr (payload == Payload::bf16) return {{values.low, values.high}};
  else return {{context.encode(values, lane, reinterpret_cast<uint8_t*>(&scales))}};
}

// Into every copy of the row: read once, stored once per rank that needs it.
template <Payload payload, typename Context>
RACKCAST_BOTH void push(Context& context, int piece, int lane, const LaneBytes<payload>& bytes, char* const* row, int copies) {
  const int offset = payload == Payload::bf16 ? piece * piece_values * 2 + lane * 16 : piece * piece_values + (lane & 1) * 256 + (lane >> 1) * 16;
  for (int c = 0; c < copies; ++c) {
    context.delay(2);
    context.store16(row[c] + offset, bytes.part[0]);
    if constexpr (payload == Payload::bf16) context.store16(row[c] + offset + 512, bytes.part[1]);
  }
}

// The counts of an epoch, taken by a warp of the block that was last to take its slots. All slots came back before that was
// known, so the counters' own order is enough, and no fence waits for the rows that are under way.
template <typename Context>
RACKCAST_BOTH void take_counts(Context& context, const RankState& rank, uint32_t epoch) {
  for (int peer = context.lane(); peer < rank.shape.ranks; peer += context.lanes()) {
    const uint32_t rows = context.exchange(&rank.slot_count[count_place(rank.shape, epoch, peer)], 0);
    if (rank.sent != nullptr) rank.sent[peer] = rows;
  }
}

// Rows out, a batch of tokens at a time: as many as the block's warps hold in registers. While one batch is stored, the values and
// the slots of the next are on their way. A warp encodes its first piece while the warps that ask wait for slots, and each
// further one behind the stores of the one before; the scales of a batch go out a batch later (`later`), so that one barrier
// a batch is enough. Local work has nobody to signal: the counts are taken as soon as the last slot is.
template <Payload payload, typename Context>
class RowsOut {
 public:
  RACKCAST_BOTH RowsOut(Context& context, const RankState& rank, uint32_t epoch)
      : context_(context), rank_(rank), shape_(rank.shape), epoch_(epoch), tiles_(context.template shared<DispatchShared>().tile) {
    const int held = rank.by_pieces.divide(held_pieces * context.warps());
    batch_ = held < 1 ? 1 : held < tile_tokens ? held : tile_tokens;
    asks_ = context.warp() * 32 < batch_ * top_k_max;
    for (int i = 0; i < held_pieces; ++i) {
      const int item = context.warp() + i * context.warps();
      place_[i] = rank.by_pieces.divide(item);
      piece_[i] = item - place_[i] * shape_.pieces();
    }
  }

  RACKCAST_BOTH void run(bool local) {
    constexpr bool later = payload != Payload::bf16;
    uint32_t before = 0;
    const auto limit = static_cast<uint32_t>(context_.blocks() - 1);
    const bool says = local && context_.thread() == 0;
    if constexpr (Context::one_lane)
      for (int i = 0; i < held_pieces; ++i) fetch_piece(0, i);
    int first = -batch_;
    DispatchTile* behind = tiles_;
    DispatchTile* tile = tiles_ + 1;
    DispatchTile* ahead = tiles_ + 2;
    for (; first < 0 || token(first) < rank_.tokens; first += batch_) {
      const int next = first + batch_;
      const bool more = token(next) < rank_.tokens;
      if (first >= 0) context_.sync();
      if (more) ask(next, *ahead);
      else if (says) before = context_.fetch_inc_wrap(&rank_.arrived_blocks[0], limit);
      if (first >= 0) store_and_fetch(first, next, *tile);
      if (!more && local && context_.warp() == 0 && context_.from_first_lane(before) == limit) take_counts(context_, rank_, epoch_);
      if (!later && first >= 0) store_tails(first, *tile);
      if (later && first > 0) store_tails(first - batch_, *behind);
      if (more) take(next, *ahead);
      DispatchTile* free = behind;
      behind = tile;
      tile = ahead;
      ahead = free;
    }
    if (!later) return;
    context_.sync();
    if (first > 0) store_tails(first - batch_, *behind);
  }

 private:
  RACKCAST_BOTH int token(int index) const { return context_.block() + index * context_.blocks(); }
  RACKCAST_BOTH bool real(int first, int place) const { return place < batch_ && token(first + place) < rank_.tokens; }
  RACKCAST_BOTH AskedRow<Context> ask_choice(int first, int i, DispatchTile& tile) {
    const int place = i / top_k_max;
    const int choice = i % top_k_max;
    return ask_row(context_, rank_, epoch_, token(first + place), place, choice, real(first, place) && choice < shape_.top_k, tile);
  }
  RACKCAST_BOTH LaneBytes<payload> outgoing(int i) const {
    if constexpr (payload == Payload::bf16) return {{values_[i].low, values_[i].high}};  // as they came: no second set of registers
    else return bytes_;
  }
  RACKCAST_BOTH void fetch_piece(int first, int i) {
    if (real(first, place_[i])) values_[i] = fetch(context_, rank_, token(first + place_[i]), piece_[i], context_.lane());
  }

  RACKCAST_BOTH void ask(int first, DispatchTile& tile) {
    if constexpr (Context::one_lane) {
      if (asks_) asked_ = ask_choice(first, context_.thread(), tile);
    } else {
      for (int i = 0; i < batch_ * top_k_max; ++i) note_row(context_, rank_, epoch_, ask_choice(first, i, tile), tile);
    }
  }
  RACKCAST_BOTH void take(int first, DispatchTile& tile) {
    if constexpr (Context::one_lane) {
      if (asks_) note_row(context_, rank_, epoch_, asked_, tile);
      else encode_piece(first, 0, tile);
    }
  }
  RACKCAST_BOTH void encode_piece(int first, int i, DispatchTile& tile) {
    if (payload != Payload::bf16 && real(first, place_[i])) bytes_ = encode<payload>(context_, values_[i], context_.lane(), tile.scales[place_[i]][piece_[i]]);
  }
  RACKCAST_BOTH void store_and_fetch(int first, int next, DispatchTile& tile) {
    if constexpr (Context::one_lane) {
      for (int i = 0; i < held_pieces; ++i) {
        if (i > 0 || asks_) encode_piece(first, i, tile);
        if (real(first, place_[i])) push<payload>(context_, piece_[i], context_.lane(), outgoing(i), tile.row[place_[i]], tile.copies[place_[i]]);
        fetch_piece(next, i);
      }
    } else {
      for (int place = 0; real(first, place); ++place)
        for (int piece = 0; piece < shape_.pieces(); ++piece)
          for (int lane = 0; lane < 32; ++lane) {
            const LaneValues values = fetch(context_, rank_, token(first + place), piece, lane);
            push<payload>(context_, piece, lane, encode<payload>(context_, values, lane, tile.scales[place][piece]), tile.row[place], tile.copies[place]);
          }
    }
  }
  // What follows the values of every copy: scales, then meta data, a warp a copy.
  RACKCAST_BOTH void store_tails(int first, DispatchTile& tile) {
    const int scales = payload == Payload::bf16 ? 0 : shape_.pieces();  // in units of 16 bytes, as lanes store them
    const int64_t values = payload == Payload::bf16 ? int64_t{2} * shape_.hidden : int64_t{shape_.hidden};
    for (int i = context_.warp(); i < batch_ * top_k_max; i += context_.warps()) {
      const int place = i / top_k_max;
      const int copy = i % top_k_max;
      if (!real(first, place) || copy >= tile.copies[place]) continue;
      char* to = tile.row[place][copy] + values;
      const Vec16* meta = reinterpret_cast<const Vec16*>(&tile.meta[place][copy]);
      for (int lane = context_.lane(); lane < scales + 4; lane += context_.lanes()) {
        context_.delay(1);
        context_.store16(to + 16 * lane, lane < scales ? tile.scales[place][lane] : meta[lane - scales]);
      }
    }
  }

  Context& context_;
  const RankState& rank_;
  const Shape& shape_;
  uint32_t epoch_;
  DispatchTile* tiles_;
  int batch_;  // tokens
  bool asks_;  // this warp asks for slots
  int place_[held_pieces], piece_[held_pieces];
  LaneValues values_[held_pieces] = {};  // of the batch that comes
  LaneBytes<payload> bytes_ = {};        // of the piece that goes
  AskedRow<Context> asked_ = {};
};

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
