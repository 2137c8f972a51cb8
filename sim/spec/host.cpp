#include "sim/spec/host.hpp"

namespace rackcast {

const std::vector<Choice> host_modes = {
    {"sync", "the host waits for a step's results before it prepares the next one, and data-parallel ranks agree through "
             "their hosts: all of it is exposed"},
    {"async", "the host prepares the next step under the GPU's; only what lasts longer than that is exposed"}};

void fields(Visitor& v, HostSpec& h) {
  v.choice("mode", h.mode, host_modes, "is the host's work per step exposed");
  v.automatic("per_step", h.per_step, "host time of a step; auto: the cost file's");
  v.automatic("per_request", h.per_request, "host time per running request and step; auto: the cost file's");
  v.automatic("per_new_request", h.per_new_request, "host time to admit a request, once; auto: the cost file's");
  v.automatic("jitter", h.jitter, "mean of a rank's exponential delay in a step, so that a step waits for the slowest rank; auto: the cost file's");
  v.automatic("agreement", h.agreement, "mode sync: time that data-parallel ranks need to agree through their hosts, per doubling of their number; auto: the cost file's");
  v.field("prompt_graphs", h.prompt_graphs, "are iterations with prompts replayed as CUDA graphs; no: the host launches them kernel by kernel, and they last at least as long as that takes");
  v.field("padded_tokens", h.padded_tokens, "dep: CUDA graphs of up to this many tokens, for which every rank's experts see as many rows as the largest rank's; 0: ranks are not padded")
      .require(h.padded_tokens.count >= 0 && h.padded_tokens.count <= std::int64_t{1} << 30, "must be 0 to 1024M");
  v.automatic("eager_layer", h.eager_layer, "prompt_graphs no: host time to launch one layer; auto: the cost file's");
}

}  // namespace rackcast
