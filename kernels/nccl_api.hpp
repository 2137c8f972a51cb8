// NCCL, loaded at run time: only the functions that we call. Names are NCCL's own without the prefix.
#pragma once
#include <nccl.h>

#include <string>
#include <vector>

#include "kernels/dynamic_library.hpp"

namespace rackcast::kernels {

struct NcclApi {
  explicit NcclApi(const std::vector<std::string>& folders);  // Unavailable when NCCL is nowhere or too old
  DynamicLibrary library;
  int version = 0;

  decltype(&ncclGetErrorString) GetErrorString;
  decltype(&ncclGetUniqueId) GetUniqueId;
  decltype(&ncclCommInitRank) CommInitRank;
  decltype(&ncclCommDestroy) CommDestroy;
  decltype(&ncclCommAbort) CommAbort;
  decltype(&ncclCommGetAsyncError) CommGetAsyncError;
  decltype(&ncclGroupStart) GroupStart;
  decltype(&ncclGroupEnd) GroupEnd;
  decltype(&ncclSend) Send;
  decltype(&ncclRecv) Recv;
  decltype(&ncclAllReduce) AllReduce;
  decltype(&ncclAllGather) AllGather;
  decltype(&ncclReduceScatter) ReduceScatter;
  decltype(&ncclAlltoAll) AlltoAll;                        // null before 2.28
  decltype(&ncclMemAlloc) MemAlloc;                        // null before 2.19
  decltype(&ncclMemFree) MemFree;
  decltype(&ncclCommWindowRegister) CommWindowRegister;    // null before 2.27
  decltype(&ncclCommWindowDeregister) CommWindowDeregister;

  void check(ncclResult_t result, const char* expression, const char* file, int line) const;
};

}  // namespace rackcast::kernels

// Use inside functions that have an `const NcclApi& api`: RACKCAST_NCCL_CHECK(api, Send(...)).
#define RACKCAST_NCCL_CHECK(api, call) (api).check((api).call, #call, __FILE__, __LINE__)
