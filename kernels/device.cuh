// Device helpers that every kernel shares: number formats, warp matrix products that exist on every target, async copies.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace rackcast::kernels {

// --- counter-based random numbers: a pure function of (seed, index) ---
__host__ __device__ inline std::uint64_t mix64(std::uint64_t x) {  // SplitMix64's finaliser
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
__host__ __device__ inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  return mix64(mix64(seed) ^ (index * 0xd1342543de82ef95ull));
}

// --- number formats ---
__device__ inline float e4m3_to_float(std::uint8_t code) {
  __nv_fp8_e4m3 value;
  value.__x = code;
  return static_cast<float>(value);
}
__device__ inline std::uint8_t float_to_e4m3(float value) { return __nv_fp8_e4m3(value).__x; }  // saturates at 448
// e2m1: sign, 2 exponent bits, 1 mantissa bit: 0 0.5 1 1.5 2 3 4 6.
__host__ __device__ inline float e2m1_to_float(unsigned code) {
  const unsigned exponent = (code >> 1) & 3, mantissa = code & 1;
  const float magnitude = exponent == 0 ? 0.5f * mantissa : (1.0f + 0.5f * mantissa) * static_cast<float>(1u << (exponent - 1));
  return (code & 8) ? -magnitude : magnitude;
}
// UE8M0: 2^(code - 127); code 0 is 2^-127 (a denormal, which __uint_as_float(0x400000) spells exactly).
__device__ inline float ue8m0_to_float(std::uint8_t code) {
  return __uint_as_float(code == 0 ? 0x400000u : static_cast<unsigned>(code) << 23);
}

// --- warp matrix products (sm_80 and later forms; fp8 from sm_89) ---
// D(16x8, fp32) += A(16x16, bf16, row) * B(16x8, bf16, column)
__device__ inline void mma_bf16_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// The same with fp16 operands
__device__ inline void mma_f16_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// D(16x8, fp32) += A(16x32, e4m3, row) * B(32x8, e4m3, column)
__device__ inline void mma_e4m3_16x8x32(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// --- shared memory ---
__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ inline void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}
__device__ inline void ldmatrix_x4_trans(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}
__device__ inline void cp_async_16(std::uint32_t shared, const void* global, bool valid = true) {
  const int bytes = valid ? 16 : 0;  // 0: writes zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes));
}
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;"); }
template <int N>
__device__ inline void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }

// --- warps ---
__device__ inline float warp_max(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}
__device__ inline float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ inline float low_bf16(std::uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ inline float high_bf16(std::uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ inline std::uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  std::uint32_t bits;
  memcpy(&bits, &pair, 4);
  return bits;
}

}  // namespace rackcast::kernels
