// Routed experts of one kind of layer over an engine's ranks: which experts a batch touches, what the slowest rank
// multiplies, and the exchange of tokens before and after. Two ways to run it: one fused kernel (dispatch, both GEMMs
// and combine overlap), or separate kernels with an all-to-all on each side.
#pragma once
#include <array>
#include <string_view>

#include "sim/cost/forms.hpp"
#include "sim/cost/step_model.hpp"

namespace rackcast {

struct ExpertCost {
  std::string_view name;
  double flops = 0, bytes = 0, seconds = 0;
  Basis basis = Basis::measured;
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
  // largest: rows of the rank with most tokens; total: rows of all ranks (TP: the engine's batch for both).
  // Fills the first `n` of out and returns n; seconds are for all layers.
  int evaluate(double largest, double total, const ExpertLoad& load, std::array<ExpertCost, max_rows>& out) const;
  double seconds(double largest, double total, const ExpertLoad& load) const;
  // One layer's expert side by rank. rows: of every rank. `load` says what the busiest rank has; it is rank 0, and the
  // others share the rest evenly.
  ExpertPhases phases(std::span<const double> rows, const ExpertLoad& load) const;

 private:
  struct Exchange {            // one direction of the all-to-all
    double t0_s = 0, bytes_per_token = 0, link_bytes_per_s = 1, nic_bytes_per_s = 1;
    Basis basis = Basis::measured;
  };
  Exchange read_exchange(ParameterReader& read, const char* family, double bytes_per_copy) const;
  double touched(double total, const ExpertLoad& load) const;  // slots of the busiest rank
  ExchangePhase phase_of(const Exchange& e) const;
  void exchange(const Exchange& e, const char* name, double largest, double total, const ExpertLoad& load, ExpertCost& out) const;

  ExpertShape shape_;
  int ranks_;
  bool tensor_parallel_, fused_;
  double nvlink_domain_;
  double slots_, all_slots_;         // a rank's, the engine's
  double expert_weights_, expert_flops_, hidden_, intermediate_, cut_;
  double shared_bytes_ = 0, shared_flops_ = 0;
  Roofline grouped_, route_;
  double row_s_ = 0, received_ = 1;  // permutation of a token that reaches the rank; share of all tokens that do
  // fused form
  double g_ = 1, t0_s_ = 0, reduce_bytes_per_s_ = 1, link_bytes_per_s_ = 1, p_ = 1;
  Basis fused_basis_ = Basis::measured;
  Exchange dispatch_, combine_;
};

}  // namespace rackcast
