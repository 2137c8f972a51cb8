// The host's part of an engine step: scheduling, input preparation, handling of results, and the agreement of
// data-parallel ranks. Values of -1 ("auto") come from the cost file's family `host`.
#pragma once
#include <vector>

#include "sim/base/schema.hpp"

namespace rackcast {

enum class HostMode { sync, async };
extern const std::vector<Choice> host_modes;

struct HostSpec {
  HostMode mode = HostMode::async;
  Seconds per_step{-1};
  Seconds per_request{-1};            // running, and step
  Seconds per_new_request{-1};        // once, in the step that first holds it
  Seconds jitter{-1};                 // mean of a rank's exponential delay in a step
  Seconds agreement{-1};              // of data-parallel ranks through their hosts, per doubling of their number
  bool prompt_graphs = true;          // false: iterations with prompts are launched kernel by kernel
  Seconds eager_layer{-1};            // host time to launch one layer so
  Tokens padded_tokens{0};            // DEP: iterations of at most this many tokens on every rank are padded to the largest rank's
};
void fields(Visitor& v, HostSpec& h);

}  // namespace rackcast
