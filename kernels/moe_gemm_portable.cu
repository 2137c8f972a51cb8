// The grouped product with warp-level products: any GPU from sm_90 on.
#include "kernels/moe_gemm_launch.cuh"

namespace rackcast::kernels {

void launch_grouped_portable(const GroupedProduct& product, bool swiglu, bool mxfp4, int sm_count, Stream stream) {
  if (swiglu && mxfp4) return launch_grouped<GroupedConfig<true, true, 1, WarpProduct, 64>>(product, sm_count, stream);
  if (swiglu) return launch_grouped<GroupedConfig<true, false, 1, WarpProduct, 64>>(product, sm_count, stream);
  if (mxfp4) return launch_grouped<GroupedConfig<false, true, 1, WarpProduct, 64>>(product, sm_count, stream);
  launch_grouped<GroupedConfig<false, false, 1, WarpProduct, 64>>(product, sm_count, stream);
}

}  // namespace rackcast::kernels
