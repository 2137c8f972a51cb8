// Drafting and sampling of one step on one rank as one graph, without the all-to-all. Two kinds:
//   mtp     V4-Flash: `steps` times a layer over a window, with the model's experts and head, one token a request
//   dspark  V4.1-Flash: projection of the rows that were verified, cache rows of three stages, three stages over blocks of
//           `steps` rows a request with experts of their own, head, then `steps` sequential samplings with a Markov bias
#include "kernels/composite.hpp"

namespace rackcast::kernels {
namespace {

Shape shape_of(const char* kind, std::int64_t requests, std::int64_t steps, std::int64_t ranks) {
  return Shape().set("kind", kind).set("requests", requests).set("steps", steps).set("ranks", ranks);
}

struct Experts {
  std::int64_t count, top_k, inter;
};

// Router, permutation, local experts and shared expert: what a balanced layer brings one rank.
void add_experts(std::vector<Part>& parts, const LayerShapes& layer, const Experts& experts, std::int64_t rows, std::int64_t ranks) {
  const auto permute = [&](const char* part) {
    parts.push_back({"permute", Shape().set("part", part).set("tokens", rows).set("hidden", layer.hidden).set("experts", experts.count)
                                    .set("top_k", experts.top_k).set("spread", "balanced").set("align", 8)});
  };
  parts.push_back(small_part("mhc_pre", rows, layer.hidden));
  parts.push_back({"route", Shape().set("tokens", rows).set("hidden", layer.hidden).set("experts", experts.count).set("top_k", experts.top_k)});
  permute("permute");
  parts.push_back({"moe_gemm", Shape().set("part", "both").set("hidden", layer.hidden).set("inter", experts.inter).set("experts", experts.count / ranks)
                                   .set("rows", experts.top_k * rows).set("spread", "equal").set("weights", "mxfp4").set("layout", "masked")});
  permute("unpermute");
  parts.push_back(dense_part(rows, layer.hidden, 2 * experts.inter));
  parts.push_back(dense_part(rows, experts.inter, layer.hidden));
  parts.push_back(small_part("mhc_post", rows, layer.hidden));
}

std::vector<Part> mtp(std::int64_t requests, std::int64_t steps, std::int64_t ranks) {
  const LayerShapes layer = layer_shapes("v4-flash");
  std::vector<Part> parts;
  for (std::int64_t step = 0; step < steps; ++step) {
    parts.push_back(dense_part(requests, layer.hidden, layer.hidden));  // of the last token's embedding
    parts.push_back(dense_part(requests, layer.hidden, layer.hidden));  // of the hidden state before it
    for (Part& part : window_parts(layer, requests, 1)) parts.push_back(std::move(part));
    add_experts(parts, layer, {layer.experts, 6, layer.inter}, requests, ranks);
    parts.push_back(dense_part(requests, layer.hidden, vocabulary, "bf16"));
    parts.push_back(small_part("verify", requests, vocabulary));  // samples from the logits
  }
  return parts;
}

std::vector<Part> dspark(std::int64_t requests, std::int64_t steps, std::int64_t ranks) {
  const LayerShapes layer = layer_shapes("v4.1-flash");
  const std::int64_t verified = (steps + 1) * requests, rows = steps * requests;
  std::vector<Part> parts;
  parts.push_back(dense_part(verified, 3 * layer.hidden, layer.hidden));  // hidden states of three target layers
  for (int stage = 0; stage < 3; ++stage) {
    parts.push_back(dense_part(verified, layer.hidden, layer.latent_in));
    parts.push_back(small_part("insert", verified, 512));
  }
  for (int stage = 0; stage < 3; ++stage) {
    for (Part& part : window_parts(layer, rows, steps)) parts.push_back(std::move(part));
    add_experts(parts, layer, {128, 3, layer.inter}, rows, ranks);
  }
  parts.push_back(dense_part(rows, layer.hidden, vocabulary, "bf16"));
  for (std::int64_t step = 0; step < steps; ++step) {
    parts.push_back(dense_part(requests, 256, vocabulary, "bf16"));  // Markov bias of the token before
    parts.push_back(small_part("verify", requests, vocabulary));
  }
  parts.push_back(dense_part(rows, layer.hidden + 256, 8, "bf16"));  // confidence: one output, padded to eight
  return parts;
}

class DraftBlock final : public CompositeFamily {
 public:
  std::string name() const override { return "draft_block"; }
  std::string summary() const override { return "drafting and sampling of one step of a rank as one graph: MTP or DSpark"; }
  std::vector<Axis> axes() const override {
    return {{"kind", "mtp (V4-Flash) or dspark (V4.1-Flash)"},
            {"requests", "requests of the step on this rank"},
            {"steps", "tokens drafted a request"},
            {"ranks", "ranks of the engine: each holds experts / ranks experts"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    if (grid == Grid::bench) return {};
    if (grid == Grid::sanitize) return {};  // its parts have theirs; the head alone would take minutes
    const bool full = grid == Grid::full;
    for (const std::int64_t requests : full ? std::vector<std::int64_t>{1, 4, 16, 32, 64, 128} : std::vector<std::int64_t>{1, 16, 64}) {
      shapes.push_back(shape_of("mtp", requests, 1, 8));
      shapes.push_back(shape_of("dspark", requests, 5, 8));
      if (!full) continue;
      shapes.push_back(shape_of("mtp", requests, 3, 8));
      shapes.push_back(shape_of("mtp", requests, 1, 32));
      shapes.push_back(shape_of("dspark", requests, 5, 32));
    }
    return shapes;
  }
  std::vector<Part> parts(const Shape& shape) const override {
    const std::int64_t requests = shape.number("requests"), steps = shape.number("steps"), ranks = shape.number("ranks");
    return shape.text("kind") == "mtp" ? mtp(requests, steps, ranks) : dspark(requests, steps, ranks);
  }
};

}  // namespace

const Family& draft_block_family() {
  static const DraftBlock family;
  return family;
}

}  // namespace rackcast::kernels
