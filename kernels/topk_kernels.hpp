// The top-k selection as a launch; for topk.cu and the composites.
#pragma once
#include <cstdint>

#include "kernels/launcher.hpp"
#include "kernels/topk.hpp"

namespace rackcast::kernels {

struct TopkParams {
  const float* scores = nullptr;  // [rows][stride]
  std::int64_t stride = 0;
  int rows = 0;
  int count = 0;                  // scores of a row
  int group = 1;                  // 1 or 8
  int k = 0;
  std::int32_t* chosen = nullptr; // [rows][k]
};

// CTAs that share a row; recorded as the case's detail.
int topk_cluster(const TopkParams& params, int sm_count);
void topk_select(const TopkParams& params, int cluster, Stream stream);

}  // namespace rackcast::kernels
