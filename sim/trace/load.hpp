// A load: what the engine replays. Pure state machine, it owns no clock: the engine asks when the next request is due,
// takes it, and reports its completion. AgentX replay, open-loop arrivals and closed-loop fixed lengths are its
// implementations (agentx.hpp, open_loop.hpp, closed_loop.hpp).
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "sim/trace/trace.hpp"

namespace rackcast {

enum class LoadPhase : std::uint8_t { primer, warmup, measured };

constexpr double never_s = std::numeric_limits<double>::infinity();

struct LoadRequest {
  std::uint64_t id = 0;           // unique in the run, given back to finished()
  std::uint32_t lane = 0;         // affinity key of the session (the play's correlation id); open loop: request index
  std::uint32_t play = 0;         // cache identity: block ids are keyed by (play, id)
  std::uint32_t stream = 0;       // chain within the play
  std::uint32_t input_tokens = 0;
  std::uint32_t output_tokens = 0;
  std::uint32_t block_tokens = 64;
  // Blocks an infinite prefix cache would hold when the request is given out: longest prefix that earlier requests of
  // its play brought in.
  std::uint32_t ideal_cached_blocks = 0;
  // The full blocks of the input, in order; a tail shorter than a block has no id. Empty: nobody can ever share a block
  // with it (no recorded identity, or the load knows that the content is unique). Valid until finished(id).
  std::span<const HashRun> runs;
  std::uint32_t input_block_tokens() const { return runs.empty() ? input_tokens : input_tokens / block_tokens * block_tokens; }
  LoadPhase phase = LoadPhase::measured;
};

class Load {
 public:
  virtual ~Load() = default;
  // When the next request is due; +infinity while all wait for completions. Never earlier than the last `now` seen.
  virtual double next_time_s() const = 0;
  // Appends every request due at or before now_s, in a fixed order.
  virtual void take_due(double now_s, std::vector<LoadRequest>& out) = 0;
  // The request's last token came (or it failed and the session moves on). May make others due, even now.
  virtual void finished(std::uint64_t id, double now_s) = 0;
  // The phase of requests taken from now on; the engine starts the measured window when it turns `measured`.
  virtual LoadPhase phase() const = 0;
  // True once no request will ever be due again, whatever completes.
  virtual bool exhausted() const = 0;
  // End of the measured window: no further request is given out.
  virtual void stop() = 0;
  // Lanes (closed loop) or 0 (open loop).
  virtual std::uint32_t lanes() const = 0;
  // Instead of running the warm-up: calls `warmed` for each of its requests, in the order in which a server without
  // latency would have served them, and leaves the load at the start of the measured phase. Before any take_due().
  virtual void preload(const std::function<void(const LoadRequest&)>& warmed) = 0;
};

}  // namespace rackcast
