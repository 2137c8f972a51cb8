#include "kernels/device.hpp"
#include "kernels/latent_attention_portable.cuh"
#include "kernels/mla_problem.cuh"

namespace rackcast::kernels {

void mla_attention_portable(const MlaParams& params, Stream stream) {
  constexpr int bytes = PortableShared<MlaProblem::qk_tiles>::bytes;
  static const cudaError_t prepared = cudaFuncSetAttribute(latent_attention_portable<MlaProblem>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  RACKCAST_CUDA_CHECK(prepared);
  latent_attention_portable<MlaProblem><<<params.requests * params.tiles * params.splits, 256, bytes, stream>>>(MlaProblem{params, {}});
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace rackcast::kernels
