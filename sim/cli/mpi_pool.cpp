#include "sim/cli/mpi_pool.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "sim/base/error.hpp"

#if defined(RACKCAST_MPI)
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace rackcast {

namespace {

int number_in(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

Launch launch() {
  // OpenMPI's mpirun, then what srun and other launchers with PMI leave.
  for (const auto& [rank, size] : {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}})
    if (std::getenv(size) != nullptr) return {number_in(rank, 0), number_in(size, 1)};
  // srun without MPI's variables: tasks of the step, when a PMI for OpenMPI is there.
  if (std::getenv("PMIX_RANK") != nullptr && std::getenv("SLURM_STEP_NUM_TASKS") != nullptr)
    return {number_in("PMIX_RANK", 0), number_in("SLURM_STEP_NUM_TASKS", 1)};
  if (number_in("SLURM_STEP_NUM_TASKS", 1) > 1)
    throw Unavailable("srun started several tasks without MPI: use srun --mpi=pmix (or pmi2), or one task");
  return {};
}

std::size_t default_jobs() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int usable = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  const int neighbours = number_in("OMPI_COMM_WORLD_LOCAL_SIZE", number_in("SLURM_NTASKS_PER_NODE", launch().processes));
  return static_cast<std::size_t>(std::max(1, usable / std::max(1, neighbours)));
}

#if defined(RACKCAST_MPI)

namespace {

constexpr int work_tag = 1, outcome_tag = 2, stop_tag = 3;
constexpr auto nap = std::chrono::milliseconds(1);

void send(const std::string& bytes, int rank, int tag) {
  RACKCAST_CHECK(bytes.size() < (1U << 31U), "a message over 2 GiB");
  MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD);
}

struct Message {
  int rank = 0, tag = 0;
  std::string bytes;
};

std::optional<Message> receive() {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
  if (there == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Message message{status.MPI_SOURCE, status.MPI_TAG, std::string(static_cast<std::size_t>(size), '\0')};
  MPI_Recv(message.bytes.data(), size, MPI_BYTE, message.rank, message.tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return message;
}

// A message holds one frame.
Fields fields_in(const std::string& bytes) {
  FrameReader reader;
  reader.add(bytes);
  return unpack(reader.take().value());
}

// Every rank tells rank 0 its slots; only rank 0 gets them.
std::vector<std::size_t> gather_slots(std::size_t jobs, int rank, int processes) {
  const auto own = static_cast<unsigned long long>(jobs);
  std::vector<unsigned long long> all(rank == 0 ? static_cast<std::size_t>(processes) : 0);
  MPI_Gather(&own, 1, MPI_UNSIGNED_LONG_LONG, all.data(), 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
  return {all.begin(), all.end()};
}

class MpiPool final : public Pool {
 public:
  MpiPool(ForkServer& server, std::vector<std::size_t> slots) : server_(server), free_(std::move(slots)) {
    for (const std::size_t free : free_) slots_ += free;
  }
  ~MpiPool() override {
    for (std::size_t rank = 1; rank < free_.size(); ++rank) send({}, static_cast<int>(rank), stop_tag);
    MPI_Finalize();
  }
  std::size_t slots() const override { return slots_; }
  std::size_t running() const override { return where_.size(); }

  void submit(std::uint64_t id, const Fields& request, const TaskLimits& limits) override {
    const auto most = std::max_element(free_.begin(), free_.end());
    RACKCAST_CHECK(*most > 0, "no free slot");
    --*most;
    const int rank = static_cast<int>(most - free_.begin());
    where_[id] = rank;
    if (rank == 0) return server_.submit(id, request, limits);
    Fields fields{to_bytes(id), to_bytes(limits.time_s), to_bytes(limits.memory_bytes)};
    fields.insert(fields.end(), request.begin(), request.end());
    send(pack(fields), rank, work_tag);
  }

  std::optional<TaskOutcome> wait(double seconds) override {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    do {
      std::optional<TaskOutcome> outcome = server_.wait(0);
      if (!outcome)
        if (const auto message = receive()) outcome = outcome_of(fields_in(message->bytes));
      if (outcome) {
        const auto place = where_.extract(outcome->id);
        RACKCAST_CHECK(!place.empty(), "an outcome of no task");
        ++free_[static_cast<std::size_t>(place.mapped())];
        return outcome;
      }
      std::this_thread::sleep_for(nap);
    } while (std::chrono::steady_clock::now() < until);
    return std::nullopt;
  }

 private:
  ForkServer& server_;
  std::vector<std::size_t> free_;  // by rank
  std::size_t slots_ = 0;
  std::map<std::uint64_t, int> where_;
};

// Ranks other than 0: run what comes, tell what came out, until told to stop.
void serve(ForkServer& server) {
  for (;;) {
    if (const auto message = receive()) {
      if (message->tag == stop_tag) return;
      Fields fields = fields_in(message->bytes);
      const std::uint64_t id = uint64_of(fields.at(0));
      const TaskLimits limits{double_of(fields.at(1)), uint64_of(fields.at(2))};
      fields.erase(fields.begin(), fields.begin() + 3);
      server.submit(id, fields, limits);
    }
    if (const auto outcome = server.wait(1e-3)) send(pack(fields_of(*outcome)), 0, outcome_tag);
  }
}

}  // namespace

std::unique_ptr<Pool> make_pool(ForkServer& server, std::size_t jobs) {
  const Launch started = launch();
  if (started.processes == 1) return std::make_unique<LocalPool>(server, jobs);
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(library, &length);
  RACKCAST_CHECK(std::string_view(library).find("SimGrid") == std::string_view::npos && std::string_view(library).find("SMPI") == std::string_view::npos,
                 "SimGrid's simulated MPI was linked before the real one");
  MPI_Init(nullptr, nullptr);
  int rank = 0, processes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  RACKCAST_CHECK(rank == started.rank && processes == started.processes, "MPI and its launcher disagree");
  std::vector<std::size_t> slots = gather_slots(jobs, rank, processes);
  if (rank == 0) return std::make_unique<MpiPool>(server, std::move(slots));
  serve(server);
  MPI_Finalize();
  return nullptr;
}

#else

std::unique_ptr<Pool> make_pool(ForkServer& server, std::size_t jobs) {
  if (launch().processes > 1) throw Unavailable("this rackcast was built without MPI: start one process, or build where OpenMPI is");
  return std::make_unique<LocalPool>(server, jobs);
}

#endif

}  // namespace rackcast
