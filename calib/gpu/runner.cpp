#include "calib/gpu/runner.hpp"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <optional>

#include "calib/agreement.hpp"
#include "calib/gpu/header.hpp"
#include "calib/gpu/nvml.hpp"
#include "calib/gpu/timer.hpp"
#include "calib/measurement.hpp"
#include "kernels/launcher.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

const kernels::Launcher& launcher_of(const kernels::Family& family) {
  for (const kernels::Launcher* launcher : kernels::launchers())
    if (&launcher->family() == &family) return *launcher;
  throw InternalError("family " + family.name() + " has no launcher");
}

// The first implementation that passes its self-check, with the marks that the row carries.
struct Chosen {
  std::unique_ptr<kernels::Case> prepared;
  std::string implementation;
  std::string fallback_from;
  kernels::CheckResult check;
};

class Slice {
 public:
  explicit Slice(const RunRequest& request)
      : request_(request), gpu_(open_gpu(request.device)), nvml_(pci_bus_id(request.device)),
        pacer_(gpu_pacer(nvml_.best_sm_mhz(), stream_.get())) {
    gpu_.library_folders = request.library_folders;
    if (!request.out.empty()) {
      writer_ = std::make_unique<MeasurementWriter>(request.out);
      writer_->append(make_header(gpu_, nvml_, request.seed));
    }
  }

  RunOutcome run() {
    RunOutcome outcome;
    const auto start = Clock::now();
    const std::size_t total = request_.points.size();
    for (std::size_t i = 0; i < total; ++i) {
      const PlannedPoint& point = request_.points[i];
      if (done_already(point)) {
        ++outcome.skipped;
        continue;
      }
      if (request_.budget_s > 0 && seconds_since(start) >= request_.budget_s) {
        outcome.finished = false;
        break;
      }
      measure(point, outcome);
      const double spent = seconds_since(start);
      const double left = spent / (outcome.points + outcome.impossible) * static_cast<double>(total - i - 1);
      if (isatty(2)) std::fprintf(stderr, "\r%zu of %zu points, %.0f s, about %.0f s left   ", i + 1, total, spent, left);
    }
    if (isatty(2)) std::fputc('\n', stderr);
    return outcome;
  }

 private:
  Measurement row_for(const PlannedPoint& point, const char* cache) const {
    Measurement row;
    row.op = point.family->name();
    row.math = point.family->math(point.shape);
    row.shape = point.shape;
    row.work = point.family->work(point.shape);
    row.cache = cache;
    row.pass = point.pass;
    return row;
  }

  bool done_already(const PlannedPoint& point) const {
    if (!writer_) return false;
    for (const char* mode : {"graph", "chain", "eager"}) {
      Measurement row = row_for(point, "cold");
      row.mode = mode;
      if (writer_->has(row.key())) return true;
    }
    return false;
  }

  Chosen choose(const PlannedPoint& point) {
    const kernels::Launcher& launcher = launcher_of(*point.family);
    std::vector<std::string> names = launcher.implementations(gpu_, point.shape);
    if (!request_.force_implementation.empty()) {
      const bool known = std::find(names.begin(), names.end(), request_.force_implementation) != names.end();
      names = known ? std::vector<std::string>{request_.force_implementation} : std::vector<std::string>{};
    }
    Chosen chosen;
    for (const std::string& name : names) {
      kernels::PrepareOptions options;
      options.seed = request_.seed * 1000003 + std::hash<std::string>{}(point.shape.key()) % 1000000 + static_cast<std::uint64_t>(point.pass);
      options.cold_bytes = request_.timed ? 3 * gpu_.l2_bytes : 0;
      options.max_sets = request_.timed ? 512 : 1;
      chosen.prepared.reset();
      chosen.prepared = launcher.prepare(gpu_, point.shape, name, options);
      chosen.implementation = name;
      chosen.check = chosen.prepared->check({options.seed + 7, name == request_.inject_fault});
      RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
      if (chosen.check.ok) return chosen;
      std::fprintf(stderr, "self-check failed: %s %s (%s): %s, rel_l2 %.3g\n", point.family->name().c_str(), point.shape.key().c_str(),
                   name.c_str(), chosen.check.note.c_str(), chosen.check.rel_l2);
      if (chosen.fallback_from.empty()) chosen.fallback_from = name;
    }
    return chosen;
  }

