// The GPU's Context for the all-to-all protocol, and with Shaken the tests' one: stores that linger in a buffer of the
// thread until it releases, seeded delays, and a release that can be left out to see that the check notices.
#pragma once
#include "kernels/all_to_all_protocol.hpp"
#include "kernels/device.cuh"

namespace rackcast::a2a {

constexpr int block_threads = 512;
constexpr int peers_max = 128;

// Window addresses travel as a kernel argument: one constant load away, no memory access before the first store.
struct PeerTable {
  char* base[peers_max];
};

// What a wait that gave up leaves behind.
struct Fault {
  int32_t set, kind, peer, rank;
  uint32_t epoch, seen;
};

struct Knobs {
  uint64_t wait_limit_ns = 10'000'000'000;
  Fault* fault = nullptr;
  uint64_t delay_seed = 0;           // Shaken only
  int32_t release_left_out = 0;      // Shaken only
};

template <bool Shaken>
class DeviceContext {
 public:
  static constexpr bool one_lane = true;
  __device__ DeviceContext(const Knobs& knobs, int rank, int block, int blocks, char* shared)
      : knobs_(knobs), rank_(rank), block_(block), blocks_(blocks), shared_(shared) {
    if constexpr (Shaken) state_ = kernels::mix64(knobs.delay_seed ^ (uint64_t{blockIdx.x} << 20 | threadIdx.x));
  }
  __device__ int block() const { return block_; }
  __device__ int blocks() const { return blocks_; }
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return block_threads; }
  __device__ int warp() const { return static_cast<int>(threadIdx.x) / 32; }
  __device__ int warps() const { return block_threads / 32; }
  __device__ int lane() const { return static_cast<int>(threadIdx.x) % 32; }
  __device__ int lanes() const { return 32; }
  __device__ void sync() const { __syncthreads(); }
  template <typename T>
  __device__ T& shared() { return *reinterpret_cast<T*>(shared_); }

