// Routed experts of one kind of layer over an engine's ranks: which experts a batch touches, what the slowest rank
// multiplies, and the exchange of tokens before and after. Two ways to run it: one fused kernel (dispatch, both GEMMs
// and combine overlap), or separate kernels with an all-to-all on each side.
#pragma once
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "sim/cost/exact.hpp"
#include "sim/cost/forms.hpp"
#include "sim/cost/step_model.hpp"
#include "sim/policy/expert_demand.hpp"

namespace rackcast {

struct ExpertCost {
  std::string_view name;
  double flops = 0, bytes = 0, seconds = 0;
  Basis basis = Basis::measured;
  bool exact = false;      // measured points have part in it
  std::string_view family = {};  // of the cost file
  double link_bytes = 0;   // that the ranks exchange in it
};

struct ExpertShape {
  double layers = 0;
  int experts = 0;         // distinct
  int top_k = 0;
  bool with_shared = true; // the shared expert runs inside the fused kernel
};

// Expected number of `slots` that `tokens` tokens touch, each choosing top_k of all_slots uniformly.
double touched_slots(double slots, double all_slots, double top_k, double tokens);
// Ranks that a token's top_k experts lie on, when experts are spread evenly over the ranks.
double distinct_ranks(int ranks, int experts, int top_k);

class ExpertSide {
 public:
  static constexpr int max_rows = 6;
  ExpertSide(const StepContext& context, const ExpertShape& shape);
  // largest: rows of the rank with most tokens; total: rows of all ranks (TP: the engine's batch for both). Uneven loads:
  // the mean over the sampled layers of the slowest rank's parts.
  // Fills the first `n` of out and returns n; seconds are for all layers.
  int evaluate(double largest, double total, const StepDemand* demand, double link_taken, std::array<ExpertCost, max_rows>& out) const;
  // A demand that stands for a bucket lends its ratio to balanced routing, which hardly moves with them.
  double seconds(double largest, double total, const StepDemand* demand, double link_taken) const;
  // Seconds of every sampled layer, if all layers were like it.
  std::vector<double> layer_seconds(double largest, double total, const StepDemand& demand, double link_taken) const;
  // Where one layer of what evaluate() gave leaves the range of its family.
  std::vector<RangeExit> exits(const ExpertCost& part) const;
  // Whether a demand makes a difference: of ranks with whole experts, or of one that stands for all with slices, where the
  // experts that a batch touches change with it.
  bool uneven() const { return shape_.experts > 0; }
  // One layer's expert side by rank. rows: of every rank. The busiest rank's share (the demand's maxima) is rank 0's, and
  // the others share the rest evenly.
  ExpertPhases phases(std::span<const double> rows, const StepDemand* demand, double link_taken) const;

 private:
  struct Exchange {            // one direction of the all-to-all, or of a collective over all ranks' tokens
    double t0_s = 0, bytes_per_token = 0, link_bytes_per_s = 1, nic_bytes_per_s = 1;
    double half_bytes = 0;     // at which a collective's link reaches half of its rate
    std::string_view name, family;
    Basis basis = Basis::measured;
  };
  Exchange read_exchange(ParameterReader& read, const char* family, double bytes_per_copy) const;
  Exchange read_collective(ParameterReader& read, const CostSpec& costs, const char* wanted, const char* other) const;
  void read_exchanges(ParameterReader& read, const StepContext& context);
  ExchangePhase phase_of(const Exchange& e) const;
  struct Work {                // of one layer on one rank
    double largest = 0, mean = 0, total = 0;  // tokens: of the rank with most, of a rank, of the engine
    double rows = 0, weights = 0;       // multiplied rows, bytes of touched experts
    double ingress = 1, most_ingress = 1;  // this rank's and the busiest one's, relative to the mean
    double link_taken = 0;
  };
  Work balanced_work(double largest, double total, double link_taken) const;
  Work uneven_work(double largest, double total, const ExpertDemand& rank, double most_ingress, double link_taken) const;
  struct Slowest {             // rank of a layer
    Work work;
    double seconds = -1;
  };
  template <class Seconds>
  Slowest slowest(double largest, double total, std::span<const ExpertDemand> layer, double link_taken, const Seconds& seconds_of) const;
  Slowest slowest(double largest, double total, std::span<const ExpertDemand> layer, double link_taken) const;  // by work_seconds
  int parts(const Work& work, std::array<ExpertCost, max_rows>& out) const;
  double work_seconds(const Work& work) const;
  double work_seconds_above(const Work& work) const;  // by PNorm::above
  double balanced_seconds(double largest, double total, double link_taken) const;
  double uneven_seconds(double largest, double total, const StepDemand& demand, double link_taken) const;
  double ratio(const StepDemand& demand, double largest_over_mean, double link_taken) const;
  template <class Norm>
  double fused_seconds(const Work& work, const Norm& norm) const;
  template <class Norm>
  double fused_form_seconds(const Work& work, const Norm& norm) const;  // without gain()
  // g, and what measured points of balanced ranks with so many tokens each say beyond it.
  double gain(double mean_tokens) const;
  double balanced_form_seconds(double mean_tokens) const;
  double grouped_seconds(const Work& work) const;
  double fused_link_bytes(const Work& work) const;
  double exchange_bytes(const Exchange& e, const Work& work) const;
  double exchange_seconds(const Exchange& e, const Work& work) const;
  double unmoved_s(const Exchange& e, const Work& work) const;

  ExpertShape shape_;
  int ranks_;
  bool tensor_parallel_, whole_, fused_;  // whole experts on every rank, or a slice of each
  double nvlink_domain_;
  int spread_;                       // ranks that whole experts are spread over; 1: slices on every rank
  double slots_, all_slots_;         // a rank's, the engine's
  double expert_weights_, expert_flops_, hidden_, intermediate_, cut_;
  double shared_bytes_ = 0, shared_flops_ = 0;
  Roofline grouped_, route_;
  double tile_s_ = 0;                // of a full tile's loop over K; 0: the family's kernels are not told by their tiles
  double row_s_ = 0, received_ = 1;  // permutation of a token that reaches the rank; share of all tokens that do
  // fused form
  double g_ = 1, t0_s_ = 0, reduce_bytes_per_s_ = 1, link_bytes_per_s_ = 1;
  PNorm norm_{1};
  Basis fused_basis_ = Basis::measured;
  ExactTimes exact_;
  mutable double gain_tokens_ = -1, gain_ = 1;  // the last asked for; a model serves one thread
  Exchange dispatch_, combine_;
  std::string_view experts_family_ = "moe_fused";
  std::map<std::string_view, CostRange> ranges_;  // by family
};

}  // namespace rackcast
