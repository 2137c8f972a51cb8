// One step taken apart at the exchanges between its ranks, for fidelity `flow`: what each rank does by itself, and what
// it sends to whom. Added up with the slowest rank of every part it is the step of the closed form.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/cost/forms.hpp"

namespace rackcast {

// One direction of the expert exchange. A row is a token of the sender's batch.
struct ExchangePhase {
  double row_bytes = 0;          // of one row to (dispatch) or from (combine) all ranks, its own included
  double link_bytes_per_s = 1;   // what the exchange reaches of a GPU's port, by NVLink
  double nic_bytes_per_s = 1;    // and by network card
};

// Layers of one kind: their number, and one layer's expert side by rank.
struct ExpertPhases {
  int layers = 0;
  std::vector<double> rows;      // that the rank sends out
  std::vector<double> share;     // of every rank's rows that goes to this one; adds up to 1
  std::vector<double> before_s;  // from the end of the attention side to the start of the dispatch
  std::vector<double> experts_s; // from the last arrival to the start of the combine; fused: the work that overlaps
  ExchangePhase dispatch, combine;
  // One fused kernel: it starts when all ranks are there, and dispatch, experts and combine overlap.
  bool fused = false;
  double gain = 1, launch_s = 0, overlap = 1;
  std::vector<double> reduce_s;

  // End of the fused kernel after its start, when the links took link_s.
  double fused_s(std::size_t rank, double link_s) const { return gain * (launch_s + p_norm(experts_s[rank], link_s, overlap) + reduce_s[rank]); }
};

struct StepPhases {
  std::vector<double> layers_s;  // by rank: attention side of all layers
  std::vector<ExpertPhases> experts;
  double rest_s = 0;             // head, draft, exposed host time; after the last layer
};

}  // namespace rackcast
