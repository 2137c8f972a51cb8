// Verification of drafts. Floor: a row reads 259 kB, 60 ns at 4.3 TB/s; two nodes of a graph.
#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/small_device.hpp"

namespace rackcast::kernels {
namespace {

__device__ float gumbel(std::uint64_t seed, int row, int token) {
  const float uniform = (static_cast<float>(random_bits(seed + row, token) >> 41) + 0.5f) * 0x1p-23f;  // exact, never 1
  return -__logf(-logf(uniform));  // the winners' uniforms are near 1, where the fast logarithm has no digits left
}

// What a part of a row knows: maximum and sum of the softmax, the best noisy logit.
struct RowPart {
  float largest = -1e30f, sum = 0, best = -1e30f;
  int token = 0;
  __device__ void add(const RowPart& other) {
    const float next = fmaxf(largest, other.largest);
    sum = sum * __expf(largest - next) + other.sum * __expf(other.largest - next);
    largest = next;
    if (other.best > best) best = other.best, token = other.token;
  }
  __device__ void across_warp() {
    for (int step = 16; step > 0; step >>= 1) {
      RowPart other;
      other.largest = __shfl_xor_sync(0xffffffffu, largest, step);
      other.sum = __shfl_xor_sync(0xffffffffu, sum, step);
      other.best = __shfl_xor_sync(0xffffffffu, best, step);
      other.token = __shfl_xor_sync(0xffffffffu, token, step);
      add(other);
    }
  }
};
static_assert(sizeof(RowPart) == 16);

// blockIdx.x takes one of verify_splits parts of row blockIdx.y, one pass.
__global__ void __launch_bounds__(512) verify_kernel(int vocabulary, const __nv_bfloat16* logits, const std::int32_t* drafts, std::uint64_t seed, RowPart* parts) {
  __shared__ RowPart warps[16];
  const int row = static_cast<int>(blockIdx.y), draft = drafts[row], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const __nv_bfloat16* mine = logits + static_cast<std::size_t>(row) * vocabulary;
  const int share = (vocabulary + verify_splits - 1) / verify_splits, begin = static_cast<int>(blockIdx.x) * share, end = min(begin + share, vocabulary);
  RowPart part;
  for (int token = begin + static_cast<int>(threadIdx.x); token < end; token += 512) {
    const float logit = __bfloat162float(mine[token]);
    RowPart one;
    one.largest = logit;
    one.sum = 1;
    one.best = token == draft ? -1e30f : logit + gumbel(seed, row, token);
    one.token = token;
    part.add(one);
  }
  part.across_warp();
  if (lane == 0) warps[warp] = part;
  __syncthreads();
  if (warp > 0) return;
  part = lane < 16 ? warps[lane] : RowPart();
  part.across_warp();
  if (lane == 0) parts[row * verify_splits + blockIdx.x] = part;
}

__global__ void __launch_bounds__(32) verdict_kernel(int vocabulary, const __nv_bfloat16* logits, const std::int32_t* drafts, const RowPart* parts, Verdict* verdicts) {
  const int row = static_cast<int>(blockIdx.x), lane = threadIdx.x;
  RowPart part = lane < verify_splits ? parts[row * verify_splits + lane] : RowPart();
  part.across_warp();
  if (lane == 0) verdicts[row] = {__expf(__bfloat162float(logits[static_cast<std::size_t>(row) * vocabulary + drafts[row]]) - part.largest) / part.sum, part.token};
}

}  // namespace

void launch_verify(int rows, int vocabulary, const void* logits, const std::int32_t* drafts, std::uint64_t seed, float* scratch, Verdict* verdicts, Stream stream) {
  const auto* data = static_cast<const __nv_bfloat16*>(logits);
  auto* parts = reinterpret_cast<RowPart*>(scratch);
  verify_kernel<<<dim3(verify_splits, static_cast<unsigned>(rows)), 512, 0, stream>>>(vocabulary, data, drafts, seed, parts);
  RACKCAST_LAUNCH_CHECK();
  verdict_kernel<<<static_cast<unsigned>(rows), 32, 0, stream>>>(vocabulary, data, drafts, parts, verdicts);
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace rackcast::kernels
