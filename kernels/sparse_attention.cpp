#include "kernels/sparse_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.hpp"

namespace rackcast::kernels {

KvFormat kv_format(const std::string& name) {
  if (name == "bf16") return KvFormat::bf16;
  if (name == "v4") return KvFormat::v4;
  RACKCAST_CHECK(name == "v41", "KV format " + name);
  return KvFormat::v41;
}

double kv_row_bytes(KvFormat format, bool selected) {
  if (format == KvFormat::bf16) return 1024;
  if (format == KvFormat::v4) return 584;
  return selected ? 288 : 528;
}

AttentionRow attention_reference(std::span<const double> query, std::span<const double> keys, std::span<const double> values,
                                 std::size_t value_dims, double scale, double sink) {
  const std::size_t dims = query.size(), rows = keys.size() / dims, value_stride = rows ? values.size() / rows : 0;
  AttentionRow result;
  result.out.assign(value_dims, 0.0);
  std::vector<double> logits(rows);
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < rows; ++k) {
    double dot = 0;
    for (std::size_t d = 0; d < dims; ++d) dot += query[d] * keys[k * dims + d];
    logits[k] = scale * dot;
    largest = std::max(largest, logits[k]);
  }
  double sum = 0;
  for (std::size_t k = 0; k < rows; ++k) {
    const double p = std::exp(logits[k] - largest);
    sum += p;
    for (std::size_t d = 0; d < value_dims; ++d) result.out[d] += p * values[k * value_stride + d];
  }
  result.lse = rows ? largest + std::log(sum) : -std::numeric_limits<double>::infinity();
  if (rows)
    for (double& value : result.out) value /= sum + std::exp(sink - largest);
  return result;
}

namespace {

Shape shape_of(std::int64_t tokens, std::int64_t selected, const char* format = "v4", const char* rows = "rows",
               std::int64_t query_tokens = 1, const char* phase = "decode", const char* lengths = "full") {
  return Shape().set("tokens", tokens).set("window", 128).set("selected", selected).set("format", format).set("locality", rows)
      .set("query_tokens", query_tokens).set("phase", phase).set("lengths", lengths);
}

class SparseAttention final : public Family {
 public:
  std::string name() const override { return "sparse_attention"; }
  std::string summary() const override { return "attention over a window and selected latent rows, 64 heads x 512"; }
  std::string math(const Shape&) const override { return "bf16"; }
  std::vector<Axis> axes() const override {
    return {{"tokens", "query tokens in the launch"},
            {"window", "rows of the sliding window"},
            {"selected", "rows of the top-k selection, or all compressed rows"},
            {"format", "bf16, v4 (584 B) or v41 (528/288 B)"},
            {"locality", "selected rows lie anywhere (rows), in whole pages (pages) or in one run (contiguous)"},
            {"query_tokens", "tokens of one request (1 + draft)"},
            {"phase", "decode: every request has its own context; prefill: all tokens share one"},
            {"lengths", "full, or ragged: tokens use a random part of their rows, the first none"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    if (grid == Grid::sanitize) {
      for (const char* format : {"bf16", "v4", "v41"}) {
        shapes.push_back(shape_of(1, 512, format));
        shapes.push_back(shape_of(3, 64, format, "rows", 1, "decode", "ragged"));
        shapes.push_back(shape_of(140, 128, format, "rows", 1, "prefill"));
      }
      return shapes;
    }
    if (grid == Grid::bench) {
      for (const Bar& bar : bars()) shapes.push_back(bar.shape);
      return unique(shapes);
    }
    const bool full = grid == Grid::full;
    const std::vector<std::int64_t> tokens = full ? std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024}
                                                  : std::vector<std::int64_t>{1, 4, 16, 64, 128, 256, 512};
    const std::vector<std::int64_t> selected = full ? std::vector<std::int64_t>{0, 128, 512, 1024} : std::vector<std::int64_t>{0, 512};
    for (const char* format : {"v4", "v41", "bf16"})
      for (const std::int64_t t : tokens)
        for (const std::int64_t s : selected)
          if (full || format != std::string("bf16")) shapes.push_back(shape_of(t, s, format));
    for (const std::int64_t t : {1, 16, 128}) shapes.push_back(shape_of(t, 8192, "v4", "contiguous"));
    for (const std::int64_t t : full ? std::vector<std::int64_t>{512, 1024, 2048, 4096, 8192, 16384} : std::vector<std::int64_t>{512, 4096})
      for (const char* format : {"bf16", "v4", "v41"}) shapes.push_back(shape_of(t, 512, format, "rows", 1, "prefill"));
    for (const std::int64_t q : {2, 4, 6}) shapes.push_back(shape_of(16 * q, 512, "v4", "rows", q));
    for (const char* locality : {"pages", "contiguous"}) shapes.push_back(shape_of(256, 512, "v4", locality));
    shapes.push_back(shape_of(37, 512, "v4", "rows", 1, "decode", "ragged"));
    return unique(shapes);
  }
  Work work(const Shape& shape) const override {
    const KvFormat format = kv_format(shape.text("format"));
    const double tokens = static_cast<double>(shape.number("tokens"));
    const double window = static_cast<double>(shape.number("window")), selected = static_cast<double>(shape.number("selected"));
    const double row = window * kv_row_bytes(format, false) + selected * kv_row_bytes(format, true);
    Work work;
    work.flop = tokens * latent_heads * (window + selected) * 2 * 2 * latent_dims;  // q.k and p.v
    const double query_and_out = tokens * latent_heads * (latent_dims * 2 * 2 + 4);
    const double indices = tokens * (window + selected) * 4;
    // Prefill: tokens share their context; at most the pool is read once. Otherwise every token reads its own rows.
    const double rows = shape.text("phase") == "prefill"
                            ? std::min(tokens * row, (tokens + window) * kv_row_bytes(format, false) + static_cast<double>(prefill_pool_rows) * kv_row_bytes(format, true))
                            : tokens * row;
    work.bytes_hbm = query_and_out + indices + rows;
    return work;
  }
  std::vector<Bar> bars() const override {
    std::vector<Bar> bars;
    for (const std::int64_t t : {256, 384, 512})
      bars.push_back({shape_of(t, 512), "cold", Quantity::tflops, 300, 400, "410 TFLOPS H800, 128 heads, 2048 keys (FlashMLA)"});
    bars.push_back({shape_of(1, 512), "cold", Quantity::microseconds, 18, 12, "13.5-15 us H200 (AIC)"});
    bars.push_back({shape_of(4096, 512, "bf16", "rows", 1, "prefill"), "cold", Quantity::tflops, 450, 600, "640 TFLOPS H800 (FlashMLA)"});
    bars.push_back({shape_of(8192, 512, "bf16", "rows", 1, "prefill"), "cold", Quantity::tflops, 450, 600, "534 TFLOPS H200 median (AIC)"});
    return bars;
  }
};

}  // namespace

const Family& sparse_attention_family() {
  static const SparseAttention family;
  return family;
}

}  // namespace rackcast::kernels
