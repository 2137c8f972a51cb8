// Which tile of which expert a CTA of the grouped product works on next. A tile is 256 weight rows times up to MaxTokens
// token rows. CTAs take work items round robin; with clusters, an item is two tiles that share an operand:
//   weights shared: one weight tile, two token tiles; tokens shared: one token tile, two weight tiles.
// Pairs of token tiles come first, an odd last one follows; so no CTA of a pair ever idles.
#pragma once
#include <cstdint>

namespace rackcast::kernels {

constexpr int max_experts = 512;
constexpr int tile_rows = 256;

struct GroupedTile {
  int expert = 0;
  int weight_tile = 0;
  int token_row = 0;  // absolute
  int tokens = 0;     // valid ones, 1..MaxTokens
  bool share_weights = false;
};

// In shared memory, one entry an expert.
struct GroupedPlan {
  int first[max_experts + 4];  // running sum of items
  int count[max_experts];
  int offset[max_experts];
};

template <int Cluster, int MaxTokens>
class GroupedSchedule {
 public:
  // One warp fills the plan; the caller synchronises.
  __device__ static void fill(GroupedPlan& plan, const int* offset, const int* count, int experts, int weight_tiles) {
    const int lane = threadIdx.x % 32;
    int before = 0;
    for (int base = 0; base < experts; base += 32) {
      const int expert = base + lane;
      const int tokens = expert < experts ? count[expert] : 0;
      int sum = (tokens + MaxTokens - 1) / MaxTokens * weight_tiles / Cluster;
      for (int step = 1; step < 32; step <<= 1) {
        const int other = __shfl_up_sync(0xffffffffu, sum, step);
        if (lane >= step) sum += other;
      }
      if (expert < experts) {
        plan.first[expert + 1] = before + sum;
        plan.count[expert] = tokens;
        plan.offset[expert] = offset[expert];
      }
      before += __shfl_sync(0xffffffffu, sum, 31);
    }
    if (lane == 0) plan.first[0] = 0;
  }

  __device__ GroupedSchedule(const GroupedPlan& plan, int experts, int weight_tiles, int rank)
      : plan_(plan), weight_tiles_(weight_tiles), rank_(rank), items_(plan.first[experts]), item_(static_cast<int>(blockIdx.x) / Cluster) {}

  __device__ bool next(GroupedTile& tile) {
    if (item_ >= items_) return false;
    while (plan_.first[expert_ + 1] <= item_) ++expert_;
    const int local = item_ - plan_.first[expert_];
    const int rows = plan_.count[expert_];
    const int token_tiles = (rows + MaxTokens - 1) / MaxTokens;
    int token_tile = 0;
    tile.share_weights = false;
    if constexpr (Cluster == 1) {
      token_tile = local % token_tiles;
      tile.weight_tile = local / token_tiles;
    } else {
      const int pairs = token_tiles / 2;
      if (local < pairs * weight_tiles_) {
        tile.share_weights = true;
        token_tile = local % pairs * 2 + rank_;
        tile.weight_tile = local / pairs;
      } else {
        token_tile = token_tiles - 1;
        tile.weight_tile = (local - pairs * weight_tiles_) * 2 + rank_;
      }
    }
    tile.expert = expert_;
    tile.token_row = plan_.offset[expert_] + token_tile * MaxTokens;
    tile.tokens = min(MaxTokens, rows - token_tile * MaxTokens);
    item_ += static_cast<int>(gridDim.x) / Cluster;
    return true;
  }

 private:
  const GroupedPlan& plan_;
  int weight_tiles_, rank_, items_, item_, expert_ = 0;
};

}  // namespace rackcast::kernels
