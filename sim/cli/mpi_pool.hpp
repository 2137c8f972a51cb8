// The pool over several processes of mpirun or srun. Rank 0 hands out scenarios and alone writes the store; every rank
// has a fork server of its own, forked before MPI starts, whose tasks never see MPI.
#pragma once
#include <memory>

#include "sim/engine/batch.hpp"

namespace rackcast {

// How this process was started; looks at the environment only, so that it can be asked before anything else.
struct Launch {
  int rank = 0;
  int processes = 1;
};
Launch launch();

// One process: a LocalPool. Several: MPI starts here, on every rank. Null on ranks other than 0, after they have worked
// until rank 0's pool went away. jobs: tasks at once in each process. Unavailable when several were started and the
// program was built without MPI.
std::unique_ptr<Pool> make_pool(ForkServer& server, std::size_t jobs);

// Jobs of a process when the user says nothing: all cores of this machine that it may use, shared with the other ranks.
std::size_t default_jobs();

}  // namespace rackcast
