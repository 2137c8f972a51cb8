#include "kernels/mla_attention.hpp"

#include <algorithm>

namespace rackcast::kernels {

double mla_visible_rows(double context, double query_tokens) {
  return query_tokens * context - query_tokens * (query_tokens - 1) / 2;
}

namespace {

Shape shape_of(std::int64_t requests, std::int64_t context, std::int64_t heads = 128, std::int64_t query_tokens = 1, const char* lengths = "full") {
  return Shape().set("requests", requests).set("context", context).set("heads", heads).set("query_tokens", query_tokens).set("lengths", lengths);
}

class MlaAttention final : public Family {
 public:
  std::string name() const override { return "mla_attention"; }
  std::string summary() const override { return "dense latent attention, absorbed, bf16, 576/512, causal"; }
  std::string math(const Shape&) const override { return "bf16"; }
  std::vector<Axis> axes() const override {
    return {{"requests", "requests in the launch, each with its own KV"},
            {"context", "KV rows of a request, its query tokens included"},
            {"heads", "query heads on this GPU"},
            {"query_tokens", "query tokens of a request: 1 decode, 2-6 verify, hundreds prefill"},
            {"lengths", "full, or ragged: request r has context * (r + 1) / requests rows"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    if (grid == Grid::sanitize) return {shape_of(1, 100, 16), shape_of(2, 300, 128, 2), shape_of(3, 129, 16, 5, "ragged"), shape_of(1, 150, 64, 130)};
    if (grid == Grid::bench) {
      for (const Bar& bar : bars()) shapes.push_back(bar.shape);
      return unique(shapes);
    }
    const bool full = grid == Grid::full;
    const auto requests = full ? std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256} : std::vector<std::int64_t>{1, 8, 64, 128};
    const auto contexts = full ? std::vector<std::int64_t>{512, 1024, 4096, 8192, 32768, 131072} : std::vector<std::int64_t>{1024, 4096, 32768};
    const auto heads = full ? std::vector<std::int64_t>{16, 64, 128} : std::vector<std::int64_t>{16, 128};
    for (const std::int64_t r : requests)
      for (const std::int64_t c : contexts)
        for (const std::int64_t h : heads)
          if (r * c <= 4'194'304) shapes.push_back(shape_of(r, c, h));
    for (const std::int64_t q : {2, 4, 6}) shapes.push_back(shape_of(32, 4096, 128, q));
    for (const std::int64_t c : {2048, 8192}) shapes.push_back(shape_of(1, c, 128, 2048));
    shapes.push_back(shape_of(33, 4000, 128, 2, "ragged"));
    for (const Bar& bar : bars()) shapes.push_back(bar.shape);
    return unique(shapes);
  }
  Work work(const Shape& shape) const override {
    const std::int64_t requests = shape.number("requests"), context = shape.number("context"), least = shape.number("query_tokens");
    const double heads = static_cast<double>(shape.number("heads")), query_tokens = static_cast<double>(least);
    const bool ragged = shape.text("lengths") == "ragged";
    double visible = 0, rows = 0;
    for (std::int64_t r = 0; r < requests; ++r) {
      const auto length = static_cast<double>(std::max(ragged ? context * (r + 1) / requests : context, least));
      visible += mla_visible_rows(length, query_tokens);
      rows += length;
    }
    Work work;
    work.flop = visible * heads * 2 * (mla_qk_dims + mla_value_dims);
    const std::int64_t tiles = (static_cast<std::int64_t>(heads * query_tokens) + 63) / 64;  // of 64 rows
    const double tile_rows = static_cast<double>(tiles * 64);
    work.flop_padded = work.flop * tile_rows / (heads * query_tokens);
    work.bytes_hbm = rows * mla_qk_dims * 2 + static_cast<double>(requests) * query_tokens * heads * (mla_qk_dims * 2 + mla_value_dims * 2 + 4);
    return work;
  }
  std::vector<Bar> bars() const override {
    return {{shape_of(128, 8192, 16), "cold", Quantity::hbm_gb_s, 0.85 * 4300, 0.90 * 4300, "3000 GB/s H800, 90% of 3.35 TB/s (FlashMLA)"},
            {shape_of(128, 8192, 128, 2), "cold", Quantity::tflops, 500, 620, "660 TFLOPS H800 (FlashMLA)"}};
  }
};

}  // namespace

const Family& mla_attention_family() {
  static const MlaAttention family;
  return family;
}

}  // namespace rackcast::kernels
