#include "kernels/latent_splits.hpp"

#include <algorithm>

namespace rackcast::kernels {

SplitPlan plan_splits(int groups, int keys, int sm_count) {
  // In units of one block's time: what starting and finishing an item costs, writing a partial result, the combine kernel.
  constexpr double per_item = 1.5, per_partial = 1.5, combine = 4;
  const int pairs = std::max(1, (keys + 127) / 128);
  SplitPlan best;
  double best_cost = 0;
  for (int splits = 1; splits <= std::min(pairs, 128); ++splits) {
    const int blocks = (pairs + splits - 1) / splits * 2;
    const int used = (2 * pairs + blocks - 1) / blocks;  // without empty ones
    const int waves = (groups * used + sm_count - 1) / sm_count;
    const double cost = waves * (blocks + per_item + (used > 1 ? per_partial : 0)) + (used > 1 ? combine : 0);
    if (splits == 1 || cost < best_cost) {
      best_cost = cost;
      best = {used, blocks};
    }
  }
  return best;
}

}  // namespace rackcast::kernels
