#include "kernels/device.hpp"
#include "kernels/latent_attention_sm90.cuh"
#include "kernels/mla_problem.cuh"
#include "kernels/tensor_map.hpp"

namespace rackcast::kernels {

void mla_attention_sm90(const MlaParams& params, int sm_count, Stream stream) {
  constexpr int bytes = LatentShared<MlaProblem>::bytes;
  static const cudaError_t prepared = cudaFuncSetAttribute(latent_attention_sm90<MlaProblem>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  RACKCAST_CUDA_CHECK(prepared);
  const int items = params.requests * params.tiles * params.splits;
  MlaProblem problem{params, byte_matrix_map(params.kv, params.pool_rows, mla_qk_dims * 2, stage_rows)};
  latent_attention_sm90<MlaProblem><<<items < sm_count ? items : sm_count, latent_threads<MlaProblem>, bytes, stream>>>(problem);
  RACKCAST_LAUNCH_CHECK();
}

}  // namespace rackcast::kernels
