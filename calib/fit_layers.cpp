#include "calib/fit_layers.hpp"

#include <algorithm>
#include <map>

#include "sim/base/error.hpp"
#include "sim/cost/step_case.hpp"

namespace rackcast::calib {

namespace {

Attends attends_of(const std::string& family) {
  if (family == "composite_window") return Attends::window;
  return family == "composite_selected" ? Attends::selected : Attends::all;
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
  for (auto& [name, override] : costs.models)
    for (const char* family : {"composite", "composite_window", "composite_selected", "composite_all"}) override.families.erase(family);
  context.costs = std::move(costs);
  return make_step_model(context);
}

}  // namespace

void explain_layers(std::vector<FitPoint>& points, const CostSpec& costs, const ModelSpec& model) {
  std::map<std::string, std::unique_ptr<StepModel>> layers;
  for (FitPoint& p : points) {
    if (p.model != model.name || p.gpu != costs.gpu || p.family.rfind("composite", 0) != 0) continue;
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
