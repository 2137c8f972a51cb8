// Runs the all-to-all protocol with threads as ranks and blocks: one thread a block, no GPU. Memory is as weak as the
// GPU's model allows: a plain store may stay in the block's own store buffer until the block releases (or for ever, if
// the release is left out), and every store and flag may be held up by a seeded delay.
#pragma once
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernels/all_to_all_protocol.hpp"
#include "kernels/all_to_all_reference.hpp"
#include "kernels/block_fp8.hpp"
#include "kernels/draws.hpp"

namespace rackcast::a2a {

struct HostOptions {
  uint64_t delay_seed = 0;        // 0: no delays
  bool release_left_out = false;  // mutation: blocks never push their stores out before they signal
  double wait_limit_s = 120;
};

class HostContext {
 public:
  HostContext(int block, int blocks, const HostOptions& options, uint64_t seed)
      : block_(block), blocks_(blocks), options_(options), draws_(seed) {}
  ~HostContext() { flush(); }

  int block() const { return block_; }
  int blocks() const { return blocks_; }
  int thread() const { return 0; }
  int threads() const { return 1; }
  int warp() const { return 0; }
  int warps() const { return 1; }
  int lane() const { return 0; }
  int lanes() const { return 1; }
  static constexpr bool one_lane = false;
  void sync() const {}
  template <typename T>
  T& shared() { return shared_; }

  Vec16 load16(const void* from) const {
    Vec16 value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  void store16(void* to, const Vec16& value) {
    buffer_.push_back({to, value});
    if (buffer_.size() > 64) drain_one();
  }
  void release(bool) {
    if (options_.release_left_out) return;
    flush();
    std::atomic_thread_fence(std::memory_order_acq_rel);
  }
  void acquire(bool) const { std::atomic_thread_fence(std::memory_order_acq_rel); }
  void store_flag(uint64_t* flag, uint64_t value) { std::atomic_ref<uint64_t>(*flag).store(value, std::memory_order_release); }
  uint64_t load_flag(const uint64_t* flag) const {
    return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(*flag)).load(std::memory_order_acquire);
  }
  void wait_flag(const uint64_t* flag, uint32_t epoch, int kind, int peer) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.wait_limit_s);
    for (int tries = 0; load_flag(flag) >> 32 != epoch; ++tries) {
      if (tries >= 20) std::this_thread::sleep_for(std::chrono::microseconds(50));  // leaves the processor to those it waits for
      if (std::chrono::steady_clock::now() > give_up)
        throw std::runtime_error("flag " + std::to_string(kind) + " of rank " + std::to_string(peer) + " did not come");
    }
  }
  ChoicePlace place_choice(const RankState& rank, const int32_t* expert, int choice, int owner) const {
    ChoicePlace place = {};
    if (owner == no_owner) return place;  // no such token: `expert` is past the end
    for (int j = 0; j < rank.shape.top_k; ++j) {
      const int other = rank.by_experts.divide(expert[j]);
      bool fresh = true;
      for (int i = 0; i < j; ++i) fresh = fresh && rank.by_experts.divide(expert[i]) != other;
      if (fresh) ++place.distinct;
      if (fresh && other < owner) ++place.position;
      if (other != owner) continue;
      ++place.together;
      if (j < choice) ++place.here;
    }
    return place;
  }
  using AskedSlot = uint32_t;
  uint32_t slot(uint32_t asked) const { return asked; }
  uint32_t ask_slot(uint32_t* counter, int) { return std::atomic_ref<uint32_t>(*counter).fetch_add(1, std::memory_order_relaxed); }
  uint32_t fetch_inc_wrap(uint32_t* at, uint32_t limit) {
    std::atomic_ref<uint32_t> value(*at);
    uint32_t old = value.load(std::memory_order_relaxed);
    while (!value.compare_exchange_weak(old, old >= limit ? 0 : old + 1, std::memory_order_acq_rel)) {}
    return old;
  }
  uint32_t exchange(uint32_t* at, uint32_t value) { return std::atomic_ref<uint32_t>(*at).exchange(value, std::memory_order_acq_rel); }
  uint32_t from_first_lane(uint32_t value) const { return value; }
  void delay(int) {
    if (options_.delay_seed == 0) return;
    // No yields: on a busy machine each would cost a whole turn of the others.
    const uint64_t draw = draws_.below(4096);
    if (draw == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    else if (draw < 256) spin(draw * 8);
    if (draw % 7 == 0 && !buffer_.empty()) drain_one();  // some stores become visible early, too
  }

  float multiply_add(float a, float b, float c) const { return std::fma(a, b, c); }
  Vec16 scale_bf16(const Vec16& x, float factor) const {
    uint16_t value[8];
    std::memcpy(value, &x, sizeof value);
    for (uint16_t& v : value) v = float_to_bf16(factor * bf16_to_float(v));
    Vec16 out;
    std::memcpy(&out, value, sizeof out);
    return out;
  }
  void add_bf16(float (&sum)[8], const Vec16& x) const {
    uint16_t value[8];
    std::memcpy(value, &x, sizeof value);
    for (int i = 0; i < 8; ++i) sum[i] += bf16_to_float(value[i]);
  }
  Vec16 to_bf16(const float (&sum)[8]) const {
    uint16_t value[8];
    for (int i = 0; i < 8; ++i) value[i] = float_to_bf16(sum[i]);
    Vec16 out;
    std::memcpy(&out, value, sizeof out);
    return out;
  }
  // One thread plays all lanes one after another, so what lanes would exchange is read from the input.
  Vec16 encode(const LaneValues& values, int lane, uint8_t* scales) const {
    const uint16_t* piece = values.piece;
    uint8_t code[16];
    for (int b = 0; b < 16; ++b) {
      float largest = 0;
      for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(bf16_to_float(piece[b * 32 + i])));
      scales[b] = ue8m0_for(largest);
    }
    const int segment = (lane & 1) * 256 + (lane >> 1) * 16;
    for (int i = 0; i < 16; ++i) code[i] = float_to_e4m3(bf16_to_float(piece[segment + i]) / ue8m0_to_float(scales[(segment + i) / 32]));
    Vec16 codes;
    std::memcpy(&codes, code, sizeof codes);
    return codes;
  }
  void dequantise(const Vec16& values, uint8_t scale, float factor, Vec16& first, Vec16& second) const {
    uint8_t code[16];
    uint16_t out[16];
    std::memcpy(code, &values, sizeof code);
    for (int i = 0; i < 16; ++i) out[i] = float_to_bf16(factor * (e4m3_to_float(code[i]) * ue8m0_to_float(scale)));
    std::memcpy(&first, out, sizeof first);
    std::memcpy(&second, out + 8, sizeof second);
  }

 private:
  void spin(uint64_t turns) {
    for (uint64_t i = 0; i < turns; ++i) spun_ = spun_ + i;
  }
  void drain_one() {
    std::memcpy(buffer_.front().to, &buffer_.front().value, sizeof(Vec16));
    buffer_.pop_front();
  }
  void flush() {
    while (!buffer_.empty()) drain_one();
  }
  struct Pending {
    void* to;
    Vec16 value;
  };
  int block_, blocks_;
  HostOptions options_;
  Draws draws_;
  DispatchShared shared_{};
  std::deque<Pending> buffer_;
  volatile uint64_t spun_ = 0;
};

