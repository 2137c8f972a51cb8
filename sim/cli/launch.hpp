// How the public launch scripts of a benchmark start an engine: what a published row does not say but its date, GPU,
// framework, precision, lengths and concurrency settle. Never from measured figures.
#pragma once
#include "analysis/published_rows.hpp"

namespace rackcast {

struct Launch {
  int prompt_tokens = 8192;       // of an iteration
  int most_requests = 0;          // running in an engine; 0: no limit below the users
  double waited_iterations = 0;   // decode iterations between a request's arrival and its prompt's, beyond the one under way
  bool prompt_graphs = true;      // prompts are replayed as CUDA graphs
  int prompt_chunk = 0;           // tokens of one prompt in an iteration; 0: as many as fit
  int answer_iterations = 0;      // without prompts after one with them
  int padded_tokens = 0;          // CUDA graphs of up to so many tokens pad data-parallel ranks to the largest; 0: none
  bool sustained = false;         // prompts run at the clock that the power cap leaves
  double gpu_share = 0;           // of the GPU's memory for weights, activations and KV; 0: not known
  double kept_state_mb = 0;       // that a finished request leaves in HBM beside its cached blocks
  int retention_interval = 0;     // tokens between window states that are kept; 0: all are
  bool experts_balanced = true;   // experts are moved to even the load of the ranks, or nothing says how uneven it is
};

// The row must have been completed (analysis/recipes.hpp).
Launch launch_of(const PublishedRow& row);

}  // namespace rackcast
