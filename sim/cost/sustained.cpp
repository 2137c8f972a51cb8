#include "sim/cost/sustained.hpp"

#include <algorithm>
#include <utility>

namespace rackcast {

namespace {

class TwoClockModel final : public StepModel {
 public:
  TwoClockModel(std::unique_ptr<StepModel> burst, std::unique_ptr<StepModel> sustained) : burst_(std::move(burst)), sustained_(std::move(sustained)) {}

  StepTime step(std::span<const RankBatch> ranks, const ExpertLoad& load) const override { return of(ranks).step(ranks, load); }
  StepPhases phases(std::span<const RankBatch> ranks, const ExpertLoad& load) const override { return of(ranks).phases(ranks, load); }
  std::vector<double> expert_layers(std::span<const RankBatch> ranks, const ExpertLoad& load) const override { return of(ranks).expert_layers(ranks, load); }
  std::vector<OperatorCost> operators(std::span<const RankBatch> ranks, const ExpertLoad& load) const override { return of(ranks).operators(ranks, load); }

 private:
  const StepModel& of(std::span<const RankBatch> ranks) const {
    const bool prompts = std::any_of(ranks.begin(), ranks.end(), [](const RankBatch& rank) { return rank.prefill_tokens > 0; });
    return prompts ? *sustained_ : *burst_;
  }

  std::unique_ptr<StepModel> burst_, sustained_;
};

// Peak of the tensor cores that a family's kernels use. FP4 weights times FP8 activations run at the FP8 rate.
double peak_tflops(const std::string& family, const GpuSpec& gpu) {
  const auto has = [&](const char* part) { return family.find(part) != std::string::npos; };
  const bool fp4 = has("nvfp4") || family == "dense_fp4", fp8 = has("fp8") || has("fp4") || has("fused") || has("indexer");
  return (fp4 && gpu.fp4 > FlopsPerSecond{} ? gpu.fp4 : fp4 || fp8 ? gpu.fp8 : gpu.bf16).value() * 1e-12;
}

// Attention and index scoring keep less of the chip busy than products do, and lose less.
const CostParameter& share_of(const std::string& family, const CostSpec& costs) {
  const bool attention = family.starts_with("attention"), index = family == "indexer";
  const CostParameter* own = attention ? costs.find("clock", "attention_share") : index ? costs.find("clock", "index_share") : nullptr;
  return own ? *own : costs.get("clock", "sustained_share");
}

void slow_down(std::map<std::string, CostFamily>& families, const GpuSpec& gpu, double from, const CostSpec& burst) {
  for (auto& [name, family] : families) {
    const CostParameter& share = share_of(name, burst);
    const auto rate = family.parameters.find("mma_tflops");
    if (rate == family.parameters.end() || rate->second.value < from * peak_tflops(name, gpu)) continue;
    CostParameter& p = rate->second;
    p.value *= share.value;
    p.lo *= share.value;
    p.hi *= share.value;
    p.basis = std::max(p.basis, share.basis);
  }
}

}  // namespace

CostSpec sustained_costs(const CostSpec& burst, const GpuSpec& gpu) {
  CostSpec costs = burst;
  const double from = burst.get("clock", "sustained_from", "").value;
  slow_down(costs.families, gpu, from, burst);
  for (auto& [name, model] : costs.models) slow_down(model.families, gpu, from, burst);
  return costs;
}

std::unique_ptr<StepModel> make_two_clock_model(std::unique_ptr<StepModel> burst, std::unique_ptr<StepModel> sustained) {
  return std::make_unique<TwoClockModel>(std::move(burst), std::move(sustained));
}

}  // namespace rackcast
