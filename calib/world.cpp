#include "calib/world.hpp"

#include <charconv>
#include <cstdlib>

#include "sim/base/error.hpp"

namespace rackcast::calib {

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
  };
}

namespace {

// One launcher's names. The step variables of Slurm exist only under srun, so a batch script is not taken for rank 0.
struct Launcher {
  const char* name;
  const char* rank;
  const char* ranks;
  const char* local_rank;
  const char* local_ranks;
  const char* job;
};
constexpr Launcher launchers[] = {
    {"rackcast", "RACKCAST_RANK", "RACKCAST_RANKS", "RACKCAST_LOCAL_RANK", "RACKCAST_LOCAL_RANKS", "RACKCAST_JOB"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"},
    {"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_JOB_ID"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
};

int whole_number(const std::string& name, const std::string& text) {
  int value = 0;
  // "4(x18)" is how Slurm writes tasks per node.
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || (end != text.data() + text.size() && *end != '(' && *end != ','))
    throw UserError(name + "=" + text + ": must be a whole number");
  return value;
}

}  // namespace

WorldPlace world_place(const Environment& environment) {
  for (const Launcher& launcher : launchers) {
    const auto rank = environment(launcher.rank);
    const auto ranks = environment(launcher.ranks);
    if (!ranks) continue;  // SLURM_PROCID alone is a batch script, RANK alone is anything
    if (!rank) throw UserError(std::string(launcher.ranks) + "=" + *ranks + " is set, but " + launcher.rank + " is not");
    WorldPlace place;
    place.launcher = launcher.name;
    place.rank = whole_number(launcher.rank, *rank);
    place.ranks = whole_number(launcher.ranks, *ranks);
    if (place.ranks < 1 || place.rank < 0 || place.rank >= place.ranks)
      throw UserError(std::string(launcher.rank) + "=" + *rank + " with " + launcher.ranks + "=" + *ranks + ": must be 0 to " +
                      std::to_string(place.ranks - 1));
    if (const auto local = environment(launcher.local_rank)) place.local_rank = whole_number(launcher.local_rank, *local);
    else if (place.ranks > 1) place.local_rank = place.rank;
    if (const auto local = environment(launcher.local_ranks)) place.local_ranks = whole_number(launcher.local_ranks, *local);
    else place.local_ranks = place.ranks;
    if (const auto job = environment(launcher.job)) place.job = std::string(launcher.name) + "-" + *job;
    if (place.launcher == "slurm")
      if (const auto step = environment("SLURM_STEP_ID")) place.job += "." + *step;
    return place;
  }
  return {};
}

std::vector<int> rank_ladder(int ranks) {
  std::vector<int> ladder;
  for (const int step : {1, 2, 4, 8, 16, 32, 64, 72})
    if (step < ranks) ladder.push_back(step);
  ladder.push_back(ranks);
  return ladder;
}

}  // namespace rackcast::calib
