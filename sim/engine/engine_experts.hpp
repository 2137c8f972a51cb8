// The experts of one engine as state: where they and their replicas are, how popular they are at the moment, what that
// means for the step about to run, and a rearrangement that is under way. The main model and the draft have placements of
// their own. Engines whose placement never changes may share one object.
//
// Load as the policy sees it: tokens per expert over its window of engine steps, from the popularity of those steps, with
// the sampling noise of that many tokens. What a step then really asks for is drawn afresh (ExpertDemandLibrary).
#pragma once
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sim/cost/step_model.hpp"
#include "sim/policy/eplb_policy.hpp"
#include "sim/policy/expert_demand.hpp"
#include "sim/policy/expert_moves.hpp"

namespace rackcast {

struct ExpertPartOptions {
  std::string name;               // main, draft
  ExpertPopularityOptions popularity;
  int layers = 1, experts = 1, top_k = 1;
  double expert_bytes = 0;
};

struct ExpertOptions {
  std::vector<ExpertPartOptions> parts;  // main, then draft; empty: balanced routing
  EplbSpec eplb;
  std::vector<ExpertPlacement> table;    // of eplb.static.table, for the main part
  double nvlink_bytes_per_s = 900e9;
};

// The truth that all engines of a run share, by part.
using Popularities = std::vector<std::shared_ptr<ExpertPopularity>>;
Popularities make_popularities(const ExpertOptions& options, std::uint64_t seed);

// A session (a lane's play; loads without plays: a user) keeps its topic for life, on whichever engine.
std::size_t topic_of_session(std::uint64_t seed, std::uint32_t lane, std::uint32_t play, std::size_t topics);

struct ExpertPartTotals {
  double steps = 0;
  ExpertDemand demand{0, 0, 0};     // sums over steps of the mean over layers of the most loaded rank
  std::uint64_t rearrangements = 0;
  double rearranging_s = 0;         // from the plan's start to the last layer's swap
  double moved_bytes = 0, moved_experts = 0;
  double imbalance_before = 0, imbalance_after = 0;  // sums over rearrangements; mean over layers, on the window's load
};

class EngineExperts {
 public:
  EngineExperts(const ExpertOptions& options, const Popularities& popularities, int ranks, int nodes, std::uint64_t seed);

  // The load of the step about to run: popularity moves on, a step is drawn and counted. tokens: of all ranks;
  // topic_requests: requests of the step by topic of their session.
  ExpertLoad begin_step(double now_s, double tokens, std::span<const double> topic_requests);
  // The same without counting, for a look at a typical step.
  ExpertLoad peek();

  std::size_t topics() const { return static_cast<std::size_t>(options_.parts.front().popularity.topics); }

  // --- rearrangement, in stages: host work, then moves on the links, then the stage's layers count
  bool shareable() const;                  // the placement never changes
  bool due() const;
  void start(double now_s);
  bool rearranging() const { return rearrangement_.has_value(); }
  bool stalls() const { return rearranging() && move_ == EplbMove::stall; }
  double stage_host_s() const;
  const std::vector<ExpertMove>& stage_moves() const;
  double stage_expert_bytes() const;
  EplbCosts costs() const { return parts_.front().planner->costs(); }
  bool finish_stage(double now_s);         // false: that was the last one
  // Its engine died: what was learnt and moved is gone, and experts are again where an engine that starts has them.
  void restart();

  const std::vector<ExpertPartOptions>& options() const { return options_.parts; }
  const ExpertPartTotals& totals(std::size_t part) const { return parts_[part].totals; }
  // Of the main model, expected at its present popularity: rows of every rank over the ranks' mean, mean over layers.
  const std::vector<double>& rank_loads();
  double experts_arrived() const;          // at another rank, so far
  std::span<const ExpertPlacement> placements(std::size_t part) const { return parts_[part].placements; }
  void check() const;                      // every expert lives somewhere

 private:
  struct Snapshot {                        // popularity from `first_step` on
    std::uint64_t first_step = 0;
    std::vector<std::vector<double>> inclusion;  // [layer][expert]
  };
  struct Part {
    std::shared_ptr<ExpertPopularity> popularity;
    std::unique_ptr<EplbPlanner> planner;
    std::vector<ExpertPlacement> placements;
    std::unique_ptr<ExpertDemandLibrary> library;
    std::deque<Snapshot> window;
    ExpertPartTotals totals;
    double expert_bytes = 0;
  };
  struct Stage {
    std::size_t part = 0, first_layer = 0, end_layer = 0;
    double host_s = 0;
    std::vector<ExpertMove> moves;
    bool last_of_part = false;
  };
  struct Rearrangement {
    double part_started_s = 0;
    std::size_t at = 0;
    std::vector<Stage> stages;
    std::vector<std::vector<ExpertPlacement>> next;  // [part][layer]
    std::vector<double> imbalance_before, imbalance_after;  // by part
    double link_taken = 0;
  };

  void place(std::size_t part);            // as an engine starts
  void give_up_rearrangement();
  void snapshot(Part& part);
  void refresh(Part& part);
  std::vector<double> window_load(const Part& part, std::size_t layer, double tokens);
  void plan_part(std::size_t p, Rearrangement& plan);

  ExpertOptions options_;
  std::vector<Part> parts_;
  std::mt19937_64 random_;
  EplbMove move_ = EplbMove::free;
  std::optional<Rearrangement> rearrangement_;
  std::vector<double> rank_loads_;         // empty: not known since the last change
  std::uint64_t step_ = 0, last_start_ = 0;
  double tokens_ = 0;                      // of all steps so far
  std::vector<double> topic_share_, topic_sum_;  // of this step; summed over the steps since the last snapshot
  double refresh_s_ = std::numeric_limits<double>::infinity(), next_refresh_s_ = 0;
};

}  // namespace rackcast
