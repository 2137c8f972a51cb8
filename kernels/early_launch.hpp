// A launch whose blocks may start while the kernel before it in the stream still runs (programmatic dependent launch). Such a
// kernel waits itself, by griddepcontrol.wait, before it touches what that one reads or writes. Only for CUDA builds.
#pragma once
#include <cuda_runtime.h>

#include "kernels/device.hpp"

namespace rackcast::kernels {

struct EarlyLaunch {
  unsigned blocks, threads;
  Stream stream;
  bool early = true;  // false: an ordinary launch
  std::size_t shared_bytes = 0;
};

template <typename... Parameters, typename... Arguments>
void launch_early(const EarlyLaunch& launch, void (*kernel)(Parameters...), const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(launch.blocks);
  config.blockDim = dim3(launch.threads);
  config.stream = launch.stream;
  config.dynamicSmemBytes = launch.shared_bytes;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = launch.early ? 1 : 0;
  RACKCAST_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace rackcast::kernels
