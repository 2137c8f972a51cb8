#include "kernels/route.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/family.hpp"

namespace rackcast::kernels {

double route_score(double logit) { return std::sqrt(logit > 30 ? logit : std::log1p(std::exp(logit))); }

Routing reference_route(const std::vector<double>& logits, const std::vector<double>& bias, int top_k) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](std::int32_t e) { return route_score(logits[static_cast<std::size_t>(e)]) + bias[static_cast<std::size_t>(e)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return value(a) > value(b); });
  order.resize(static_cast<std::size_t>(top_k));
  Routing routing{order, {}};
  double sum = 0;
  for (const std::int32_t e : order) sum += route_score(logits[static_cast<std::size_t>(e)]);
  for (const std::int32_t e : order) routing.weights.push_back(1.5 * route_score(logits[static_cast<std::size_t>(e)]) / sum);
  return routing;
}

namespace {

class Route final : public Family {
 public:
  std::string name() const override { return "route"; }
  std::string summary() const override { return "router product, scores, top experts and their weights"; }
  std::string math(const Shape&) const override { return "bf16"; }
  std::vector<Axis> axes() const override {
    return {{"tokens", "tokens"}, {"hidden", "H, the model's width"}, {"experts", "routed experts"}, {"top_k", "experts a token"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    const auto add = [&](int tokens, int hidden, int experts, int top_k) {
      shapes.push_back(Shape().set("tokens", tokens).set("hidden", hidden).set("experts", experts).set("top_k", top_k));
    };
    if (grid == Grid::bench) return shapes;
    if (grid == Grid::sanitize) {
      for (const int tokens : {1, 33}) add(tokens, 256, 40, 6);
      return shapes;
    }
    for (const int tokens : {1, 16, 96, 512, 4096}) add(tokens, 5120, 384, 6);
    if (grid == Grid::full)
      for (int tokens = 1; tokens <= 16384; tokens *= 2) {
        add(tokens, 5120, 384, 6);
        add(tokens, 4096, 256, 6);
        add(tokens, 5120, 128, 3);
      }
    return unique(shapes);
  }
  Work work(const Shape& shape) const override {
    const auto tokens = static_cast<double>(shape.number("tokens")), hidden = static_cast<double>(shape.number("hidden"));
    const auto experts = static_cast<double>(shape.number("experts")), top_k = static_cast<double>(shape.number("top_k"));
    Work work;
    work.flop = 2 * tokens * hidden * experts;
    work.bytes_hbm = 2 * hidden * experts + tokens * (2 * hidden + 8 * top_k);
    return work;
  }
};

}  // namespace

const Family& route_family() {
  static const Route family;
  return family;
}

}  // namespace rackcast::kernels
