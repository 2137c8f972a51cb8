#include "calib/gpu/world_runner.hpp"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "calib/gpu/header.hpp"
#include "calib/gpu/nvml.hpp"
#include "calib/gpu/timer.hpp"
#include "calib/gpu/world_comm.hpp"
#include "calib/rendezvous.hpp"
#include "calib/world_points.hpp"
#include "kernels/device.hpp"
#include "kernels/launcher.hpp"
#include "kernels/nccl_api.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {

namespace {

const kernels::Launcher& launcher_of(const kernels::Family& family) {
  for (const kernels::Launcher* launcher : kernels::launchers())
    if (&launcher->family() == &family) return *launcher;
  throw InternalError("family " + family.name() + " has no launcher");
}

// FNV-1a: the same on every rank whatever library each was built with.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

class GpuPointWork final : public PointWork {
 public:
  GpuPointWork(const RunRequest& request, const kernels::GpuEnvironment& gpu, const Nvml& nvml) : request_(request), gpu_(gpu), nvml_(nvml) {}

  bool possible(const PlannedPoint& point) override { return !launcher_of(*point.family).implementations(gpu_, point.shape).empty(); }

  Measurement take(const PlannedPoint& point) override {
    const kernels::Launcher& launcher = launcher_of(*point.family);
    const std::string name = launcher.implementations(gpu_, point.shape).front();
    kernels::PrepareOptions options;
    options.seed = request_.seed * 1000003 + hash_of(point.shape.key()) % 1000000 + static_cast<std::uint64_t>(point.pass);
    options.cold_bytes = request_.timed ? 3 * gpu_.l2_bytes : 0;
    options.max_sets = request_.timed ? 512 : 1;
    const auto prepared = launcher.prepare(gpu_, point.shape, name, options);
    Measurement row;
    row.op = point.family->name();
    row.implementation = name;
    row.math = point.family->math(point.shape);
    row.shape = point.shape;
    row.pass = point.pass;
    row.transport = prepared->transport();
    row.sets = prepared->sets();
    kernels::CheckResult check = prepared->check({options.seed + 7, name == request_.inject_fault});
    if (agree(check) && request_.timed) {
      time_into(row, *prepared);
      const kernels::CheckResult after = prepared->check({options.seed + 8, false});
      if (!after.ok) check = after;
      agree(check);
    }
    row.work = prepared->work().value_or(point.family->work(point.shape));
    row.detail = prepared->detail();
    row.ok = check.ok;
    row.rel_l2 = check.rel_l2;
    row.max_abs = check.max_abs;
    row.note = check.note;
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    if (gpu_.comm) gpu_.comm->barrier(point.shape.key() + ": over");  // nobody frees what a peer still writes to
    return row;
  }

 private:
  bool agree(const kernels::CheckResult& check) const { return gpu_.comm ? gpu_.comm->all_true("check", check.ok) : check.ok; }

  void time_into(Measurement& row, kernels::Case& prepared) const {
    if (const auto own = prepared.measure()) {
      row.mode = own->mode;
      row.time_us = summarise(own->samples_us);
      if (!own->post_us.empty()) row.post_us = summarise(own->post_us);
      row.launches = 1;
    } else {
      TimerOptions options;
      if (request_.quick) options.limits = {20, 200, 0.1, 0.005};
      const kernels::StreamOwner stream;
      Pacer pacer = gpu_pacer(nvml_.best_sm_mhz(), stream.get());
      const Timing timing = time_case(prepared, true, options, pacer, stream.get());
      row.time_us = timing.summary;
      row.launches = timing.launches;
    }
    row.clocks = nvml_.read();
  }

  const RunRequest& request_;
  const kernels::GpuEnvironment& gpu_;
  const Nvml& nvml_;
};

void show(const Measurement& row) {
  const double us = row.time_us.median;
  std::printf("%-12s %s  ", row.op.c_str(), row.shape.key().c_str());
  if (row.time_us.count) {
    std::printf("%.2f us (p10 %.2f p90 %.2f)  ", us, row.time_us.p10, row.time_us.p90);
    if (row.post_us) std::printf("post %.2f us  ", row.post_us->median);
    if (row.work.bytes_link > 0) std::printf("link %.1f GB/s  ", row.work.bytes_link / us * 1e-3);
    else if (row.work.bytes_hbm > 0) std::printf("memory %.1f GB/s  ", row.work.bytes_hbm / us * 1e-3);
  }
  std::printf("%s %s%s%s\n", row.ok ? "ok" : "FAILED", row.transport.c_str(), row.note.empty() ? "" : "  ", row.note.c_str());
  std::fflush(stdout);
}

WindowKind window_kind(const std::string& name) {
  if (name == "best") return WindowKind::best;
  if (name == "nccl") return WindowKind::nccl;
  if (name == "peer") return WindowKind::peer;
  throw UserError("--window " + name + ": must be best, nccl or peer");
}

std::shared_ptr<kernels::NcclApi> load_nccl(const RunRequest& request, int rank) {
  try {
    return std::make_shared<kernels::NcclApi>(request.library_folders);
  } catch (const Unavailable& error) {
    if (rank == 0) std::fprintf(stderr, "without NCCL: %s\n", error.what());
    return nullptr;
  }
}

// One rank's whole run, over all steps of the ladder.
class Rank {
 public:
  Rank(const WorldRequest& request, Exchange& world, int device) : request_(request), world_(world), gpu_(open_gpu(device)), nvml_(pci_bus_id(device)) {
    gpu_.library_folders = request.run.library_folders;
    if (world.rank() == 0 && !request.run.out.empty()) writer_ = std::make_unique<MeasurementWriter>(request.run.out);
  }

