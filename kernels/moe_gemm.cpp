#include "kernels/moe_gemm.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/family.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {

std::vector<std::int32_t> draw_expert_rows(int experts, std::int64_t rows, const std::string& spread) {
  RACKCAST_CHECK(experts > 0 && rows >= 0, "bad expert rows");
  std::vector<std::int32_t> counts(static_cast<std::size_t>(experts), 0);
  const auto share_equally = [&](std::size_t first, std::int64_t amount) {
    const auto n = static_cast<std::int64_t>(counts.size() - first);
    for (std::int64_t i = 0; i < n; ++i)  // spaced evenly when there are fewer rows than experts
      counts[first + static_cast<std::size_t>(i)] += static_cast<std::int32_t>(amount * (i + 1) / n - amount * i / n);
  };
  if (spread == "equal" || experts == 1) {
    share_equally(0, rows);
  } else if (spread == "hot") {
    counts[0] = static_cast<std::int32_t>(rows / 2);
    share_equally(1, rows - rows / 2);
  } else {
    const double exponent = spread == "zipf06" ? 0.6 : spread == "zipf10" ? 1.0 : spread == "zipf14" ? 1.4 : 0.0;
    RACKCAST_CHECK(exponent > 0 || spread == "multinomial", "unknown spread " + spread);
    std::vector<double> running(counts.size());
    double sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) running[i] = sum += std::pow(static_cast<double>(i + 1), -exponent);
    std::mt19937_64 engine(0x9e3779b97f4a7c15ull);  // its output is fixed by the standard
    for (std::int64_t row = 0; row < rows; ++row) {
      const double at = static_cast<double>(engine() >> 11) * 0x1p-53 * sum;
      ++counts[static_cast<std::size_t>(std::min<std::ptrdiff_t>(std::upper_bound(running.begin(), running.end(), at) - running.begin(), experts - 1))];
    }
  }
  return counts;
}

GroupedLayout make_layout(std::vector<std::int32_t> counts, const std::string& layout) {
  const auto aligned = [](std::int32_t n) { return (n + 127) / 128 * 128; };
  GroupedLayout result;
  const std::int32_t capacity = counts.empty() ? 0 : aligned(std::max(1, *std::max_element(counts.begin(), counts.end())));
  for (const std::int32_t count : counts) {
    result.offset.push_back(static_cast<std::int32_t>(result.rows));
    result.rows += layout == "masked" ? capacity : aligned(count);
  }
  result.rows = std::max<std::int64_t>(result.rows, 128);
  result.count = std::move(counts);
  return result;
}

std::vector<double> reference_down(const std::vector<double>& x, const std::vector<double>& weights, int depth) {
  const std::size_t k = static_cast<std::size_t>(depth), rows = x.size() / k, columns = weights.size() / k;
  std::vector<double> y(rows * columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      y[r * columns + c] = std::inner_product(x.begin() + static_cast<std::ptrdiff_t>(r * k), x.begin() + static_cast<std::ptrdiff_t>((r + 1) * k),
                                              weights.begin() + static_cast<std::ptrdiff_t>(c * k), 0.0);
  return y;
}

std::vector<double> reference_up(const std::vector<double>& x, const std::vector<double>& weights, int depth) {
  const std::vector<double> product = reference_down(x, weights, depth);
  const std::size_t weight_rows = weights.size() / static_cast<std::size_t>(depth), outputs = weight_rows / 2;
  const std::size_t rows = x.size() / static_cast<std::size_t>(depth);
  std::vector<double> h(rows * outputs);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < outputs; ++i) {
      const double gate = std::min(product[r * weight_rows + static_cast<std::size_t>(gate_row(static_cast<int>(i)))], 10.0);
      const double up = std::clamp(product[r * weight_rows + static_cast<std::size_t>(up_row(static_cast<int>(i)))], -10.0, 10.0);
      h[r * outputs + i] = gate / (1 + std::exp(-gate)) * up;
    }
  return h;
}

