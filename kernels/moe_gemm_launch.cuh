// Launching one configuration of the grouped product.
#pragma once
#include "kernels/device.hpp"
#include "kernels/moe_gemm_kernel.cuh"

namespace rackcast::kernels {

template <typename C>
void launch_grouped(const GroupedProduct& product, int sm_count, Stream stream) {
  static const bool prepared = [] {
    RACKCAST_CUDA_CHECK(cudaFuncSetAttribute(grouped_product_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::shared_bytes));
    return true;
  }();
  (void)prepared;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(sm_count / C::cluster * C::cluster));
  config.blockDim = dim3(C::threads);
  config.dynamicSmemBytes = C::shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = C::cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  RACKCAST_CUDA_CHECK(cudaLaunchKernelEx(&config, grouped_product_kernel<C>, product));
}

}  // namespace rackcast::kernels
