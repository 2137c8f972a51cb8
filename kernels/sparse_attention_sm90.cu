// Sparse latent attention on Hopper: the rows of latent_attention_sm90.cuh come from an index list.
#include "kernels/device.hpp"
#include "kernels/latent_attention_sm90.cuh"
#include "kernels/sparse_attention_kernels.hpp"
#include "kernels/sparse_problem.cuh"

namespace rackcast::kernels {
namespace {

template <KvFormat format>
void launch(const LatentParams& params, int sm_count, Stream stream) {
  using Problem = SparseProblem<format>;
  constexpr int bytes = LatentShared<Problem>::bytes;
  static const cudaError_t prepared = cudaFuncSetAttribute(latent_attention_sm90<Problem>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  RACKCAST_CUDA_CHECK(prepared);
  const int items = params.tokens * params.splits;
  latent_attention_sm90<Problem><<<items < sm_count ? items : sm_count, latent_threads<Problem>, bytes, stream>>>(Problem{params});
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace

void sparse_attention_sm90(const LatentParams& params, KvFormat format, int sm_count, Stream stream) {
  if (format == KvFormat::bf16) launch<KvFormat::bf16>(params, sm_count, stream);
  else if (format == KvFormat::v4) launch<KvFormat::v4>(params, sm_count, stream);
  else launch<KvFormat::v41>(params, sm_count, stream);
}

}  // namespace rackcast::kernels