namespace {

struct Model {
  int hidden, inter;
};
constexpr Model v4_flash{4096, 2048}, v41_flash{5120, 2304}, v4_pro{7168, 3072}, r1{7168, 2048};

Shape point(const char* part, Model model, int experts, double rows_per_expert, const char* spread, const char* weights, const char* layout) {
  return Shape()
      .set("part", part)
      .set("hidden", model.hidden)
      .set("inter", model.inter)
      .set("experts", experts)
      .set("rows", std::max<std::int64_t>(1, std::llround(rows_per_expert * experts)))
      .set("spread", spread)
      .set("weights", weights)
      .set("layout", layout);
}
const char* layout_for(double rows_per_expert) { return rows_per_expert < 128 ? "masked" : "contiguous"; }

class MoeGemm final : public Family {
 public:
  std::string name() const override { return "moe_gemm"; }
  std::string summary() const override { return "grouped expert product: up + SwiGLU + requantise, down; fp8 and mxfp4 weights"; }
  std::string math(const Shape&) const override { return "fp8"; }
  std::vector<Axis> axes() const override {
    return {{"part", "up (W1, SwiGLU, requantise), down (W2), both"},
            {"hidden", "H, the model's width"},
            {"inter", "I, an expert's width"},
            {"experts", "experts on this GPU"},
            {"rows", "rows of all experts together"},
            {"spread", "how rows fall on experts: equal, multinomial, zipf06, zipf10, zipf14, hot"},
            {"weights", "fp8 (128 x 128 scales) or mxfp4 (UE8M0 scale a row and 32)"},
            {"layout", "masked (room for the largest count) or contiguous (segments aligned to 128)"}};
  }

  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    const auto add = [&](const char* part, Model model, int experts, double mean, const char* spread, const char* weights) {
      shapes.push_back(point(part, model, experts, mean, spread, weights, layout_for(mean)));
    };
    if (grid == Grid::sanitize) {
      const Model tiny{512, 256};
      for (const char* weights : {"fp8", "mxfp4"})
        for (const char* part : {"up", "down"})
          for (const int rows : {1, 21, 530})
            shapes.push_back(point(part, tiny, 4, rows / 4.0, rows == 530 ? "hot" : "multinomial", weights, rows == 21 ? "masked" : "contiguous"));
      return unique(shapes);
    }
    if (grid == Grid::bench) {
      for (const Bar& bar : bars()) shapes.push_back(bar.shape);
      return unique(shapes);
    }
    const bool full = grid == Grid::full;
    for (const double mean : {0.25, 1.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0})
      for (const char* weights : {"fp8", "mxfp4"}) {
        if (std::string(weights) == "mxfp4" && mean > 128 && !full) continue;
        add("both", v41_flash, 12, mean, "equal", weights);
        if (mean >= 1) add("both", v4_flash, 32, mean, "equal", weights);
      }
    for (const char* spread : {"multinomial", "zipf10", "hot"})
      for (const double mean : {1.0, 8.0, 64.0}) add("both", v4_flash, 32, mean, spread, "fp8");
    for (const char* part : {"up", "down"})
      for (const double mean : {8.0, 512.0}) add(part, v4_flash, 32, mean, "equal", "fp8");
    if (full) {
      for (const int experts : {8, 16, 48, 64, 96, 128, 256})
        for (const double mean : {0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0})
          for (const char* weights : {"fp8", "mxfp4"})
            if (experts * mean <= 16384) add("both", v41_flash, experts, mean, "multinomial", weights);
      for (const char* spread : {"multinomial", "zipf06", "zipf10", "zipf14", "hot"})
        for (const double mean : {0.5, 2.0, 8.0, 32.0, 128.0, 512.0}) add("both", v4_flash, 32, mean, spread, "fp8");
      for (const Model model : {v4_pro, r1})
        for (const double mean : {1.0, 8.0, 64.0, 512.0}) add("both", model, 16, mean, "equal", "fp8");
      for (const double mean : {512.0, 1024.0}) add("both", v4_flash, 8, mean, "equal", "fp8");
    }
    return unique(shapes);
  }

  Work work(const Shape& shape) const override {
    const double hidden = static_cast<double>(shape.number("hidden")), inter = static_cast<double>(shape.number("inter"));
    const auto rows = static_cast<double>(shape.number("rows"));
    const bool up = shape.text("part") != "down", down = shape.text("part") != "up";
    const auto counts = draw_expert_rows(static_cast<int>(shape.number("experts")), shape.number("rows"), shape.text("spread"));
    const double matrices = (up ? 2 : 0) + (down ? 1 : 0);  // of H x I
    double padded = 0;
    Work work;
    for (const std::int32_t count : counts) {
      work.touched += count > 0;
      const int rest = count % 128;
      padded += count - rest;
      padded += rest == 0 ? 0 : rest <= 8 ? 8 : rest <= 16 ? 16 : rest <= 32 ? 32 : rest <= 64 ? 64 : 128;
    }
    work.flop = rows * 2 * matrices * hidden * inter;
    work.flop_padded = padded * 2 * matrices * hidden * inter;
    const double bytes_per_weight = shape.text("weights") == "mxfp4" ? 17.0 / 32 : 1 + 4.0 / (128 * 128);
    const double scaled = 1 + 4.0 / 128;  // an e4m3 activation with its share of a scale
    work.bytes_hbm = work.touched * matrices * hidden * inter * bytes_per_weight;
    if (up) work.bytes_hbm += rows * (hidden + inter) * scaled;
    if (down) work.bytes_hbm += rows * (inter * scaled + 2 * hidden);
    return work;
  }

  std::vector<Bar> bars() const override {
    const auto bar = [](Shape shape, Quantity quantity, double at_least, double wanted, const char* published) {
      Bar result;
      result.shape = std::move(shape);
      result.quantity = quantity;
      result.at_least = at_least;
      result.wanted = wanted;
      result.published = published;
      return result;
    };
    const Shape few = point("both", v4_flash, 32, 8, "equal", "fp8", "masked"), few4 = point("both", v4_flash, 32, 8, "equal", "mxfp4", "masked");
    const Shape many = point("both", v4_flash, 32, 512, "equal", "fp8", "contiguous");
    const double copy_gb_s = 4300;  // measured device-to-device copy, read plus write
    return {bar(few, Quantity::hbm_gb_s, 0.85 * copy_gb_s, 0.90 * copy_gb_s, "3,850 GB/s H200 (vLLM fused MoE, EP1)"),
            // 4-bit weights are 0.531 of the bytes; faster than fp8 at its bar means below 0.85 of the copy rate's fp8 time
            bar(few4, Quantity::microseconds, work(few).bytes_hbm / (0.85 * copy_gb_s) * 1e-3, work(few).bytes_hbm / (0.85 * copy_gb_s) * 1e-3 / 1.25,
                "no gain over fp8 (SGLang W4A8, SM90)"),
            bar(many, Quantity::tflops, 900, 1200, "1,550 TFLOPS H800, dense (DeepGEMM)")};
  }
};

}  // namespace

const Family& moe_gemm_family() {
  static const MoeGemm family;
  return family;
}

}  // namespace rackcast::kernels
