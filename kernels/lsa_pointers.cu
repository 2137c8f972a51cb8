// NCCL from 2.29 on tells the host the addresses. In 2.28 only device code can ask, and the inline functions of the
// header read the window's structure, so there the versions of header and library have to be the same.
#include "kernels/lsa_pointers.hpp"

#if __has_include(<nccl_device.h>)
#include <nccl_device.h>
#endif

#include "kernels/device.hpp"
#include "kernels/nccl_api.hpp"

namespace rackcast::kernels {

#if __has_include(<nccl_device.h>)
namespace {

__global__ void ask_kernel(ncclWindow_t window, int ranks, char** out) {
  for (int r = static_cast<int>(threadIdx.x); r < ranks; r += static_cast<int>(blockDim.x))
    out[r] = static_cast<char*>(ncclGetLsaPointer(window, 0, r));
}

}  // namespace
#endif

std::vector<char*> lsa_pointers(const NcclApi& api, ncclWindow_t window, int ranks) {
  std::vector<char*> found(static_cast<std::size_t>(ranks), nullptr);
  // ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank, void** outPtr)
  using HostQuery = ncclResult_t(ncclWindow_t, std::size_t, int, void**);
  if (auto* ask = api.library.function_or_null<HostQuery>("ncclGetLsaDevicePointer")) {
    for (int r = 0; r < ranks; ++r) {
      void* address = nullptr;
      api.check(ask(window, 0, r, &address), "GetLsaDevicePointer", __FILE__, __LINE__);
      found[static_cast<std::size_t>(r)] = static_cast<char*>(address);
    }
    return found;
  }
#if __has_include(<nccl_device.h>)
  if (api.version / 100 == NCCL_VERSION_CODE / 100) {
    DeviceBuffer<char*> out(found.size());
    ask_kernel<<<1, 32>>>(window, ranks, out.data());
    RACKCAST_LAUNCH_CHECK();
    return out.to_host();
  }
#endif
  return {};
}

}  // namespace rackcast::kernels
