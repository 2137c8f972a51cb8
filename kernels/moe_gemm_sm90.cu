// The grouped product with Hopper's warpgroup products, alone or in pairs of CTAs that share what they load.
#include "kernels/moe_gemm_launch.cuh"

namespace rackcast::kernels {

void launch_grouped_sm90(const GroupedProduct& product, bool swiglu, bool mxfp4, bool pairs, int sm_count, Stream stream) {
  using P = WarpgroupProduct;
  if (swiglu && mxfp4) return launch_grouped<GroupedConfig<true, true, 1, P, 128>>(product, sm_count, stream);
  if (mxfp4) return launch_grouped<GroupedConfig<false, true, 1, P, 128>>(product, sm_count, stream);
  if (swiglu && pairs) return launch_grouped<GroupedConfig<true, false, 2, P, 128>>(product, sm_count, stream);
  if (swiglu) return launch_grouped<GroupedConfig<true, false, 1, P, 128>>(product, sm_count, stream);
  if (pairs) return launch_grouped<GroupedConfig<false, false, 2, P, 128>>(product, sm_count, stream);
  launch_grouped<GroupedConfig<false, false, 1, P, 128>>(product, sm_count, stream);
}

}  // namespace rackcast::kernels
