#include "kernels/permute.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/family.hpp"
#include "kernels/formats.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {

std::vector<std::int32_t> draw_expert_ids(int tokens, int experts, int top_k, const std::string& spread, std::uint64_t seed) {
  RACKCAST_CHECK(top_k <= experts, "more choices than experts");
  const double exponent = spread == "zipf06" ? 0.6 : spread == "zipf10" ? 1.0 : spread == "zipf14" ? 1.4 : 0.0;
  RACKCAST_CHECK(exponent > 0 || spread == "balanced", "unknown spread " + spread);
  std::vector<double> running(static_cast<std::size_t>(experts));
  double sum = 0;
  for (std::size_t i = 0; i < running.size(); ++i) running[i] = sum += std::pow(static_cast<double>(i + 1), -exponent);
  std::mt19937_64 engine(seed);
  std::vector<std::int32_t> ids;
  for (int token = 0; token < tokens; ++token)
    for (int choice = 0; choice < top_k;) {
      const double at = static_cast<double>(engine() >> 11) * 0x1p-53 * sum;
      const auto id = static_cast<std::int32_t>(std::min<std::ptrdiff_t>(std::upper_bound(running.begin(), running.end(), at) - running.begin(), experts - 1));
      if (std::find(ids.end() - choice, ids.end(), id) != ids.end()) continue;
      ids.push_back(id);
      ++choice;
    }
  return ids;
}

std::vector<double> reference_unpermute(const std::vector<double>& rows, const std::vector<std::int32_t>& positions,
                                        const std::vector<double>& weights, const std::vector<double>& shared, int hidden) {
  const auto width = static_cast<std::size_t>(hidden);
  const std::size_t tokens = shared.size() / width, top_k = positions.size() / tokens;
  std::vector<double> y = shared;
  for (std::size_t token = 0; token < tokens; ++token)
    for (std::size_t choice = 0; choice < top_k; ++choice) {
      const std::size_t at = token * top_k + choice;
      for (std::size_t column = 0; column < width; ++column)
        y[token * width + column] += weights[at] * rows[static_cast<std::size_t>(positions[at]) * width + column];
    }
  return y;
}

QuantisedRow reference_quantise(const std::vector<double>& row) {
  QuantisedRow result;
  for (std::size_t start = 0; start < row.size(); start += 128) {
    double amax = 0;
    for (std::size_t i = start; i < start + 128; ++i) amax = std::max(amax, std::abs(row[i]));
    const double scale = e4m3_power_scale(amax);
    for (std::size_t i = start; i < start + 128; ++i) result.codes.push_back(e4m3_code(row[i] / scale));
    result.scales.push_back(scale);
  }
  return result;
}

namespace {

class Permute final : public Family {
 public:
  std::string name() const override { return "permute"; }
  std::string summary() const override { return "rows grouped by expert: count, scan, quantise and scatter; gather and weighted sum"; }
  std::string math(const Shape&) const override { return "none"; }
  std::vector<Axis> axes() const override {
    return {{"part", "permute (count, scan, quantise, scatter) or unpermute (gather, weighted sum, shared expert added)"},
            {"tokens", "tokens"},
            {"hidden", "H, the model's width"},
            {"experts", "routed experts"},
            {"top_k", "experts a token"},
            {"spread", "popularity: balanced, zipf06, zipf10, zipf14"},
            {"align", "rows that an expert's segment is aligned to"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    const auto add = [&](const char* part, int tokens, int hidden, int experts, int top_k, const char* spread, int align) {
      shapes.push_back(Shape().set("part", part).set("tokens", tokens).set("hidden", hidden).set("experts", experts).set("top_k", top_k).set("spread", spread).set("align", align));
    };
    for (const char* part : {"permute", "unpermute"}) {
      if (grid == Grid::sanitize) {
        for (const int tokens : {1, 37, 1500}) add(part, tokens, 256, 16, 3, tokens == 37 ? "zipf14" : "balanced", tokens == 37 ? 8 : 128);
        continue;
      }
      if (grid == Grid::bench) {
        add(part, 4096, 5120, 384, 6, "balanced", 128);
        continue;
      }
      for (const int tokens : {1, 8, 64, 256, 1024, 4096, 16384}) add(part, tokens, 5120, 384, 6, "balanced", 128);
      for (const int tokens : {64, 4096}) add(part, tokens, 4096, 256, 6, "zipf10", 128);
      if (grid == Grid::quick) continue;
      for (int tokens = 1; tokens <= 16384; tokens *= 2) {
        add(part, tokens, 5120, 384, 6, "balanced", 128);
        if (tokens % 4 == 0) add(part, tokens, 4096, 256, 6, "balanced", 8);
        if (tokens <= 2048) add(part, tokens, 5120, 128, 3, "balanced", 8);
      }
      for (const char* spread : {"zipf06", "zipf10", "zipf14"})
        for (const int tokens : {16, 256, 4096}) add(part, tokens, 5120, 384, 6, spread, 128);
    }
    return unique(shapes);
  }
  Work work(const Shape& shape) const override {
    const auto tokens = static_cast<double>(shape.number("tokens")), hidden = static_cast<double>(shape.number("hidden"));
    const auto top_k = static_cast<double>(shape.number("top_k"));
    Work work;
    if (shape.text("part") == "permute") {
      work.bytes_hbm = tokens * (2 * hidden + top_k * (hidden + 4 * hidden / 128) + 8 * top_k);  // ids in, positions out
      work.flop = tokens * hidden * 2;  // amax and scaling
    } else {
      work.bytes_hbm = tokens * ((top_k + 2) * 2 * hidden + 8 * top_k);  // rows, shared and y; positions and weights
      work.flop = tokens * hidden * (2 * top_k);
    }
    return work;
  }
  std::vector<Bar> bars() const override {
    const double copy_gb_s = 4300;  // measured device-to-device copy, read plus write
    std::vector<Bar> bars;
    for (const Shape& shape : grid(Grid::bench)) {
      Bar bar;
      bar.shape = shape;
      bar.quantity = Quantity::hbm_gb_s;
      bar.at_least = 0.70 * copy_gb_s;
      bar.wanted = 0.85 * copy_gb_s;
      bars.push_back(bar);
    }
    return bars;
  }
};

}  // namespace

const Family& permute_family() {
  static const Permute family;
  return family;
}

}  // namespace rackcast::kernels
