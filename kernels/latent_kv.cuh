// Rows of latent KV pools: where they lie, how four threads of a row load one, turn it into fp16 and store it into a
// shared-memory block. A block is 64 rows x 512 values as 8 tiles of 64 rows x 128 B, 16-byte chunks XOR-swizzled by the
// row (the 128-byte swizzle that wgmma reads and ldmatrix reads without bank conflicts).
#pragma once
#include "kernels/device.cuh"
#include "kernels/sparse_attention.hpp"

namespace rackcast::kernels {

constexpr int block_rows = 64;
constexpr int tile_bytes = block_rows * 128;

// How rows come into shared memory: converted to fp16, copied row by row, or page by page through a tensor map.
enum class RowSource { converted, copied, pages };

struct LatentPools {
  const std::uint8_t* window = nullptr;
  const std::uint8_t* selected = nullptr;
};

struct LatentParams {
  const __nv_bfloat16* q = nullptr;   // [tokens][64][512]
  LatentPools pools;
  const std::int32_t* indices = nullptr;  // [tokens][keys]; the first `window` index the window pool; -1: no row
  const float* sink = nullptr;            // [64]
  int tokens = 0;
  int keys = 0;
  int window = 0;
  float scale_log2 = 0;                   // softmax scale * log2(e)
  int splits = 1;
  int blocks_per_split = 0;               // even
  __nv_bfloat16* out = nullptr;           // [tokens][64][512]
  float* lse = nullptr;                   // [tokens][64]
  float* partial_out = nullptr;           // [tokens][splits][64][512], normalised within the split
  float* partial_lse = nullptr;           // [tokens][splits][64], log2
};

// Where the values of a query row go: the result, or a split's part of it. Neither: a padding row.
struct OutputRow {
  __nv_bfloat16* values = nullptr;
  float* partial = nullptr;
  __device__ void store(int column, float a, float b) const {
    if (partial) *reinterpret_cast<float2*>(partial + column) = make_float2(a, b);
    else if (values) *reinterpret_cast<std::uint32_t*>(values + column) = pack_bf16(a, b);
  }
};

// Byte offset of 16-byte chunk `chunk` (0..63 over the 512 values) of a row within a block.
__device__ inline std::uint32_t chunk_offset(int row, int chunk) {
  return static_cast<std::uint32_t>((chunk >> 3) * tile_bytes + row * 128 + (((chunk & 7) ^ (row & 7)) << 4));
}

__device__ inline void store_shared_16(std::uint32_t address, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
__device__ inline std::uint32_t mul_f16x2(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}
__device__ inline std::uint32_t pack_f16(float low, float high) {
  std::uint32_t bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
template <bool half>
__device__ inline std::uint32_t pack_16(float low, float high) {
  if constexpr (half) return pack_f16(low, high);
  else return pack_bf16(low, high);
}
__device__ inline std::uint32_t bf16x2_to_f16x2(std::uint32_t pair) {  // magnitudes below 65504
  return pack_f16(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
// 16 bytes into v if there is a row, else v keeps what it held.
__device__ inline void load_row_16(uint4& v, const std::uint8_t* address, bool valid) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4]; }"
               : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w) : "l"(address), "r"(static_cast<int>(valid)));
}

// Pieces of 16 bytes, 64 bytes apart, by one address register and immediate offsets: with an address each, every load would
// wait until the one before it has left its registers.
template <int count, int n>
__device__ inline void load_row_pieces(uint4 (&value)[n], const std::uint8_t* address, bool valid) {
  asm volatile("" : "+l"(address));
#pragma unroll
  for (int i = 0; i < count; ++i) load_row_16(value[i], address + 64 * i, valid);
}

// Four e4m3 times their group's power of two -> two fp16x2. Exact while the products are normal in fp16 or at least 2^-24.
__device__ inline void e4m3x4_to_f16(std::uint32_t codes, std::uint32_t multiplier, std::uint32_t& low, std::uint32_t& high) {
  asm("{.reg .b16 a, b; mov.b32 {a, b}, %2; cvt.rn.f16x2.e4m3x2 %0, a; cvt.rn.f16x2.e4m3x2 %1, b;}" : "=r"(low), "=r"(high) : "r"(codes));
  low = mul_f16x2(low, multiplier);
  high = mul_f16x2(high, multiplier);
}
// Byte `index` of a word of UE8M0 scales as fp16x2, at least 2^-14; scales are at most 2^7.
__device__ inline std::uint32_t ue8m0_multiplier(std::uint32_t word, int index) {
  const int exponent = max(static_cast<int>(word >> (8 * index) & 0xffu) - 127 + 15, 1);
  return static_cast<std::uint32_t>(exponent) * 0x04000400u;
}
// Two e2m1 codes in one byte (at bit 8*byte of word) -> fp16x2 times 2^-14.
__device__ inline std::uint32_t e2m1x2_raw(std::uint32_t word, int byte) {
  const std::uint32_t w = word >> (8 * byte);
  const std::uint32_t both = (w & 0xfu) | ((w & 0xf0u) << 12);
  return ((both & 0x00080008u) << 12) | ((both & 0x00070007u) << 9);
}