  void measure(const PlannedPoint& point, RunOutcome& outcome) {
    try {
      Chosen chosen = choose(point);
      if (!chosen.prepared) {
        ++outcome.impossible;
        return;
      }
      ++outcome.points;
      if (!chosen.check.ok) ++outcome.failed;
      else if (!chosen.fallback_from.empty()) ++outcome.fallbacks;
      record(point, chosen, "cold");
      if (request_.hot && chosen.check.ok && request_.timed) record(point, chosen, "hot");
      if (request_.sustained && chosen.check.ok && request_.timed && compute_bound(chosen.prepared->work().value_or(point.family->work(point.shape))))
        record(point, chosen, "cold", true);
    } catch (const Unavailable& error) {
      ++outcome.impossible;
      std::fprintf(stderr, "not possible here: %s %s: %s\n", point.family->name().c_str(), point.shape.key().c_str(), error.what());
      cudaGetLastError();  // an allocation that failed must not fail the next launch check
    }
  }

  // More operations a byte than Hopper's and Blackwell's bf16 units need to be the limit.
  static bool compute_bound(const kernels::Work& work) { return work.flop > 250 * work.bytes_hbm; }

  void record(const PlannedPoint& point, Chosen& chosen, const char* cache, bool sustained = false) {
    Measurement row = row_for(point, cache);
    row.implementation = chosen.implementation;
    if (chosen.fallback_from != chosen.implementation) row.fallback_from = chosen.fallback_from;
    if (const auto work = chosen.prepared->work()) row.work = *work;
    row.transport = chosen.prepared->transport();
    row.sets = chosen.prepared->sets();
    row.ok = chosen.check.ok;
    row.rel_l2 = chosen.check.rel_l2;
    row.max_abs = chosen.check.max_abs;
    row.note = chosen.check.note;
    if (sustained) row.mode = "sustained";
    if (row.ok && request_.timed) time_into(row, *chosen.prepared);
    row.detail = chosen.prepared->detail();  // may tell how it was timed
    if (row.ok && request_.timed && row.time_us.count == 0) return;  // times itself, and only once: no hot row
    print(row);
    if (writer_ && (request_.timed || !row.ok)) writer_->append(row);
    rows_.push_back(row);
  }

  void time_into(Measurement& row, kernels::Case& prepared) {
    if (const auto own = prepared.measure()) {
      if (row.cache == "hot" || row.mode == "sustained") return;
      row.mode = own->mode;
      row.time_us = summarise(own->samples_us);
      row.launches = 1;
      row.clocks = nvml_.read();
      return;
    }
    TimerOptions options;
    if (request_.quick) options.limits = {20, 200, 0.1, 0.005};
    if (row.mode == "sustained") {
      const Timing timing = time_sustained(prepared, 2, options, stream_.get());
      row.clocks = nvml_.read();
      row.time_us = timing.summary;
      row.launches = timing.launches;
      return;
    }
    for (int attempt = 0; attempt < 3; ++attempt) {
      const std::optional<Clocks> before = nvml_.read();
      const Timing timing = time_case(prepared, row.cache == "cold", options, pacer_, stream_.get());
      row.time_us = timing.summary;
      row.note = timing.capped ? "power cap" : "";
      row.launches = timing.launches;
      row.clocks = nvml_.read();
      if (row.clocks && before) row.clocks->throttle |= before->throttle;
      if (!row.clocks || !Nvml::disturbs(row.clocks->throttle)) return;
    }
    row.note = "throttled";
  }

