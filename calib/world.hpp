// Which rank am I, among how many, and on which GPU of this node: read from what the launcher put into the environment.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rackcast::calib {

struct WorldPlace {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;
  int local_ranks = 1;
  std::string launcher = "none";  // rackcast | mpirun | pmi | slurm | torchrun | none
  std::string job;                // same for every rank of this launch and for no other; empty when the launcher has none
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

// Looks for RACKCAST_RANK/RACKCAST_RANKS, then OMPI_COMM_WORLD_*, PMI_*, a Slurm step (not the batch script itself) and
// torchrun's RANK/WORLD_SIZE. UserError when a launcher left half of what is needed or nonsense.
WorldPlace world_place(const Environment& environment);

// Numbers of ranks to measure in one job: 1, 2, 4, 8, 16, 32, 64, 72 as far as they fit, and all of them.
std::vector<int> rank_ladder(int ranks);

}  // namespace rackcast::calib
