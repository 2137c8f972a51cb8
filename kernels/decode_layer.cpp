// One decode layer on one rank as one graph: attention side, router, permutation, local experts, shared expert. The
// all-to-all is not in it: experts get the rows that a balanced layer brings them.
#include <algorithm>

#include "kernels/composite.hpp"

namespace rackcast::kernels {
namespace {

Shape shape_of(const char* model, std::int64_t tokens, std::int64_t context, std::int64_t ranks) {
  return Shape().set("model", model).set("tokens", tokens).set("context", context).set("ranks", ranks);
}

class DecodeLayer final : public CompositeFamily {
 public:
  std::string name() const override { return "decode_layer"; }
  std::string summary() const override { return "one decode layer of a rank as one graph, without the all-to-all"; }
  std::vector<Axis> axes() const override {
    return {{"model", "v4-flash or v4.1-flash"},
            {"tokens", "tokens of the step on this rank, one a request"},
            {"context", "tokens of context of every request"},
            {"ranks", "ranks of the engine: each holds experts / ranks experts"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    if (grid == Grid::bench) return {};
    if (grid == Grid::sanitize) return {shape_of("v4-flash", 2, 4096, 32)};
    const bool full = grid == Grid::full;
    for (const char* model : {"v4-flash", "v4.1-flash"})
      for (const std::int64_t tokens : full ? std::vector<std::int64_t>{1, 8, 32, 64, 128, 256} : std::vector<std::int64_t>{1, 64, 256})
        for (const std::int64_t ranks : full ? std::vector<std::int64_t>{8, 32} : std::vector<std::int64_t>{8}) shapes.push_back(shape_of(model, tokens, 16384, ranks));
    return shapes;
  }
  std::vector<Part> parts(const Shape& shape) const override {
    const LayerShapes layer = layer_shapes(shape.text("model"));
    const std::int64_t tokens = shape.number("tokens"), local = layer.experts / shape.number("ranks"), rows = 6 * tokens;
    std::vector<Part> parts = attention_parts(layer, tokens, shape.number("context"), true);
    const auto permute = [&](const char* part) {
      parts.push_back({"permute", Shape().set("part", part).set("tokens", tokens).set("hidden", layer.hidden).set("experts", layer.experts).set("top_k", 6)
                                      .set("spread", "balanced").set("align", 8)});
    };
    const auto dense = [&](std::int64_t k, std::int64_t n) {
      parts.push_back({"dense", Shape().set("m", (tokens + 3) / 4 * 4).set("n", n).set("k", k).set("batch", 1).set("math", "fp8_block")});
    };
    parts.push_back({"small", Shape().set("op", "mhc_pre").set("tokens", tokens).set("size", layer.hidden)});
    parts.push_back({"route", Shape().set("tokens", tokens).set("hidden", layer.hidden).set("experts", layer.experts).set("top_k", 6)});
    permute("permute");
    parts.push_back({"moe_gemm", Shape().set("part", "both").set("hidden", layer.hidden).set("inter", layer.inter).set("experts", local).set("rows", rows)
                                     .set("spread", "equal").set("weights", "mxfp4").set("layout", "masked")});
    permute("unpermute");
    dense(layer.hidden, 2 * layer.inter);  // shared expert
    dense(layer.inter, layer.hidden);
    parts.push_back({"small", Shape().set("op", "mhc_post").set("tokens", tokens).set("size", layer.hidden)});
    return parts;
  }
};

}  // namespace

const Family& decode_layer_family() {
  static const DecodeLayer family;
  return family;
}

}  // namespace rackcast::kernels
