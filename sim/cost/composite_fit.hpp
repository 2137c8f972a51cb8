// What no kernel table can say about a whole step: four numbers per model, solved from published whole steps.
//   g   scale of the fused expert kernel                <- a published moe_s
//   kq  rate of index scoring (indexer.mma_tflops)      <- how main_s grows from the shortest to the longest context
//   a0  seconds per layer, a1 seconds per layer and row <- main_s of the context points, and main_s - moe_s of another
//                                                          batch size
// Each is determined, not tuned: as many equations as unknowns. Cost files hold the results as overrides of the model.
#pragma once
#include <string>
#include <vector>

#include "sim/cost/step_model.hpp"

namespace rackcast {

enum class StepMetric { main_s, moe_s, rest_s };  // rest_s = main_s - moe_s

// One published figure. Files in scenarios/published/.
struct StepAnchor {
  std::string id, gpu, case_text, source;
  int ranks = 1;
  StepMetric metric = StepMetric::main_s;
  Seconds value{};
  Seconds rounding{};  // half of the last digit given, or the stated doubt
};
void fields(Visitor& v, StepAnchor& a);

struct StepAnchors {
  std::string model;
  std::vector<StepAnchor> anchors;
};
void fields(Visitor& v, StepAnchors& a);

struct Composite {
  double g = 1, index_tflops = 0, a0_us = 0, a1_us = 0;
};

// contexts: one for each GPU that an anchor names, found by costs.gpu; their rates other than the four are taken as given.
// Needs one moe_s anchor, one rest_s anchor, and main_s anchors of one batch size at two or more contexts.
Composite fit_composite(const std::vector<StepAnchor>& anchors, std::vector<StepContext> contexts);
void apply_composite(CostSpec& costs, const std::string& model, const Composite& composite);
double predicted(const StepAnchor& anchor, const StepContext& context);  // seconds

}  // namespace rackcast