  void print(const Measurement& row) const {
    const double us = row.time_us.median;
    std::printf("%-16s %-9s %-4s %s  ", row.op.c_str(), row.implementation.c_str(), row.mode == "sustained" ? "sust" : row.cache.c_str(), row.shape.key().c_str());
    if (row.time_us.count)
      std::printf("%.2f us (mad %.2f)  %.1f TFLOPS  %.0f GB/s  ", us, row.time_us.mad, row.work.flop / us * 1e-6, row.work.bytes_hbm / us * 1e-3);
    std::printf("%s %.2g%s%s%s%s\n", row.ok ? "ok" : "FAILED", row.rel_l2, row.fallback_from.empty() ? "" : "  fallback from ", row.fallback_from.c_str(),
                row.detail.empty() ? "" : "  ", row.detail.c_str());
    std::fflush(stdout);
  }

  const RunRequest& request_;
  kernels::GpuEnvironment gpu_;
  Nvml nvml_;
  kernels::StreamOwner stream_;
  Pacer pacer_;
  std::unique_ptr<MeasurementWriter> writer_;

 public:
  std::vector<Measurement> rows_;
};

struct Figure {
  double value;
  const char* unit;
  bool larger_is_better;
};

Figure figure_of(kernels::Quantity quantity, const Measurement& row) {
  const double us = row.time_us.median;
  switch (quantity) {
    case kernels::Quantity::tflops: return {row.work.flop / us * 1e-6, "TFLOPS", true};
    case kernels::Quantity::hbm_gb_s: return {row.work.bytes_hbm / us * 1e-3, "GB/s", true};
    case kernels::Quantity::microseconds: return {us, "us", false};
  }
  throw InternalError("unknown quantity");
}

}  // namespace

// Points of later passes against the first: what moved meanwhile is the machine, not the shape.
static void report_drift(const std::vector<Measurement>& rows) {
  std::vector<Measurement> first, later;
  for (const Measurement& row : rows) (row.pass == 1 ? first : later).push_back(row);
  if (later.empty()) return;
  const std::vector<Difference> differences = compare_runs(first, later, {});
  if (!differences.empty()) std::fprintf(stderr, "passes against one another:\n%s", agreement_table(differences, 20).c_str());
}

RunOutcome run_points(const RunRequest& request) {
  Slice slice(request);
  const RunOutcome outcome = slice.run();
  report_drift(slice.rows_);
  return outcome;
}

bool run_bench(const RunRequest& how, const std::vector<const kernels::Family*>& families) {
  struct Line {
    const kernels::Family* family;
    kernels::Bar bar;
  };
  std::vector<Line> lines;
  RunRequest request = how;
  request.points.clear();
  std::map<std::string, bool> planned;
  for (const kernels::Family* family : families)
    for (const kernels::Bar& bar : family->bars()) {
      lines.push_back({family, bar});
      if (planned.emplace(family->name() + ' ' + bar.shape.key(), true).second) request.points.push_back({family, bar.shape, 1});
    }
  Slice slice(request);
  slice.run();
  bool all = true;
  std::printf("\n%-16s %-60s %10s %10s %10s  %s\n", "family", "shape", "measured", "at least", "wanted", "published");
  for (const Line& line : lines)
    for (const Measurement& row : slice.rows_) {
      if (row.op != line.family->name() || !(row.shape == line.bar.shape) || row.cache != line.bar.cache || row.mode == "sustained" || !row.time_us.count) continue;
      const Figure figure = figure_of(line.bar.quantity, row);
      const bool reached = figure.larger_is_better ? figure.value >= line.bar.at_least : figure.value <= line.bar.at_least;
      all = all && reached;
      std::printf("%-16s %-60s %10.1f %10.1f %10.1f  %s %s%s\n", row.op.c_str(), row.shape.key().c_str(), figure.value, line.bar.at_least,
                  line.bar.wanted, figure.unit, reached ? "" : "MISSED  ", line.bar.published.c_str());
    }
  return all;
}

}  // namespace rackcast::calib
