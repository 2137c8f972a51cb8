#include "kernels/topk.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace rackcast::kernels {

std::string topk_problem(std::span<const float> scores, int group, std::span<const std::int32_t> chosen, int k) {
  const std::size_t candidates = scores.size() / static_cast<std::size_t>(group);
  std::vector<float> values(candidates);
  for (std::size_t c = 0; c < candidates; ++c)
    values[c] = *std::max_element(scores.begin() + static_cast<std::ptrdiff_t>(c * static_cast<std::size_t>(group)),
                                  scores.begin() + static_cast<std::ptrdiff_t>((c + 1) * static_cast<std::size_t>(group)));
  const std::size_t expected = std::min(static_cast<std::size_t>(k), candidates);
  std::vector<bool> taken(candidates, false);
  std::vector<float> got;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (i >= expected) {
      if (chosen[i] != -1) return "a place beyond the candidates is not -1";
      continue;
    }
    if (chosen[i] < 0 || static_cast<std::size_t>(chosen[i]) >= candidates) return "index " + std::to_string(chosen[i]) + " is no candidate";
    if (taken[static_cast<std::size_t>(chosen[i])]) return "index " + std::to_string(chosen[i]) + " is chosen twice";
    taken[static_cast<std::size_t>(chosen[i])] = true;
    got.push_back(values[static_cast<std::size_t>(chosen[i])]);
  }
  if (got.size() != expected) return "too few indices";
  if (expected == 0) return "";
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(expected - 1), values.end(), std::greater<>());
  const float threshold = values[expected - 1];
  return *std::min_element(got.begin(), got.end()) >= threshold ? "" : "a larger score was left out";
}

namespace {

Shape shape_of(std::int64_t rows, std::int64_t scores, std::int64_t k = 512, const char* distribution = "gaussian", std::int64_t group = 1) {
  return Shape().set("rows", rows).set("scores", scores).set("k", k).set("distribution", distribution).set("group", group);
}

class TopK final : public Family {
 public:
  std::string name() const override { return "topk"; }
  std::string summary() const override { return "indices of the k largest scores of each row (radix selection)"; }
  std::string math(const Shape&) const override { return "none"; }
  std::vector<Axis> axes() const override {
    return {{"rows", "query tokens"},
            {"scores", "fp32 scores of a row"},
            {"k", "how many to select"},
            {"distribution", "gaussian, ties (all equal) or ascending"},
            {"group", "1, or 8: candidates are maxima of 8 neighbours"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    if (grid == Grid::sanitize)
      return {shape_of(1, 1000), shape_of(3, 5000, 512, "ties"), shape_of(1, 40000), shape_of(1, 300), shape_of(2, 20001, 2048, "ascending"), shape_of(1, 32768, 1024, "gaussian", 8)};
    if (grid == Grid::bench) {
      for (const Bar& bar : bars()) shapes.push_back(bar.shape);
      return shapes;
    }
    const bool full = grid == Grid::full;
    const auto rows = full ? std::vector<std::int64_t>{1, 16, 64, 96, 384, 4096} : std::vector<std::int64_t>{1, 16, 96, 4096};
    const auto scores = full ? std::vector<std::int64_t>{2048, 16384, 32768, 131072, 262144, 1048576} : std::vector<std::int64_t>{2048, 32768, 262144};
    for (const std::int64_t r : rows)
      for (const std::int64_t n : scores) {
        if (r * n > 1'073'741'824) continue;
        for (const std::int64_t k : full ? std::vector<std::int64_t>{512, 1024, 2048} : std::vector<std::int64_t>{512}) shapes.push_back(shape_of(r, n, k));
        if (r == 1 || full)
          for (const char* distribution : {"ties", "ascending"}) shapes.push_back(shape_of(r, n, 512, distribution));
      }
    for (const std::int64_t r : {1, 16, 96}) shapes.push_back(shape_of(r, 131072, 2048, "gaussian", 8));
    shapes.push_back(shape_of(1, 1048576));
    shapes.push_back(shape_of(7, 10007, 512));
    return unique(shapes);
  }
  Work work(const Shape& shape) const override {
    const double rows = static_cast<double>(shape.number("rows"));
    Work work;
    work.bytes_hbm = rows * 4 * static_cast<double>(shape.number("scores") + shape.number("k"));
    return work;
  }
  std::vector<Bar> bars() const override {
    return {{shape_of(1, 32768), "cold", Quantity::microseconds, 15, 9, "8.5-9.0 us H200 (AIC, cooperative)"},
            {shape_of(1, 262144), "cold", Quantity::microseconds, 25, 15, "13-16 us H200 (AIC, cooperative)"}};
  }
};

}  // namespace

const Family& topk_family() {
  static const TopK family;
  return family;
}

}  // namespace rackcast::kernels
