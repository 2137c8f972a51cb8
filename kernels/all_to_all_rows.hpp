// Push dispatch, the way of a rank's rows into the windows of the ranks that need them: choices ask for slots, values are read
// once, encoded, and stored once for each of these ranks. Context as in all_to_all_protocol.hpp.
#pragma once
#include "kernels/all_to_all_state.hpp"

namespace rackcast::a2a {

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

}  // namespace rackcast::a2a
