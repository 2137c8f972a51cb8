#include "kernels/block_copy.hpp"

#include <algorithm>

namespace rackcast::kernels {

namespace {

constexpr int threads = 512;
constexpr int64_t piece_bytes = 8192;  // what one warp takes at a time
constexpr int in_flight = 4;           // loads of 16 bytes a lane has under way

struct Piece {
  int64_t block, begin, bytes;
};
__device__ Piece piece_of(const BlockList& list, int64_t index) {
  const int64_t per_block = (list.block_bytes + piece_bytes - 1) / piece_bytes;
  const int64_t begin = index % per_block * piece_bytes;
  return {index / per_block, begin, min(piece_bytes, list.block_bytes - begin)};
}
__device__ int64_t pieces(const BlockList& list) { return list.blocks * ((list.block_bytes + piece_bytes - 1) / piece_bytes); }
__device__ int64_t place(const int64_t* offsets, const BlockList& list, int64_t block) { return offsets ? offsets[block] : block * list.block_bytes; }

__global__ void __launch_bounds__(threads) copy_kernel(BlockList list, const char* source, char* destination) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t warp = (blockIdx.x * int64_t{blockDim.x} + threadIdx.x) / 32;
  const int64_t warps = int64_t{gridDim.x} * blockDim.x / 32;
  for (int64_t index = warp; index < pieces(list); index += warps) {
    const Piece piece = piece_of(list, index);
    const auto* from = reinterpret_cast<const uint4*>(source + place(list.from, list, piece.block) + piece.begin);
    auto* to = reinterpret_cast<uint4*>(destination + place(list.to, list, piece.block) + piece.begin);
    const int words = static_cast<int>(piece.bytes / 16);
    for (int first = lane; first < words; first += 32 * in_flight) {
      uint4 value[in_flight];
#pragma unroll
      for (int i = 0; i < in_flight; ++i)
        if (first + 32 * i < words) value[i] = from[first + 32 * i];
#pragma unroll
      for (int i = 0; i < in_flight; ++i)
        if (first + 32 * i < words) to[first + 32 * i] = value[i];
    }
  }
}

__global__ void __launch_bounds__(threads) compare_kernel(BlockList list, const char* source, const char* destination, unsigned long long* found) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t warp = (blockIdx.x * int64_t{blockDim.x} + threadIdx.x) / 32;
  const int64_t warps = int64_t{gridDim.x} * blockDim.x / 32;
  unsigned long long unlike = 0;
  for (int64_t index = warp; index < pieces(list); index += warps) {
    const Piece piece = piece_of(list, index);
    const auto* a = reinterpret_cast<const uint4*>(source + place(list.from, list, piece.block) + piece.begin);
    const auto* b = reinterpret_cast<const uint4*>(destination + place(list.to, list, piece.block) + piece.begin);
    for (int i = lane; i < piece.bytes / 16; i += 32)
      unlike += a[i].x != b[i].x || a[i].y != b[i].y || a[i].z != b[i].z || a[i].w != b[i].w;
  }
  if (unlike) atomicAdd(found, unlike);
}

int ctas_for(const BlockList& list, int most) {
  const int64_t work = list.blocks * ((list.block_bytes + piece_bytes - 1) / piece_bytes);
  return static_cast<int>(std::clamp<int64_t>((work + threads / 32 - 1) / (threads / 32), 1, most));
}

}  // namespace

void launch_block_copy(const BlockList& list, const char* source, char* destination, int ctas, Stream stream) {
  copy_kernel<<<ctas_for(list, ctas), threads, 0, stream>>>(list, source, destination);
  RACKCAST_LAUNCH_CHECK();
}
void launch_block_compare(const BlockList& list, const char* source, const char* destination, unsigned long long* found, Stream stream) {
  compare_kernel<<<ctas_for(list, 1024), threads, 0, stream>>>(list, source, destination, found);
  RACKCAST_LAUNCH_CHECK();
}
void load_block_kernels() {
  cudaFuncAttributes ignored;
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, copy_kernel));
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, compare_kernel));
}

}  // namespace rackcast::kernels
