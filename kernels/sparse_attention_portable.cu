// Sparse latent attention with warp products, for every target.
#include "kernels/device.hpp"
#include "kernels/latent_attention_portable.cuh"
#include "kernels/sparse_attention_kernels.hpp"
#include "kernels/sparse_problem.cuh"

namespace rackcast::kernels {
namespace {

template <KvFormat format>
void launch(const LatentParams& params, Stream stream) {
  using Problem = SparseProblem<format>;
  constexpr int bytes = PortableShared<Problem::qk_tiles>::bytes;
  static const cudaError_t prepared = cudaFuncSetAttribute(latent_attention_portable<Problem>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  RACKCAST_CUDA_CHECK(prepared);
  latent_attention_portable<Problem><<<params.tokens * params.splits, 256, bytes, stream>>>(Problem{params});
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace

void sparse_attention_portable(const LatentParams& params, KvFormat format, Stream stream) {
  if (format == KvFormat::bf16) launch<KvFormat::bf16>(params, stream);
  else if (format == KvFormat::v4) launch<KvFormat::v4>(params, stream);
  else launch<KvFormat::v41>(params, stream);
}

}  // namespace rackcast::kernels
