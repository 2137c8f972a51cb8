// The expert side of a layer on one GPU as one chain of kernels: router, positions, scatter, up, down, unpermute. What it
// takes beyond the sum of its parts is what a layer's graph costs or hides. No all-to-all and no shared expert.
#include "kernels/family.hpp"

namespace rackcast::kernels {
namespace {

class MoeLayer final : public Family {
 public:
  std::string name() const override { return "moe_layer"; }
  std::string summary() const override { return "composite: router, permute, grouped products, unpermute of one layer"; }
  std::string math(const Shape&) const override { return "fp8"; }
  std::vector<Axis> axes() const override {
    return {{"tokens", "tokens"}, {"hidden", "H, the model's width"}, {"inter", "I, an expert's width"}, {"experts", "experts, all on this GPU"},
            {"top_k", "experts a token"}, {"weights", "fp8 or mxfp4"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    const auto add = [&](int tokens, int hidden, int inter, int experts, int top_k, const char* weights) {
      shapes.push_back(Shape().set("tokens", tokens).set("hidden", hidden).set("inter", inter).set("experts", experts).set("top_k", top_k).set("weights", weights));
    };
    if (grid == Grid::bench) return shapes;
    if (grid == Grid::sanitize) {
      add(5, 512, 256, 16, 3, "fp8");
      add(70, 512, 256, 16, 3, "mxfp4");
      return shapes;
    }
    for (const int tokens : {1, 16, 96, 512}) {
      add(tokens, 4096, 2048, 32, 6, "fp8");
      add(tokens, 5120, 2304, 12, 6, "mxfp4");
    }
    if (grid == Grid::full)
      for (const int tokens : {4, 64, 256, 1024, 4096}) {
        add(tokens, 4096, 2048, 32, 6, "fp8");
        add(tokens, 5120, 2304, 12, 6, "mxfp4");
        add(tokens, 4096, 2048, 256, 6, "fp8");
      }
    return unique(shapes);
  }
  // Experts touched: the expected number for independent choices; the drawn one is in the measurement.
  Work work(const Shape& shape) const override {
    const auto tokens = static_cast<double>(shape.number("tokens")), hidden = static_cast<double>(shape.number("hidden")), inter = static_cast<double>(shape.number("inter"));
    const auto experts = static_cast<double>(shape.number("experts")), top_k = static_cast<double>(shape.number("top_k"));
    double untouched = experts;
    for (int token = 0; token < shape.number("tokens"); ++token) untouched *= 1 - top_k / experts;
    Work work;
    work.touched = experts - untouched;
    work.flop = tokens * (2 * hidden * experts + top_k * 6 * hidden * inter);
    work.bytes_hbm = work.touched * 3 * hidden * inter * (shape.text("weights") == "mxfp4" ? 17.0 / 32 : 1) + 2 * hidden * experts + tokens * 4 * hidden;
    return work;
  }
};

}  // namespace

const Family& moe_layer_family() {
  static const MoeLayer family;
  return family;
}

}  // namespace rackcast::kernels
