// The attention side of one decode layer as one graph.
#include "kernels/composite.hpp"

namespace rackcast::kernels {
namespace {

Shape shape_of(const char* model, std::int64_t tokens, std::int64_t context, const char* index) {
  return Shape().set("model", model).set("tokens", tokens).set("context", context).set("index", index);
}

class AttentionLayer final : public CompositeFamily {
 public:
  std::string name() const override { return "attention_layer"; }
  std::string summary() const override { return "attention side of one decode layer as one graph: projections, index, top-k, core"; }
  std::vector<Axis> axes() const override {
    return {{"model", "v4-flash or v4.1-flash"},
            {"tokens", "tokens of the step on this GPU, one a request"},
            {"context", "tokens of context of every request"},
            {"index", "own: the layer computes index logits and top-k; reused: it takes another layer's selection"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    if (grid == Grid::bench) return {};
    if (grid == Grid::sanitize) return {shape_of("v4-flash", 2, 4096, "own")};
    const bool full = grid == Grid::full;
    for (const char* model : {"v4-flash", "v4.1-flash"})
      for (const std::int64_t tokens : full ? std::vector<std::int64_t>{1, 8, 32, 64, 128, 256, 512} : std::vector<std::int64_t>{1, 32, 256}) {
        for (const std::int64_t context : full ? std::vector<std::int64_t>{4096, 16384, 65536, 131072} : std::vector<std::int64_t>{4096, 65536})
          if (tokens * context <= 16'777'216) shapes.push_back(shape_of(model, tokens, context, "own"));
        shapes.push_back(shape_of(model, tokens, 4096, "reused"));
      }
    return shapes;
  }
  std::vector<Part> parts(const Shape& shape) const override {
    return attention_parts(layer_shapes(shape.text("model")), shape.number("tokens"), shape.number("context"), shape.text("index") == "own");
  }
};

}  // namespace

const Family& attention_layer_family() {
  static const AttentionLayer family;
  return family;
}

}  // namespace rackcast::kernels
