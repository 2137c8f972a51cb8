// From a scenario to the experts' state: popularity of main model and draft, placement policy, recorded files.
#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/cost/shapes.hpp"
#include "sim/engine/build.hpp"
#include "sim/spec/expert_files.hpp"

namespace rackcast {

static void check_counts(const std::vector<std::vector<double>>& counts, const std::string& path, int layers, int experts) {
  if (counts.size() == static_cast<std::size_t>(layers) && counts.front().size() == static_cast<std::size_t>(experts)) return;
  throw UserError(fmt::format("{}: counts of {} layers and {} experts, but the model has {} and {}", path, counts.size(), counts.front().size(),
                              layers, experts));
}

// Nothing to do for balanced routing, which is the default, or a model without experts.
void add_expert_options(const Scenario& s, BuiltRun& run) {
  const EplbSpec& eplb = s.deployment.eplb;
  const ExpertLoadSpec& load = s.workload.experts;
  if (s.model.experts.count == 0) return;
  if (!load.uneven()) {
    if (eplb.policy != EplbPolicy::none)
      run.notes.push_back("deployment.eplb.policy has no effect while workload.experts.skew is balanced");
    return;
  }
  ExpertOptions& o = run.options.experts;
  o.eplb = eplb;
  o.nvlink_bytes_per_s = s.rack.gpu.nvlink_bandwidth.value();
  if (!eplb.static_placement.table.empty() && eplb.policy == EplbPolicy::static_placement) o.table = read_placement_table(eplb.static_placement.table);
  const double bytes = expert_parameters(s.model) * bytes_per_weight(expert_weights(s.model, s.rack.gpu));
  const int layers = static_cast<int>(moe_layers(s.model, PrefillRows::all) + moe_layers(s.model, PrefillRows::tail));
  o.parts.push_back({"main", load.popularity, layers, s.model.experts.count, s.model.experts.top_k, bytes});
  if (load.popularity.skew == ExpertSkew::counts) {
    o.parts.back().popularity.counts = read_expert_counts(load.counts_file);
    check_counts(o.parts.back().popularity.counts, load.counts_file, layers, s.model.experts.count);
  }
  const bool counts_missing = load.popularity.skew == ExpertSkew::counts && load.draft_counts_file.empty();
  if (s.deployment.speculation.draft_tokens == 0 || !s.model.draft || s.model.draft->experts == 0 || counts_missing) return;
  const DraftSpec& d = *s.model.draft;
  o.parts.push_back({"draft", load.popularity, d.stages, d.experts, d.top_k, bytes});
  if (load.popularity.skew != ExpertSkew::counts) return;
  o.parts.back().popularity.counts = read_expert_counts(load.draft_counts_file);
  check_counts(o.parts.back().popularity.counts, load.draft_counts_file, d.stages, d.experts);
}

}  // namespace rackcast
