// The asynchronous warpgroup products of sm_90a, D(64 x N) = A * B [+ D] with fp32 sums: e4m3 operands (64 x 32 times
// 32 x N), or fp16 or bf16 operands (64 x 16 times 16 x N). The width N follows from the accumulator's length (N / 2
// registers a thread). A is a shared-memory descriptor or the four fragment registers of each warp's 16 rows; B is a
// descriptor (hopper.cuh). Callers fence, commit and wait.
#pragma once
#include <cstdint>

// The accumulator's operand names and constraints, by its number of registers.
#define RACKCAST_NAMES_4 "%0,%1,%2,%3"
#define RACKCAST_NAMES_8 RACKCAST_NAMES_4 ",%4,%5,%6,%7"
#define RACKCAST_NAMES_16 RACKCAST_NAMES_8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define RACKCAST_NAMES_32 RACKCAST_NAMES_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define RACKCAST_NAMES_64 \
  RACKCAST_NAMES_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47" \
  ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define RACKCAST_NAMES_128 \
  RACKCAST_NAMES_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79" \
  ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95" \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define RACKCAST_SUMS_4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define RACKCAST_SUMS_8(i) RACKCAST_SUMS_4(i), RACKCAST_SUMS_4((i) + 4)
#define RACKCAST_SUMS_16(i) RACKCAST_SUMS_8(i), RACKCAST_SUMS_8((i) + 8)
#define RACKCAST_SUMS_32(i) RACKCAST_SUMS_16(i), RACKCAST_SUMS_16((i) + 16)
#define RACKCAST_SUMS_64(i) RACKCAST_SUMS_32(i), RACKCAST_SUMS_32((i) + 32)
#define RACKCAST_SUMS_128(i) RACKCAST_SUMS_64(i), RACKCAST_SUMS_64((i) + 64)

// One product: `n` registers of sums, then the numbers of the operands behind them.
#define RACKCAST_PRODUCT_SHARED(n, a_, b_, p_, shape, transposes)                                                       \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %" p_ ", 0; wgmma.mma_async.sync.aligned." shape " {" RACKCAST_NAMES_##n \
               "}, %" a_ ", %" b_ ", p, 1, 1" transposes "; }"                                                         \
               : RACKCAST_SUMS_##n(0)                                                                                  \
               : "l"(a), "l"(b), "r"(accumulate))
#define RACKCAST_PRODUCT_REGISTERS(n, a0, a1, a2, a3, b_, p_, shape, transposes)                                        \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %" p_ ", 0; wgmma.mma_async.sync.aligned." shape " {" RACKCAST_NAMES_##n \
               "}, {%" a0 ",%" a1 ",%" a2 ",%" a3 "}, %" b_ ", p, 1, 1" transposes "; }"                                 \
               : RACKCAST_SUMS_##n(0)                                                                                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))

#define RACKCAST_E4M3_PRODUCTS(n, width, o0, o1, o2, o3, o4, o5)                                                          \
  __device__ inline void wgmma_e4m3_64xNx32(float (&d)[n], std::uint64_t a, std::uint64_t b, int accumulate) {            \
    RACKCAST_PRODUCT_SHARED(n, o0, o1, o2, "m64n" width "k32.f32.e4m3.e4m3", "");                                         \
  }                                                                                                                       \
  __device__ inline void wgmma_e4m3_64xNx32(float (&d)[n], const std::uint32_t (&a)[4], std::uint64_t b, int accumulate) { \
    RACKCAST_PRODUCT_REGISTERS(n, o0, o1, o2, o3, o4, o5, "m64n" width "k32.f32.e4m3.e4m3", "");                           \
  }
// keys: A and B have K contiguous. values: B has N contiguous (its rows are K).
#define RACKCAST_16BIT_PRODUCTS(n, width, o0, o1, o2, o3, o4, o5)                                                        \
  template <bool half>                                                                                                   \
  __device__ inline void wgmma_keys_64xNx16(float (&d)[n], std::uint64_t a, std::uint64_t b, int accumulate) {            \
    if constexpr (half) RACKCAST_PRODUCT_SHARED(n, o0, o1, o2, "m64n" width "k16.f32.f16.f16", ", 0, 0");                 \
    else RACKCAST_PRODUCT_SHARED(n, o0, o1, o2, "m64n" width "k16.f32.bf16.bf16", ", 0, 0");                              \
  }                                                                                                                      \
  template <bool half>                                                                                                   \
  __device__ inline void wgmma_values_64xNx16(float (&d)[n], std::uint64_t a, std::uint64_t b, int accumulate) {          \
    if constexpr (half) RACKCAST_PRODUCT_SHARED(n, o0, o1, o2, "m64n" width "k16.f32.f16.f16", ", 0, 1");                 \
    else RACKCAST_PRODUCT_SHARED(n, o0, o1, o2, "m64n" width "k16.f32.bf16.bf16", ", 0, 1");                              \
  }                                                                                                                      \
  template <bool half>                                                                                                   \
  __device__ inline void wgmma_values_64xNx16(float (&d)[n], const std::uint32_t (&a)[4], std::uint64_t b, int accumulate) { \
    if constexpr (half) RACKCAST_PRODUCT_REGISTERS(n, o0, o1, o2, o3, o4, o5, "m64n" width "k16.f32.f16.f16", ", 1");      \
    else RACKCAST_PRODUCT_REGISTERS(n, o0, o1, o2, o3, o4, o5, "m64n" width "k16.f32.bf16.bf16", ", 1");                   \
  }

namespace rackcast::kernels {

RACKCAST_E4M3_PRODUCTS(4, "8", "4", "5", "6", "7", "8", "9")
RACKCAST_E4M3_PRODUCTS(8, "16", "8", "9", "10", "11", "12", "13")
RACKCAST_E4M3_PRODUCTS(16, "32", "16", "17", "18", "19", "20", "21")
RACKCAST_E4M3_PRODUCTS(32, "64", "32", "33", "34", "35", "36", "37")
RACKCAST_E4M3_PRODUCTS(64, "128", "64", "65", "66", "67", "68", "69")
RACKCAST_E4M3_PRODUCTS(128, "256", "128", "129", "130", "131", "132", "133")
RACKCAST_16BIT_PRODUCTS(32, "64", "32", "33", "34", "35", "36", "37")
RACKCAST_16BIT_PRODUCTS(64, "128", "64", "65", "66", "67", "68", "69")
RACKCAST_16BIT_PRODUCTS(128, "256", "128", "129", "130", "131", "132", "133")

}  // namespace rackcast::kernels

#undef RACKCAST_16BIT_PRODUCTS
#undef RACKCAST_E4M3_PRODUCTS
#undef RACKCAST_PRODUCT_REGISTERS
#undef RACKCAST_PRODUCT_SHARED
