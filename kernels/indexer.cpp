#include "kernels/indexer.hpp"

#include <algorithm>

namespace rackcast::kernels {

double indexer_reference(std::span<const double> query, std::span<const double> weights, std::span<const double> key, double key_scale) {
  double logit = 0;
  for (std::size_t h = 0; h < weights.size(); ++h) {
    double dot = 0;
    for (std::size_t d = 0; d < key.size(); ++d) dot += query[h * key.size() + d] * key[d];
    logit += weights[h] * std::max(dot, 0.0);
  }
  return key_scale * logit;
}

namespace {

Shape shape_of(std::int64_t requests, std::int64_t query_tokens, std::int64_t keys, std::int64_t heads = 64, const char* form = "dense",
               const char* format = "fp8") {
  return Shape().set("requests", requests).set("query_tokens", query_tokens).set("keys", keys).set("heads", heads).set("form", form)
      .set("format", format);
}

class Indexer final : public Family {
 public:
  std::string name() const override { return "indexer"; }
  std::string summary() const override { return "index logits in fp8: ReLU of q.k, weighted sum over heads"; }
  std::string math(const Shape&) const override { return "fp8"; }
  std::vector<Axis> axes() const override {
    return {{"requests", "requests in the launch, each with its own keys"},
            {"query_tokens", "query tokens of a request"},
            {"keys", "keys of a request; sparse: keys gathered a token"},
            {"heads", "64 (V4) or 32 (V4.1)"},
            {"form", "dense, or sparse: every token has its own blocks of 8 keys"},
            {"format", "of the keys: fp8 (132 B) or fp4 (68 B)"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    if (grid == Grid::sanitize) return {shape_of(1, 1, 200), shape_of(2, 5, 130, 32), shape_of(1, 9, 64), shape_of(1, 3, 128, 32, "sparse"),
                                         shape_of(1, 1, 200, 64, "dense", "fp4"), shape_of(2, 5, 130, 32, "dense", "fp4"), shape_of(1, 3, 128, 32, "sparse", "fp4")};
    if (grid == Grid::bench) {
      for (const Bar& bar : bars()) shapes.push_back(bar.shape);
      return shapes;
    }
    const bool full = grid == Grid::full;
    const auto requests = full ? std::vector<std::int64_t>{1, 4, 16, 64, 128} : std::vector<std::int64_t>{1, 16, 128};
    const auto tokens = full ? std::vector<std::int64_t>{1, 2, 4, 6} : std::vector<std::int64_t>{1, 6};
    const auto keys = full ? std::vector<std::int64_t>{2048, 8192, 32768, 131072, 262144, 1048576} : std::vector<std::int64_t>{2048, 32768, 262144};
    for (const std::int64_t r : requests)
      for (const std::int64_t t : tokens)
        for (const std::int64_t k : keys)
          for (const std::int64_t h : {64, 32})
            if (r * k <= 16'777'216 && (full || h == 64 || t == 6)) shapes.push_back(shape_of(r, t, k, h));
    for (const std::int64_t t : full ? std::vector<std::int64_t>{512, 2048, 4096, 8192} : std::vector<std::int64_t>{512, 4096})
      for (const std::int64_t k : full ? std::vector<std::int64_t>{2048, 8192, 32768, 131072, 262144} : std::vector<std::int64_t>{8192, 32768})
        for (const std::int64_t h : {64, 32})
          if (t * k <= 1'073'741'824) shapes.push_back(shape_of(1, t, k, h));
    for (const std::int64_t t : full ? std::vector<std::int64_t>{1, 16, 64, 128, 256, 512} : std::vector<std::int64_t>{1, 64, 256})
      shapes.push_back(shape_of(1, t, 16384, 32, "sparse"));
    shapes.push_back(shape_of(3, 5, 1001));
    for (const std::int64_t r : requests)
      for (const std::int64_t k : keys)
        if (r * k <= 16'777'216) shapes.push_back(shape_of(r, 1, k, 64, "dense", "fp4"));
    for (const std::int64_t t : full ? std::vector<std::int64_t>{6, 512, 4096} : std::vector<std::int64_t>{4096}) shapes.push_back(shape_of(1, t, 32768, 64, "dense", "fp4"));
    for (const std::int64_t t : full ? std::vector<std::int64_t>{1, 64, 256} : std::vector<std::int64_t>{64}) shapes.push_back(shape_of(1, t, 16384, 32, "sparse", "fp4"));
    return unique(shapes);
  }
  Work work(const Shape& shape) const override {
    const double requests = static_cast<double>(shape.number("requests")), tokens = static_cast<double>(shape.number("query_tokens"));
    const double keys = static_cast<double>(shape.number("keys")), heads = static_cast<double>(shape.number("heads"));
    const bool sparse = shape.text("form") == "sparse";
    Work work;
    work.flop = 2 * index_dims * heads * requests * tokens * keys;
    const double key_reads = requests * keys * (sparse ? tokens : 1);
    work.bytes_hbm = key_reads * index_key_bytes(shape.text("format") == "fp4") + requests * tokens * (heads * (index_dims + 4) + keys * 4);
    if (sparse) {
      work.touched = requests * tokens * keys / index_block;
      work.bytes_hbm += work.touched * 4;
    }
    return work;
  }
  std::vector<Bar> bars() const override {
    return {{shape_of(1, 4096, 32768), "cold", Quantity::tflops, 750, 850, "854 TFLOPS H200 (AIC)"},
            {shape_of(1, 1, 32768), "cold", Quantity::microseconds, 8, 6.3, "3.8-6.3 us floor H200 (AIC)"},
            {shape_of(64, 1, 32768), "cold", Quantity::hbm_gb_s, 0.60 * 4300, 0.70 * 4300, ""}};
  }
};

}  // namespace

const Family& indexer_family() {
  static const Indexer family;
  return family;
}

}  // namespace rackcast::kernels