__device__ inline const std::uint8_t* v4_values(const std::uint8_t* pool, int slot) {
  return pool + static_cast<std::size_t>(slot >> 6) * (page_rows * 584) + (slot & 63) * 576;
}
__device__ inline const std::uint8_t* v4_scales(const std::uint8_t* pool, int slot) {
  return pool + static_cast<std::size_t>(slot >> 6) * (page_rows * 584) + page_rows * 576 + (slot & 63) * 8;
}

__device__ inline void prefetch_line(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

// What one of a row's four threads (quarter 0..3) holds between loading and storing. Where there is no row (slot -1) it
// keeps an earlier one's values or zeros: finite numbers, which probabilities of zero then leave out.
template <KvFormat format>
struct RawRow;

template <>
struct RawRow<KvFormat::bf16> {};  // copied as it is

// 16 e4m3 -> chunks 2c, 2c+1 of the row.
__device__ inline void store_e4m3_chunk(std::uint32_t block, int row, int c, uint4 codes, std::uint32_t multiplier) {
  std::uint32_t v[8];
  e4m3x4_to_f16(codes.x, multiplier, v[0], v[1]);
  e4m3x4_to_f16(codes.y, multiplier, v[2], v[3]);
  e4m3x4_to_f16(codes.z, multiplier, v[4], v[5]);
  e4m3x4_to_f16(codes.w, multiplier, v[6], v[7]);
  store_shared_16(block + chunk_offset(row, 2 * c), v[0], v[1], v[2], v[3]);
  store_shared_16(block + chunk_offset(row, 2 * c + 1), v[4], v[5], v[6], v[7]);
}

template <>
struct RawRow<KvFormat::v4> {
  uint4 value[9] = {};
  uint2 scales = {};
  __device__ static void prefetch(const LatentPools& pools, bool selected, int slot, int quarter) {
    if (slot < 0) return;
    const std::uint8_t* pool = selected ? pools.selected : pools.window;
    prefetch_line(v4_values(pool, slot) + quarter * 128);
    if (quarter == 0) prefetch_line(v4_values(pool, slot) + 512);
    if (quarter == 1) prefetch_line(v4_scales(pool, slot));
  }
  __device__ void load(const LatentPools& pools, bool selected, int slot, int quarter) {
    const std::uint8_t* pool = selected ? pools.selected : pools.window;
    if (slot >= 0) scales = __ldg(reinterpret_cast<const uint2*>(v4_scales(pool, slot)));
    load_row_pieces<9>(value, v4_values(pool, slot < 0 ? 0 : slot) + quarter * 16, slot >= 0);
  }

  __device__ void store(std::uint32_t block, bool, int row, int quarter) const {
#pragma unroll
    for (int i = 0; i < 7; ++i) {  // chunk quarter + 4i lies in group i
      store_e4m3_chunk(block, row, quarter + 4 * i, value[i], ue8m0_multiplier(i < 4 ? scales.x : scales.y, i & 3));
    }
#pragma unroll
    for (int i = 7; i < 9; ++i) {  // rope: chunks 28..35 of the row are chunks 56..63 of the block
      store_shared_16(block + chunk_offset(row, 28 + quarter + 4 * i), bf16x2_to_f16x2(value[i].x), bf16x2_to_f16x2(value[i].y), bf16x2_to_f16x2(value[i].z),
                      bf16x2_to_f16x2(value[i].w));
    }
  }
};

template <>
struct RawRow<KvFormat::v41> {
  uint4 value[8] = {};
  uint4 scales = {};
  __device__ static void prefetch(const LatentPools& pools, bool selected, int slot, int quarter) {
    if (slot < 0) return;
    const std::uint8_t* row = selected ? pools.selected + static_cast<std::size_t>(slot) * 288 : pools.window + static_cast<std::size_t>(slot) * 528;
    const int bytes = selected ? 288 : 528;
    if (quarter * 128 < bytes) prefetch_line(row + quarter * 128);
    if (quarter == 3) prefetch_line(row + bytes - 16);
  }
  __device__ void load(const LatentPools& pools, bool selected, int slot, int quarter) {
    if (slot < 0) {  // values of the other pool's rows could be read as no number
#pragma unroll
      for (int i = 0; i < 8; ++i) value[i] = make_uint4(0, 0, 0, 0);
      scales = make_uint4(0, 0, 0, 0);
    } else if (selected) {
      const std::uint8_t* row = pools.selected + static_cast<std::size_t>(slot) * 288;
      const auto* pair = reinterpret_cast<const std::uint16_t*>(row + 256) + quarter;  // two scales a chunk
      scales = make_uint4(__ldg(pair), __ldg(pair + 4), __ldg(pair + 8), __ldg(pair + 12));
      load_row_pieces<4>(value, row + quarter * 16, true);
    } else {
      const std::uint8_t* row = pools.window + static_cast<std::size_t>(slot) * 528;
      scales = __ldg(reinterpret_cast<const uint4*>(row + 512));
      load_row_pieces<8>(value, row + quarter * 16, true);
    }
  }
  __device__ void store(std::uint32_t block, bool selected, int row, int quarter) const {
    if (selected) {
      const std::uint32_t pairs[4] = {scales.x, scales.y, scales.z, scales.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        store_e2m1_chunk(block, row, quarter + 4 * i, value[i], pairs[i]);
      }
      return;
    }
    const std::uint32_t words[4] = {scales.x, scales.y, scales.z, scales.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {  // chunk quarter + 4i lies in group (quarter + 4i) / 2
      store_e4m3_chunk(block, row, quarter + 4 * i, value[i], ue8m0_multiplier(words[i >> 1], 2 * (i & 1) + (quarter >> 1)));
    }
  }

 private:
  // 32 e2m1 -> chunks 4c..4c+3 of the row; the first 16 values have the low scale.
  __device__ static void store_e2m1_chunk(std::uint32_t block, int row, int c, uint4 codes, std::uint32_t scale_pair) {
    const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
    constexpr std::uint32_t two_to_14 = 0x74007400u, one = 0x3c003c00u;
    std::uint32_t low, high;  // the two scales as fp16x2, each in both halves
    e4m3x4_to_f16((scale_pair & 0xffu) * 0x0101u | ((scale_pair >> 8) & 0xffu) * 0x01010000u, one, low, high);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const std::uint32_t scale = w < 2 ? low : high;
      std::uint32_t v[4];
#pragma unroll
      for (int b = 0; b < 4; ++b) v[b] = mul_f16x2(mul_f16x2(e2m1x2_raw(words[w], b), two_to_14), scale);
      store_shared_16(block + chunk_offset(row, 4 * c + w), v[0], v[1], v[2], v[3]);
    }
  }
};

__device__ inline int slot_of(const LatentParams& p, int token, int key) {
  if (key >= p.keys) return -1;
  int slot;  // volatile: asked for where it stands, not where it is used
  asm volatile("ld.global.nc.L2::256B.s32 %0, [%1];" : "=r"(slot) : "l"(p.indices + static_cast<std::size_t>(token) * p.keys + key));
  return slot;
}

// One value of a row, exactly; for references.
__device__ inline double latent_value(KvFormat format, const LatentPools& pools, bool selected, int slot, int dim) {
  const std::uint8_t* pool = selected ? pools.selected : pools.window;
  if (format == KvFormat::bf16)
    return static_cast<float>(reinterpret_cast<const __nv_bfloat16*>(pool)[static_cast<std::size_t>(slot) * latent_dims + dim]);
  if (format == KvFormat::v4) {
    const std::uint8_t* row = v4_values(pool, slot);
    if (dim >= 448) return static_cast<float>(reinterpret_cast<const __nv_bfloat16*>(row + 448)[dim - 448]);
    return static_cast<double>(e4m3_to_float(row[dim])) * ue8m0_to_float(v4_scales(pool, slot)[dim / 64]);
  }
  if (selected) {
    const std::uint8_t* row = pool + static_cast<std::size_t>(slot) * 288;
    return static_cast<double>(e2m1_to_float((row[dim / 2] >> (4 * (dim & 1))) & 15)) * e4m3_to_float(row[256 + dim / 16]);
  }
  const std::uint8_t* row = pool + static_cast<std::size_t>(slot) * 528;
  return static_cast<double>(e4m3_to_float(row[dim])) * ue8m0_to_float(row[512 + dim / 32]);
}

}  // namespace rackcast::kernels
