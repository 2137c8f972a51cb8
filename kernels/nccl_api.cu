#include "kernels/nccl_api.hpp"

#include "sim/base/error.hpp"

namespace rackcast::kernels {

NcclApi::NcclApi(const std::vector<std::string>& folders) : library({"libnccl.so.2"}, folders) {
#define RACKCAST_NCCL_NEED(name) name = library.function<decltype(nccl##name)>("nccl" #name)
#define RACKCAST_NCCL_MAY(name) name = library.function_or_null<decltype(nccl##name)>("nccl" #name)
  RACKCAST_NCCL_NEED(GetErrorString);
  RACKCAST_NCCL_NEED(GetUniqueId);
  RACKCAST_NCCL_NEED(CommInitRank);
  RACKCAST_NCCL_NEED(CommDestroy);
  RACKCAST_NCCL_NEED(CommAbort);
  RACKCAST_NCCL_NEED(CommGetAsyncError);
  RACKCAST_NCCL_NEED(GroupStart);
  RACKCAST_NCCL_NEED(GroupEnd);
  RACKCAST_NCCL_NEED(Send);
  RACKCAST_NCCL_NEED(Recv);
  RACKCAST_NCCL_NEED(AllReduce);
  RACKCAST_NCCL_NEED(AllGather);
  RACKCAST_NCCL_NEED(ReduceScatter);
  RACKCAST_NCCL_MAY(AlltoAll);
  RACKCAST_NCCL_MAY(MemAlloc);
  RACKCAST_NCCL_MAY(MemFree);
  RACKCAST_NCCL_MAY(CommWindowRegister);
  RACKCAST_NCCL_MAY(CommWindowDeregister);
#undef RACKCAST_NCCL_NEED
#undef RACKCAST_NCCL_MAY
  library.function<decltype(ncclGetVersion)>("ncclGetVersion")(&version);
}

void NcclApi::check(ncclResult_t result, const char* expression, const char* file, int line) const {
  if (result == ncclSuccess) return;
  throw Unavailable(std::string("NCCL ") + expression + ": " + GetErrorString(result) + " (" + file + ":" + std::to_string(line) + ")");
}

}  // namespace rackcast::kernels
