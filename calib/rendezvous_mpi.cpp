// The only file that knows MPI. It is used once, to say where rank 0 listens, and is finished with before any GPU work,
// so that a lost rank is noticed by our own time limits and not by a library that waits for ever.
#include "calib/rendezvous.hpp"

#ifdef RACKCAST_HAVE_MPI
#include <mpi.h>
#endif

#include <fmt/format.h>

namespace rackcast::calib {

#ifdef RACKCAST_HAVE_MPI
bool built_with_mpi() { return true; }

std::string broadcast_over_mpi(const WorldPlace& place, const std::string& from_rank_0) {
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank != place.rank || ranks != place.ranks)
    throw UserError(fmt::format("MPI says rank {} of {}, the environment {} of {}: start with this MPI's own mpirun",
                                rank, ranks, place.rank, place.ranks));
  std::string text = from_rank_0;
  auto length = static_cast<unsigned long long>(text.size());
  MPI_Bcast(&length, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
  text.resize(length);
  MPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return text;
}
#else
bool built_with_mpi() { return false; }
std::string broadcast_over_mpi(const WorldPlace&, const std::string&) { throw UserError("built without MPI"); }
#endif

}  // namespace rackcast::calib
