// What a run tells whoever listens: measured requests, samples at an interval, and, for listeners that want every
// detail, steps, movements and requests as they end. A listener must not change the run.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/records.hpp"
#include "sim/engine/topology.hpp"

namespace rackcast {

struct Request;

// What does not change in a run; told once, before anything happens.
struct RunLayout {
  struct Engine {
    std::uint32_t ranks = 1, gpus = 1, first_gpu = 0;
    bool prompts = false, answers = false;
    std::int64_t kv_tokens = 0;       // of all its ranks; 0: unlimited
    bool experts = false;             // its samples tell of expert load and moves
  };
  std::vector<Engine> engines;
  std::span<const TopologyLink> links;
  std::uint32_t gpus = 0, gpus_per_node = 4;
};

// A look at one engine. Sums are since the run's start.
struct EngineSample {
  double busy_s = 0;                      // up to the sample; of an iteration under way what has passed
  std::uint32_t waiting = 0, running = 0;
  std::int64_t kv_pinned_tokens = 0, kv_used_tokens = 0;
  std::vector<std::uint32_t> rank_running;
  std::vector<std::int64_t> rank_kv_used_tokens;
  std::vector<double> rank_expert_load;   // expert rows over the ranks' mean, expected where experts are now
  double experts_moved = 0;               // that have arrived at another rank, of main model and draft
};

struct RunSample {
  double time_s = 0;
  std::vector<EngineSample> engines;
  double asked_tokens = 0, hit_gpu_tokens = 0, hit_host_tokens = 0;  // of admitted prompts, in full blocks
  std::vector<double> link_bytes;     // by flows that ended, in RunLayout::links' order
};

// One iteration of an engine, when it has ended. Batch figures are sums over its ranks.
struct StepEvent {
  std::uint32_t engine = 0;
  double start_s = 0, end_s = 0;
  double prefill_tokens = 0, prefill_requests = 0, decode_requests = 0, decode_context = 0;
  std::uint32_t waiting = 0, running = 0;
};

enum class MovementKind : std::uint8_t { hand_over, host_load };

// Bytes that went through the network, when they have arrived.
struct MovementEvent {
  MovementKind kind = MovementKind::hand_over;
  std::uint64_t request = 0;
  double start_s = 0, end_s = 0, bytes = 0;
  std::uint32_t from_gpu = 0, to_gpu = 0;  // the same for a host load
};

// Something of an engine or of the rack: an expert rearrangement, a failure.
struct NoteEvent {
  static constexpr std::uint32_t whole_rack = 0xffffffff;
  std::uint32_t engine = whole_rack;
  double start_s = 0, end_s = 0;      // equal: an instant
  std::string_view name;
  std::string_view detail;
};

class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void started(const RunLayout&) {}
  virtual void window_opened(double /*time_s*/) {}
  virtual void finished(const RequestRecord&) {}                                    // measured requests only
  virtual void sampled(const RunSample&) {}
  virtual void progress(double /*share_done*/) {}
  // The rest is told only to those that want it; asked once, before started().
  virtual bool wants_details() const { return false; }
  virtual void stepped(const StepEvent&) {}
  virtual void moved(const MovementEvent&) {}
  virtual void ended(const Request&, double /*time_s*/) {}                          // every request, warm-up too
  virtual void unfinished(const Request&, double /*time_s*/) {}                     // still under way at the run's end
  virtual void noted(const NoteEvent&) {}
};

}  // namespace rackcast
