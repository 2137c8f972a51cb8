// Where NCCL has mapped the peers' parts of a symmetric window. CUDA code only.
#pragma once
#include <nccl.h>

#include <vector>

#include "kernels/launcher.hpp"

namespace rackcast::kernels {

struct NcclApi;

// In rank order. Empty when this build cannot read this NCCL's windows: the caller then reaches peers another way.
std::vector<char*> lsa_pointers(const NcclApi& api, ncclWindow_t window, int ranks);

}  // namespace rackcast::kernels