  RunOutcome run() {
    RunOutcome outcome;
    const auto start = std::chrono::steady_clock::now();
    const auto seconds_left = [&] {
      if (request_.run.budget_s <= 0) return 1.0;
      return request_.run.budget_s - std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const std::vector<int> ladder = request_.ladder.empty() ? rank_ladder(world_.ranks()) : request_.ladder;
    for (const int ranks : ladder) {
      if (const auto group = world_.first(ranks)) step(*group, seconds_left, outcome);
      constexpr double long_s = 24 * 3600;  // those without work wait here; a lost rank still ends it
      barrier(world_, "step of " + std::to_string(ranks) + " ranks", long_s);
    }
    return outcome;
  }

 private:
  void step(Exchange& group, const std::function<double()>& seconds_left, RunOutcome& outcome) {
    std::unique_ptr<WorldComm> comm;
    kernels::GpuEnvironment gpu = gpu_;
    gpu.rank = group.rank();
    gpu.ranks = group.ranks();
    if (group.ranks() > 1) {
      comm = std::make_unique<WorldComm>(group, gpu, load_nccl(request_.run, group.rank()), window_kind(request_.window), request_.limit_s);
      gpu.comm = comm.get();
    }
    GpuPointWork work(request_.run, gpu, nvml_);
    if (comm) comm->make_window(std::size_t{1} << 20);  // by all ranks: only then it is known which kind windows are
    if (writer_) write_header(gpu, comm.get());
    if (group.rank() == 0)
      std::fprintf(stderr, "%d ranks, link %s\n", group.ranks(), comm ? comm->transport().c_str() : "loopback");
    const WorldOutcome done = take_points(group, request_.run.points, work, writer_.get(), seconds_left, show);
    outcome.points += done.points;
    outcome.skipped += done.skipped;
    outcome.failed += done.failed;
    outcome.finished = outcome.finished && done.finished;
    if (comm) comm->barrier("end of step");
  }
  void write_header(const kernels::GpuEnvironment& gpu, WorldComm* comm) {
    MeasurementHeader header = make_header(gpu, nvml_, request_.run.seed);
    header.launcher = request_.threads > 0 ? "threads" : request_.place.launcher;
    if (const char* nvls = std::getenv("NCCL_NVLS_ENABLE")) header.nvls = nvls;
    if (comm) {
      header.nodes = comm->nodes();
      header.lsa_size = comm->lsa_size();
      header.transport = comm->transport();
      header.window = comm->window_kind();
    }
    writer_->append(header);
  }

  const WorldRequest& request_;
  Exchange& world_;
  kernels::GpuEnvironment gpu_;
  Nvml nvml_;
  std::unique_ptr<MeasurementWriter> writer_;
};

// Other ranks may hold the GPU or NCCL in calls that never return, so nothing is taken down: finished points are on disk.
[[noreturn]] void leave(const std::string& reason) {
  std::fprintf(stderr, "rackcast-calib: %s; finished points are kept\n", reason.c_str());
  std::fflush(stderr);
  std::fflush(stdout);
  std::_Exit(1);
}

RunOutcome run_rank(const WorldRequest& request, Exchange& world, int device) {
  try {
    return Rank(request, world, device).run();
  } catch (const PeerLost& error) {
    world.fail(error.what());
    leave(error.what());
  } catch (const std::exception& error) {
    world.fail(error.what());
    if (world.ranks() == 1) throw;
    leave("rank " + std::to_string(world.rank()) + ": " + error.what());
  }
}

}  // namespace

bool is_communication(const kernels::Family& family) {
  const std::string name = family.name();
  return name == "all_to_all" || name == "collectives" || name == "kv_push" || name == "expert_move";
}

RunOutcome run_world(const WorldRequest& request) {
  int devices = 0;
  RACKCAST_CUDA_CHECK(cudaGetDeviceCount(&devices));
  const ExchangeLimits limits{request.limit_s, request.limit_s};
  if (request.threads == 0) {
    RendezvousOptions options;
    options.limits = limits;
    const std::string file = (request.run.out.empty() ? std::string("rackcast-calib") : request.run.out) + ".rendezvous";
    options.where = request.rendezvous.empty() ? choose_rendezvous(request.place, process_environment(), file) : request.rendezvous;
    const auto world = connect_world(request.place, options);
    // With one visible GPU a process the launcher has chosen already.
    return run_rank(request, *world, request.place.local_rank % devices);
  }
  if (request.threads > devices) throw Unavailable(std::to_string(request.threads) + " GPUs asked for, " + std::to_string(devices) + " here");
  const auto worlds = between_threads(request.threads, limits);
  RunOutcome outcome;
  std::vector<std::thread> threads;
  for (int r = 0; r < request.threads; ++r)
    threads.emplace_back([&, r] {
      const RunOutcome mine = run_rank(request, *worlds[static_cast<std::size_t>(r)], r);
      if (r == 0) outcome = mine;
    });
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

}  // namespace rackcast::calib
