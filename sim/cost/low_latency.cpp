#include "sim/cost/low_latency.hpp"

#include <utility>

namespace rackcast {

namespace {

class TwoPathModel final : public StepModel {
 public:
  TwoPathModel(std::unique_ptr<StepModel> standard, std::unique_ptr<StepModel> fused)
      : standard_(std::move(standard)), fused_(std::move(fused)) {}

  StepTime step(std::span<const RankBatch> ranks, const ExpertLoad& load) const override { return of(ranks).step(ranks, load); }
  std::vector<OperatorCost> operators(std::span<const RankBatch> ranks, const ExpertLoad& load) const override {
    return of(ranks).operators(ranks, load);
  }

 private:
  const StepModel& of(std::span<const RankBatch> ranks) const {
    double tokens = 0;
    for (const RankBatch& rank : ranks) tokens += rank.decode_tokens + rank.prefill_tokens;
    return tokens <= small_step_tokens ? *fused_ : *standard_;
  }

  std::unique_ptr<StepModel> standard_, fused_;
};

}  // namespace

std::unique_ptr<StepModel> make_two_path_model(std::unique_ptr<StepModel> standard, std::unique_ptr<StepModel> fused) {
  return std::make_unique<TwoPathModel>(std::move(standard), std::move(fused));
}

}  // namespace rackcast