  __device__ Vec16 load16(const void* from) const {
    Vec16 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3]) : "l"(from));
    return v;
  }
  __device__ void store16(void* to, const Vec16& v) {
    if constexpr (Shaken) {
      if (pending_ == buffer_places) drain();
      to_[(first_ + pending_) % buffer_places] = to;
      value_[(first_ + pending_) % buffer_places] = v;
      ++pending_;
    } else {
      store_now(to, v);
    }
  }
  __device__ void release(bool for_peers) {
    if constexpr (Shaken) {
      if (!knobs_.release_left_out) flush();
    }
    __syncthreads();
    if (Shaken && knobs_.release_left_out) return;
    if (threadIdx.x != 0) return;
    // For local work the end of the kernel does it.
    if (for_peers) __threadfence_system();
  }
  __device__ void acquire(bool from_peers) const {
    if (from_peers) __threadfence_system();
    else __threadfence();
  }
  __device__ void store_flag(uint64_t* flag, uint64_t value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
  }
  __device__ uint64_t load_flag(const uint64_t* flag) const {
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
    return value;
  }
  __device__ void wait_flag(const uint64_t* flag, uint32_t epoch, int kind, int peer) const {
    uint64_t seen = load_flag(flag);
    if (seen >> 32 == epoch) return;
    const uint64_t start = now_ns();
    while ((seen = load_flag(flag)) >> 32 != epoch) {
      if (knobs_.fault && *reinterpret_cast<const volatile int32_t*>(&knobs_.fault->set)) return;  // others gave up already
      if (now_ns() - start < knobs_.wait_limit_ns) continue;
      if (knobs_.fault && atomicCAS(&knobs_.fault->set, 0, 1) == 0) {
        knobs_.fault->kind = kind;
        knobs_.fault->peer = peer;
        knobs_.fault->rank = rank_;
        knobs_.fault->epoch = epoch;
        knobs_.fault->seen = static_cast<uint32_t>(seen >> 32);
      }
      return;
    }
  }
  // Eight lanes a token, all 32 at once.
  __device__ ChoicePlace place_choice(const RankState&, const int32_t*, int, int owner) const {
    const int group = lane() & ~(top_k_max - 1);
    const unsigned same = __match_any_sync(0xffffffffu, group << 8 | owner);
    ChoicePlace place = {};
    place.here = __popc(same & ((1U << lane()) - 1));
    place.together = __popc(same);
    const unsigned firsts = __ballot_sync(0xffffffffu, place.here == 0 && owner != no_owner) >> group & ((1U << top_k_max) - 1);
    place.distinct = __popc(firsts);
    for (int j = 0; j < top_k_max; ++j) {
      const int other = __shfl_sync(0xffffffffu, owner, group + j);
      if ((firsts >> j & 1) != 0 && other < owner) ++place.position;
    }
    return place;
  }
  // Lanes of a warp that want a slot of the same rank take theirs with one addition.
  struct AskedSlot {
    uint32_t base;      // in the first of them
    unsigned together;  // lanes
  };
  __device__ AskedSlot ask_slot(uint32_t* counter, int peer) const {
    const unsigned together = __match_any_sync(__activemask(), peer);
    uint32_t base = 0;
    if (lane() == __ffs(static_cast<int>(together)) - 1) base = atomicAdd(counter, static_cast<uint32_t>(__popc(together)));
    return {base, together};
  }
  __device__ uint32_t slot(const AskedSlot& asked) const {
    const uint32_t base = __shfl_sync(asked.together, asked.base, __ffs(static_cast<int>(asked.together)) - 1);
    return base + static_cast<uint32_t>(__popc(asked.together & ((1U << lane()) - 1)));
  }
  __device__ uint32_t from_first_lane(uint32_t value) const { return __shfl_sync(0xffffffffu, value, 0); }
  __device__ uint32_t exchange(uint32_t* at, uint32_t value) const { return atomicExch(at, value); }
  __device__ uint32_t fetch_inc_wrap(uint32_t* at, uint32_t limit) const { return atomicInc(at, limit); }
  __device__ void delay(int) {
    if constexpr (Shaken) {
      const uint64_t draw = next();
      if (draw % 64 == 0) __nanosleep(static_cast<unsigned>((draw >> 32) % 4000));
      if (draw % 7 == 0 && pending_ > 0) drain();  // some become visible early, too
    }
  }
  __device__ void finish() {  // end of the block's work: whatever lingered becomes visible, late
    if constexpr (Shaken) {
      if (knobs_.release_left_out) __nanosleep(200'000);
      flush();
    }
  }

  __device__ float multiply_add(float a, float b, float c) const { return __fmaf_rn(a, b, c); }
  __device__ Vec16 scale_bf16(const Vec16& x, float factor) const {
    Vec16 out;
    for (int i = 0; i < 4; ++i)
      out.word[i] = kernels::pack_bf16(factor * low(x.word[i]), factor * high(x.word[i]));
    return out;
  }
  __device__ void add_bf16(float (&sum)[8], const Vec16& x) const {
    for (int i = 0; i < 4; ++i) {
      sum[2 * i] += low(x.word[i]);
      sum[2 * i + 1] += high(x.word[i]);
    }
  }
  __device__ Vec16 to_bf16(const float (&sum)[8]) const {
    Vec16 out;
    for (int i = 0; i < 4; ++i) out.word[i] = kernels::pack_bf16(sum[2 * i], sum[2 * i + 1]);
    return out;
  }
  // A lane holds 8 values of each half of the piece; four lanes share a scale, which one of them writes down. Neighbours swap
  // halves, so that each has 16 values in a row to store.
  __device__ Vec16 encode(const LaneValues& in, int lane, uint8_t* scales) const {
    uint2 part[2];
    for (int half = 0; half < 2; ++half) {
      const Vec16& p = half == 0 ? in.low : in.high;
      // Without the sign, bf16 bits order like the numbers: two at a time as 16-bit integers.
      uint32_t pair = 0;
      for (int i = 0; i < 4; ++i) pair = __vmaxu2(pair, p.word[i] & 0x7fff7fffU);
      pair = __vmaxu2(pair, __shfl_xor_sync(0xffffffffu, pair, 1));
      pair = __vmaxu2(pair, __shfl_xor_sync(0xffffffffu, pair, 2));
      const float largest = low(max(pair & 0xffffU, pair >> 16));
      const uint32_t ratio = __float_as_uint(largest * (1.0F / 448.0F));
      uint32_t code = max((ratio >> 23) + ((ratio & 0x7fffffU) != 0 ? 1U : 0U), 1U);
      if (largest == 0.0F) code = 127;
      const float inverse = __uint_as_float((254U - code) << 23);
      part[half] = {fp8x4(p.word[0], p.word[1], inverse), fp8x4(p.word[2], p.word[3], inverse)};
      if (lane % 4 == 0) scales[half * 8 + lane / 4] = static_cast<uint8_t>(code);
    }
    const bool odd = lane & 1;
    const uint2 give = odd ? part[0] : part[1];
    const uint2 keep = odd ? part[1] : part[0];
    const uint2 got = {__shfl_xor_sync(0xffffffffu, give.x, 1), __shfl_xor_sync(0xffffffffu, give.y, 1)};
    return odd ? Vec16{{got.x, got.y, keep.x, keep.y}} : Vec16{{keep.x, keep.y, got.x, got.y}};
  }
  __device__ void dequantise(const Vec16& values, uint8_t scale, float factor, Vec16& first, Vec16& second) const {
    const float power = kernels::ue8m0_to_float(scale);
    for (int i = 0; i < 4; ++i) {
      Vec16& out = i < 2 ? first : second;
      for (int half = 0; half < 2; ++half) {
        const auto pair = static_cast<__nv_fp8x2_storage_t>(values.word[i] >> (16 * half));
        const float2 x = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(pair, __NV_E4M3)));
        out.word[(i % 2) * 2 + half] = kernels::pack_bf16(factor * (x.x * power), factor * (x.y * power));
      }
    }
  }

 private:
  static constexpr int buffer_places = 8;
  static __device__ float low(uint32_t pair) { return __uint_as_float(pair << 16); }
  static __device__ float high(uint32_t pair) { return __uint_as_float(pair & 0xffff0000U); }
  static __device__ uint32_t fp8x4(uint32_t a, uint32_t b, float inverse) {
    const uint32_t first = __nv_cvt_float2_to_fp8x2({low(a) * inverse, high(a) * inverse}, __NV_SATFINITE, __NV_E4M3);
    const uint32_t second = __nv_cvt_float2_to_fp8x2({low(b) * inverse, high(b) * inverse}, __NV_SATFINITE, __NV_E4M3);
    return first | second << 16;
  }
  static __device__ uint64_t now_ns() {
    uint64_t t;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
    return t;
  }
  static __device__ void store_now(void* to, const Vec16& v) {
    // Streamed: nobody here reads the row again. 5 to 10% faster at a thousand tokens.
    asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3]) : "memory");
  }
  __device__ uint64_t next() { return state_ = kernels::mix64(state_); }
  __device__ void drain() {
    store_now(to_[first_], value_[first_]);
    first_ = (first_ + 1) % buffer_places;
    --pending_;
  }
  __device__ void flush() {
    while (pending_ > 0) drain();
  }

  const Knobs& knobs_;
  int rank_, block_, blocks_;
  char* shared_;
  uint64_t state_ = 0;
  int first_ = 0;
  int pending_ = 0;
  void* to_[Shaken ? buffer_places : 1];
  Vec16 value_[Shaken ? buffer_places : 1];
};

}  // namespace rackcast::a2a
