// Family all_to_all: expert dispatch and combine between the ranks of an engine.
//   part   pair (dispatch then combine), dispatch, combine; on one GPU also pack and reduce: what one rank does locally
//   path   lsa (one-sided stores and loads in windows that NCCL maps), sendrecv (grouped sends of exact counts), padded
//          (ncclAlltoAll of full stripes), virtual (all ranks on this GPU; never a cost of NVLink)
#pragma once
#include "kernels/all_to_all_layout.hpp"
#include "kernels/family.hpp"

namespace rackcast::kernels {

a2a::Shape a2a_shape(const Shape& shape);  // capacity = tokens

}  // namespace rackcast::kernels
