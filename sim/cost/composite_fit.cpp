#include "sim/cost/composite_fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/base/error.hpp"
#include "sim/cost/step_case.hpp"

namespace rackcast {

namespace {
constexpr std::string_view step_metric_names[] = {"main_s", "moe_s", "rest_s"};
}

void fields(Visitor& v, StepAnchor& a) {
  v.field("id", a.id, "short name").required();
  v.field("gpu", a.gpu, "the GPU").required();
  v.field("ranks", a.ranks, "DEP width").require(a.ranks > 0, "must be > 0").required();
  v.field("case", a.case_text, "as `step --case`").required();
  v.choice("metric", a.metric, step_metric_names, "main_s, moe_s, or rest_s = main_s - moe_s").required();
  v.field("value", a.value, "published time").require(a.value > Seconds{}, "must be > 0").required();
  v.field("rounding", a.rounding, "half of the last digit, or the stated doubt").require(a.rounding >= Seconds{}, "must be >= 0");
  v.field("source", a.source, "citation and date").required();
}

void fields(Visitor& v, StepAnchors& a) {
  v.field("model", a.model, "the model").required();
  v.list("anchors", a.anchors, "published whole steps").require(!a.anchors.empty(), "needs at least one entry").required();
}

void apply_composite(CostSpec& costs, const std::string& model, const Composite& c) {
  auto set = [&](const char* family, const char* parameter, double value) {
    costs.models[model].families[family].parameters[parameter].value = value;
  };
  set("moe_fused", "g", c.g);
  set("indexer", "mma_tflops", c.index_tflops);
  set("composite", "a0_us", c.a0_us);
  set("composite", "a1_us", c.a1_us);
}

double predicted(const StepAnchor& anchor, const StepContext& base) {
  StepContext context = base;
  context.ranks = anchor.ranks;
  context.tensor_parallel = false;
  const RankBatch batch = batch_of(parse_case(anchor.case_text), context.model, CasePhase::automatic);
  const std::vector<RankBatch> ranks(static_cast<std::size_t>(anchor.ranks), batch);
  const StepTime t = make_step_model(context)->step(ranks);
  const double main_s = t.total_s - t.draft_s - t.host_s;
  switch (anchor.metric) {
    case StepMetric::main_s: return main_s;
    case StepMetric::moe_s: return t.moe_s;
    case StepMetric::rest_s: return main_s - t.moe_s;
  }
  return 0;
}

namespace {

// Where a falling or rising function crosses zero inside [low, high]; the ends must differ in sign.
double crossing(double low, double high, const std::function<double(double)>& f, const char* what) {
  double at_low = f(low);
  if ((at_low > 0) == (f(high) > 0)) throw UserError(std::string("the published steps leave no solution for ") + what);
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    const double at_middle = f(middle);
    if ((at_middle > 0) == (at_low > 0)) low = middle, at_low = at_middle;
    else high = middle;
  }
  return 0.5 * (low + high);
}

class Solver {
 public:
  Solver(const std::vector<StepAnchor>& anchors, std::vector<StepContext> contexts)
      : anchors_(anchors), contexts_(std::move(contexts)) {}

  Composite solve() {
    const auto ends = context_ends();
    const StepAnchor &shortest = ends.first, &longest = ends.second;
    const StepAnchor moe = only(StepMetric::moe_s), rest = only(StepMetric::rest_s);
    Composite c{.g = 1, .index_tflops = 2000, .a0_us = 0, .a1_us = 0};
    c.index_tflops = crossing(100, 100000, [&](double rate) {
      Composite trial = c;
      trial.index_tflops = rate;
      return (at(longest, trial) - at(shortest, trial)) - (longest.value - shortest.value).value();
    }, "the rate of index scoring");
    c.g = crossing(0.1, 10, [&](double g) {
      Composite trial = c;
      trial.g = g;
      return at(moe, trial) - moe.value.value();
    }, "the scale of the fused experts");
    solve_floor(c, rest);
    return c;
  }

 private:
  double at(const StepAnchor& anchor, const Composite& c) {
    for (StepContext& context : contexts_)
      if (context.costs.gpu == anchor.gpu) {
        apply_composite(context.costs, context.model.name, c);
        return predicted(anchor, context);
      }
    throw UserError("no costs for GPU " + anchor.gpu + " of published step " + anchor.id);
  }

  const StepAnchor& only(StepMetric metric) const {
    const auto found = std::find_if(anchors_.begin(), anchors_.end(), [&](const StepAnchor& a) { return a.metric == metric; });
    if (found == anchors_.end()) throw UserError("no published step of metric " + std::string(step_metric_names[static_cast<int>(metric)]));
    return *found;
  }

  std::vector<StepAnchor> main_points() const {
    std::vector<StepAnchor> points;
    for (const StepAnchor& a : anchors_)
      if (a.metric == StepMetric::main_s) points.push_back(a);
    std::sort(points.begin(), points.end(), [](const StepAnchor& a, const StepAnchor& b) {
      return parse_case(a.case_text).front().context < parse_case(b.case_text).front().context;
    });
    if (points.size() < 2) throw UserError("main_s is needed at two contexts at least");
    return points;
  }

  std::pair<StepAnchor, StepAnchor> context_ends() const {
    const std::vector<StepAnchor> points = main_points();
    return {points.front(), points.back()};
  }

  // Both kinds of residual are linear in a0 and a1: two equations, the mean of the context points and the rest.
  void solve_floor(Composite& c, const StepAnchor& rest) {
    const std::vector<StepAnchor> points = main_points();
    auto residuals = [&](double a0, double a1) {
      Composite trial = c;
      trial.a0_us = a0;
      trial.a1_us = a1;
      double mean = 0;
      for (const StepAnchor& p : points) mean += (at(p, trial) - p.value.value()) / static_cast<double>(points.size());
      return std::pair{mean, at(rest, trial) - rest.value.value()};
    };
    const auto [m, r] = residuals(0, 0);
    const auto [m0, r0] = residuals(1, 0);
    const auto [m1, r1] = residuals(0, 1);
    const double determinant = (m0 - m) * (r1 - r) - (m1 - m) * (r0 - r);
    const double scale = std::abs((m0 - m) * (r1 - r)) + std::abs((m1 - m) * (r0 - r));
    if (std::abs(determinant) < 1e-6 * scale) throw UserError("the published steps have one batch size only: a0 and a1 cannot be told apart");
    c.a0_us = (-m * (r1 - r) + r * (m1 - m)) / determinant;
    c.a1_us = (-(m0 - m) * r + (r0 - r) * m) / determinant;
  }

  const std::vector<StepAnchor>& anchors_;
  std::vector<StepContext> contexts_;
};

}  // namespace

Composite fit_composite(const std::vector<StepAnchor>& anchors, std::vector<StepContext> contexts) {
  return Solver(anchors, std::move(contexts)).solve();
}

}  // namespace rackcast
