// A world for engine tests in three lines: a step model with a linear cost, a scripted load, and a run that keeps its
// records.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "sim/engine/simulation.hpp"
#include "sim/trace/closed_loop.hpp"
#include "sim/trace/open_loop.hpp"

namespace rackcast::test {

// step = fixed + max over ranks of (prompt tokens * per_token + decoding requests * per_request) + most that a host posts.
struct LinearSteps final : StepModel {
  double fixed_s = 0, per_token_s = 0, per_request_s = 0;
  LinearSteps(double fixed, double per_token, double per_request) : fixed_s(fixed), per_token_s(per_token), per_request_s(per_request) {}
  StepTime step(std::span<const RankBatch> ranks, const ExpertLoad&) const override {
    double slowest = 0;
    for (const RankBatch& rank : ranks)
      slowest = std::max(slowest, rank.prefill_tokens * per_token_s + rank.decode_requests * per_request_s);
    StepTime time;
    for (const RankBatch& rank : ranks) time.host_s = std::max(time.host_s, rank.host_s);
    time.other_s = fixed_s + slowest;
    time.total_s = time.other_s + time.host_s;
    return time;
  }
  std::vector<OperatorCost> operators(std::span<const RankBatch>, const ExpertLoad&) const override { return {}; }
};

// Requests at given times, whatever happens.
struct Scripted final : Load {
  struct Ask {
    double at_s;
    std::uint32_t input, output, play = 0;
    std::vector<HashRun> runs{};
  };
  std::vector<Ask> asks;
  std::size_t next = 0;
  bool stopped = false;
  explicit Scripted(std::vector<Ask> list) : asks(std::move(list)) {}
  double next_time_s() const override { return exhausted() ? never_s : asks[next].at_s; }
  void take_due(double now_s, std::vector<LoadRequest>& out) override {
    for (; !exhausted() && asks[next].at_s <= now_s; ++next) {
      LoadRequest request;
      request.id = next;
      request.lane = static_cast<std::uint32_t>(next);
      request.play = asks[next].play;
      request.input_tokens = asks[next].input;
      request.output_tokens = asks[next].output;
      request.runs = asks[next].runs;
      out.push_back(request);
    }
  }
  void finished(std::uint64_t, double) override {}
  LoadPhase phase() const override { return LoadPhase::measured; }
  bool exhausted() const override { return stopped || next == asks.size(); }
  void stop() override { stopped = true; }
  std::uint32_t lanes() const override { return 0; }
  void preload(const std::function<void(const LoadRequest&)>&) override {}
};

struct Records final : RunObserver {
  std::vector<RequestRecord> rows;
  void finished(const RequestRecord& record) override { rows.push_back(record); }
};

inline PoolOptions pool(EngineRole role, std::uint32_t engines, std::uint32_t ranks, const StepModel& model) {
  PoolOptions options;
  options.shape.role = role;
  options.shape.ranks = options.shape.gpus = ranks;
  options.engines = engines;
  options.model = &model;
  return options;
}

struct Run {
  Records records;
  SimulationOutcome outcome;
};

inline Run simulate(const SimulationOptions& options, Load& load) {
  Run run;
  const std::unique_ptr<Network> network = make_fluid_network();
  run.outcome = Simulation(options, load, *network, run.records).run();
  return run;
}

}  // namespace rackcast::test
