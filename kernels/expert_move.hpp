// Family expert_move: weights of experts go from every rank to the next, as a rebalancing does, alone or beside a
// decode-like load (weights streamed from memory, then a dispatch and combine of 64 tokens where there are ranks).
//   part  move: time of the movement; load: time of one link of the load
#pragma once
#include "kernels/family.hpp"

namespace rackcast::kernels {

}  // namespace rackcast::kernels
