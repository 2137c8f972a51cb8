// What Hopper added and later chips kept: transaction barriers in shared memory, bulk and tensor copies, clusters; and,
// on sm_90a only, the fences of the asynchronous warpgroup products (hopper_wgmma.cuh has the products).
// Every function is a thin name for one or two PTX instructions; addresses are 32-bit shared-memory addresses.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "kernels/device.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDA_ARCH__)
#define RACKCAST_HAVE_WGMMA 1
#else
#define RACKCAST_HAVE_WGMMA 0
#endif

namespace rackcast::kernels {

// --- barriers ---
__device__ inline void mbarrier_init(std::uint32_t barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void mbarrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void mbarrier_expect(std::uint32_t barrier, unsigned bytes) {  // arrives, too
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ inline void mbarrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void mbarrier_arrive_at(std::uint32_t barrier, unsigned cluster_rank) {  // same offset, that CTA
  asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;"
               "mbarrier.arrive.shared::cluster.b64 _, [remote]; }" ::"r"(barrier), "r"(cluster_rank) : "memory");
}
__device__ inline void mbarrier_wait(std::uint32_t barrier, unsigned parity) {
  asm volatile("{ .reg .pred done;\n"
               "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@done bra.uni over;\n bra.uni again;\n over: }" ::"r"(barrier), "r"(parity) : "memory");
}
// Arrives when all earlier cp.async of this thread have landed.
__device__ inline void mbarrier_arrive_after_copies(std::uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void named_barrier(int id, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
// Before shared memory written by ordinary stores is read by the tensor cores or the copy engine.
__device__ inline void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// --- clusters ---
__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// --- copies into shared memory that complete on a barrier; sizes and addresses are multiples of 16 bytes ---
constexpr std::uint64_t evict_first = 0x12f0000000000000ull;  // the L2 policies' encodings, as the vendor's headers have them
constexpr std::uint64_t evict_normal = 0x1000000000000000ull;
constexpr std::uint64_t evict_last = 0x14f0000000000000ull;

__device__ inline void bulk_load(std::uint32_t shared, const void* global, unsigned bytes, std::uint32_t barrier,
                                 std::uint64_t policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared),
               "l"(global), "r"(bytes), "r"(barrier), "l"(policy)
               : "memory");
}
__device__ inline void tensor_load(std::uint32_t shared, const CUtensorMap* map, int x, int y, std::uint32_t barrier,
                                   std::uint64_t policy) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
               " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared), "l"(map), "r"(x), "r"(y), "r"(barrier), "l"(policy)
               : "memory");
}
// To the same offset, and the barrier at the same offset, of every CTA of the cluster in `mask`.
__device__ inline void tensor_load_multicast(std::uint32_t shared, const CUtensorMap* map, int x, int y, std::uint32_t barrier,
                                             std::uint16_t mask, std::uint64_t policy) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint"
               " [%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(shared), "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(mask), "l"(policy)
               : "memory");
}
__device__ inline void prefetch_tensor_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Four 8x8 matrices of 16-bit values, each row where a lane's address says.
__device__ inline void stmatrix_x4(std::uint32_t address, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// --- sm_90a: warpgroup products ---
#if RACKCAST_HAVE_WGMMA
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Pending>
__device__ inline void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory"); }
// Keeps the compiler from moving reads of accumulators above a wait.
template <int n>
__device__ inline void accumulators_fence(float (&d)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
// Register budgets of the roles of a warp-specialised kernel.
template <int Registers>
__device__ inline void registers_down() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers)); }
template <int Registers>
__device__ inline void registers_up() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers)); }
#endif
// Descriptor of a tile whose rows are 128 bytes, stored with the 128-byte swizzle (16-byte chunk index xor row % 8),
// 1,024-byte aligned. Adding k * 2 moves k * 32 bytes along a row; adding rows * 8 moves down by rows (multiples of 8).
// Rows are M (or N). Where rows are K (the other dimension is contiguous), `between` is the distance in bytes of tiles of
// 64 such values.
__device__ inline std::uint64_t swizzled_tile(std::uint32_t address, std::uint32_t between = 16) {
  return (std::uint64_t{1} << 62) | (std::uint64_t{64} << 32) | (static_cast<std::uint64_t>(between >> 4) << 16) | ((address & 0x3ffff) >> 4);
}
// A descriptor so many bytes further. Only the low word changes: a 64-bit sum would cost more than it is worth.
__device__ inline std::uint64_t tile_plus(std::uint64_t tile, std::uint32_t bytes) {
  return (tile & 0xffffffff00000000ull) | static_cast<std::uint32_t>(static_cast<std::uint32_t>(tile) + (bytes >> 4));
}

}  // namespace rackcast::kernels