// All ranks of one shape in this process.
class HostRanks {
 public:
  HostRanks(const Shape& shape, int blocks_per_rank);
  // Gives every rank its tokens, input and the experts' gains; then one epoch; true when every output equals the reference.
  bool epoch(const std::string& routing, const std::vector<int>& tokens, uint64_t seed, const HostOptions& options);

 private:
  struct Rank {
    std::vector<Vec16> window;
    std::vector<uint64_t> destination;
    std::vector<uint32_t> slot_count, arrived_blocks, epochs;
    RankTokens tokens;
    std::vector<uint16_t> input, output;
  };
  Shape shape_;
  int blocks_;
  std::vector<Rank> ranks_;
  std::vector<char*> windows_;
};

inline HostRanks::HostRanks(const Shape& shape, int blocks_per_rank) : shape_(shape), blocks_(blocks_per_rank) {
  ranks_.resize(static_cast<std::size_t>(shape.ranks));
  for (Rank& rank : ranks_) {
    rank.window.resize(static_cast<std::size_t>(shape.window_bytes() / 16 + 1));
    rank.destination.resize(static_cast<std::size_t>(shape.tokens_max * shape.top_k));
    rank.slot_count.resize(static_cast<std::size_t>(count_words(shape)));
    rank.arrived_blocks.resize(3);
    rank.epochs.resize(2);
    windows_.push_back(reinterpret_cast<char*>(rank.window.data()));
  }
}

inline bool HostRanks::epoch(const std::string& routing, const std::vector<int>& tokens, uint64_t seed, const HostOptions& options) {
  const std::vector<float> gain = draw_gain(shape_, seed);
  std::vector<RankState> states;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.tokens = draw_tokens(shape_, routing, tokens[r], seed * 1000 + r);
    rank.input = draw_input(shape_, tokens[r], seed * 1000 + r + 500);
    rank.output.assign(rank.input.size(), 0xffff);
    RankState& state = states.emplace_back();
    set_shape(state, shape_);
    state.rank = static_cast<int32_t>(r);
    state.tokens = tokens[r];
    state.window = windows_.data();
    state.input = rank.input.data();
    state.expert = rank.tokens.expert.data();
    state.weight = rank.tokens.weight.data();
    state.gain = gain.data() + r * static_cast<std::size_t>(shape_.experts_per_rank);
    state.output = rank.output.data();
    state.destination = rank.destination.data();
    state.slot_count = rank.slot_count.data();
    state.arrived_blocks = rank.arrived_blocks.data();
    state.epoch = rank.epochs.data();
  }
  std::vector<std::thread> threads;
  std::atomic<bool> hung{false};
  for (const RankState& state : states)
    for (int block = 0; block < blocks_; ++block)
      threads.emplace_back([&, block] {
        const uint64_t stream = options.delay_seed * 7919 + seed * 131 + static_cast<uint64_t>(state.rank * blocks_ + block);
        HostContext context(block, blocks_, options, stream);
        try {
          const uint32_t epoch = dispatch(context, state, true, false);
          run_experts(context, state, epoch, true);
          combine(context, state, false, true);
        } catch (const std::runtime_error&) {
          hung = true;
        }
      });
  for (std::thread& thread : threads) thread.join();
  if (hung) return false;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (ranks_[r].output != reference(shape_, ranks_[r].tokens, ranks_[r].input, gain)) return false;
  return true;
}

}  // namespace rackcast::a2a
