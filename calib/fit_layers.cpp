#include "calib/fit_layers.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <map>

#include "sim/base/error.hpp"
#include "sim/cost/step_case.hpp"

namespace rackcast::calib {

namespace {

Attends attends_of(const std::string& family) {
  if (family == "composite_window") return Attends::window;
  return family == "composite_selected" ? Attends::selected : Attends::all;
}

void drop_composites(CostSpec& costs) {
  for (auto& [name, override] : costs.models)
    for (const char* family : {"composite", "composite_window", "composite_selected", "composite_all"}) override.families.erase(family);
}

// One layer of the kind, alone.
std::unique_ptr<StepModel> layer_model(const ModelSpec& model, CostSpec costs, Attends attends) {
  StepContext context;
  context.model = model;
  const auto group = std::find_if(model.layers.begin(), model.layers.end(), [&](const LayerGroup& g) { return g.attends == attends; });
  if (group == model.layers.end()) throw UserError(model.name + " has no layer of the kind that a measurement is about");
  context.model.layers = {*group};
  context.model.layers[0].count = 1;
  context.model.layers[0].ffn = FfnKind::dense;
  context.model.experts = {};
  context.model.residual_streams = 1;
  drop_composites(costs);
  context.costs = std::move(costs);
  return make_step_model(context);
}

constexpr std::string_view whole_forward = "case ";  // shape of its points, before the case

// A whole forward is as many composites as the model has layers.
void explain_forward(FitPoint& p, const CostSpec& costs, const ModelSpec& model, const GpuSpec& gpu) {
  const std::vector<CaseItem> items = parse_case(std::string_view(p.shape).substr(whole_forward.size()));
  const bool tensor_parallel = p.ranks < 0;
  p.ranks = std::abs(p.ranks);
  StepContext context;
  context.model = model;
  context.gpu = gpu;
  context.costs = costs;
  drop_composites(context.costs);
  context.ranks = static_cast<int>(p.ranks);
  context.tensor_parallel = tensor_parallel;
  context.draft_tokens = draft_tokens_of(items);
  const RankBatch batch = batch_of(items, model, CasePhase::automatic);
  const std::vector<RankBatch> ranks(tensor_parallel ? 1 : static_cast<std::size_t>(context.ranks), batch);
  const StepTime t = make_step_model(context)->step(ranks);
  p.known_s = (t.total_s - t.draft_s - t.host_s) / model.layer_count();
  p.time_s /= model.layer_count();
  p.units = batch.decode_tokens + batch.prefill_tokens;
}

}  // namespace

void explain_layers(std::vector<FitPoint>& points, const CostSpec& costs, const ModelSpec& model, const GpuSpec& gpu) {
  std::map<std::string, std::unique_ptr<StepModel>> layers;
  for (FitPoint& p : points) {
    if (p.model != model.name || p.gpu != costs.gpu || p.family.rfind("composite", 0) != 0) continue;
    if (p.shape.rfind(whole_forward, 0) == 0) {
      explain_forward(p, costs, model, gpu);
      continue;
    }
    std::unique_ptr<StepModel>& layer = layers[p.family];
    if (!layer) layer = layer_model(model, costs, attends_of(p.family));
    RankBatch batch;
    if (p.fresh > 1) add_prefill(batch, p.requests, p.fresh, p.context, 128);
    else add_decode(batch, p.requests, 1, p.context, false);
    const StepTime t = layer->step(std::span(&batch, 1));
    p.known_s = t.attention_s + t.other_s;
  }
}

}  // namespace rackcast::calib
