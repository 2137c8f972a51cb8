// Runs the communication families on several GPUs: one process with a thread a GPU, or one process a GPU.
#pragma once
#include <string>
#include <vector>

#include "calib/gpu/runner.hpp"
#include "calib/world.hpp"

namespace rackcast::calib {

struct WorldRequest {
  RunRequest run;                 // points, file, seed, budget; budget counts for the whole run
  int threads = 0;                // GPUs driven by threads of this process; 0: one rank a process
  WorldPlace place;               // of this process
  std::vector<int> ladder;        // numbers of ranks to measure; empty: rank_ladder of all
  std::string rendezvous;         // empty: chosen from the environment
  std::string window = "best";    // best, nccl, peer
  double limit_s = 120;           // how long ranks wait for one another
};

// Returns on rank 0's process with what was done; elsewhere with zeros. A lost peer ends the process.
RunOutcome run_world(const WorldRequest& request);

// Families that make sense on several GPUs.
bool is_communication(const kernels::Family& family);

}  // namespace rackcast::calib
