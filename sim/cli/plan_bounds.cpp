#include "sim/cli/plan_bounds.hpp"

#include <algorithm>
#include <limits>

#include "sim/cost/step_model.hpp"
#include "sim/policy/speculation.hpp"

namespace rackcast {
namespace {

// The best rate of a step over all fill levels 1, 2, 4, ... and `most`: what `fill` puts into a rank, divided by time.
template <typename Fill>
double best_rate(const StepModel& model, int ranks, double most, const Fill& fill) {
  double best = 0;
  for (double amount = 1;; amount = std::min(2 * amount, most)) {
    RankBatch batch;
    const double gained = fill(amount, batch);
    best = std::max(best, ranks * gained / model.step(std::vector<RankBatch>(static_cast<std::size_t>(ranks), batch)).total_s);
    if (amount >= most) return best;
  }
}

// Prompt tokens a second of one engine: one prompt a rank, its attention at no context.
double prompt_rate(const StepModel& model, const EngineSpec& engine) {
  return best_rate(model, engine.dep > 0 ? engine.dep : 1, static_cast<double>(engine.max_batched_tokens.count), [](double tokens, RankBatch& batch) {
    constexpr double tail = 128;
    batch.prefill_tokens = tokens;
    batch.prefill_requests = 1;
    batch.prefill_context = batch.prefill_query_context = tokens;
    batch.prefill_tail_tokens = batch.prefill_tail_query_context = std::min(tokens, tail);
    return tokens;
  });
}

// Output tokens a second of one engine: requests that have hardly any context.
double answer_rate(const StepModel& model, const EngineSpec& engine, const SpeculationSpec& speculation) {
  const Acceptance acceptance(speculation.draft_tokens, speculation.acceptance_length, speculation.acceptance);
  const double queries = acceptance.query_tokens();
  return best_rate(model, engine.dep > 0 ? engine.dep : 1, engine.max_requests_per_rank, [&](double requests, RankBatch& batch) {
    batch.decode_tokens = requests * queries;
    batch.decode_requests = requests;
    batch.decode_context = requests * queries;
    batch.decode_query_context = requests * queries * queries;
    batch.draft_requests = speculation.draft_tokens > 0 ? requests : 0;
    return requests * acceptance.mean();
  });
}

}  // namespace

double most_tokens_per_s(const Scenario& s, const Catalog& catalog, const TokenMix& mix) {
  const DeploymentSpec& d = s.deployment;
  double most = std::numeric_limits<double>::infinity();
  const auto model_of = [&](const EngineSpec& engine) { return make_step_model(s.model, s.rack, engine, d, catalog); };
  for (const auto& pool : {d.prefill, d.aggregated}) {
    if (!pool || pool->engines == 0 || mix.cache_hit >= 1 || mix.output_share >= 1) continue;
    const double computed = pool->engines * prompt_rate(*model_of(*pool), *pool);
    most = std::min(most, computed / (1 - mix.cache_hit) / (1 - mix.output_share));
  }
  for (const auto& pool : {d.decode, d.aggregated}) {
    if (!pool || pool->engines == 0 || mix.output_share <= 0) continue;
    most = std::min(most, pool->engines * answer_rate(*model_of(*pool), *pool, d.speculation) / mix.output_share);
  }
  return most;
}

}  // namespace rackcast
