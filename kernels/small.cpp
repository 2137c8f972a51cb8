#include "kernels/small.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/family.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace {

std::vector<double> rms_norm(std::vector<double> row, const std::vector<double>& gain) {
  double sum = 0;
  for (const double value : row) sum += value * value;
  const double factor = 1 / std::sqrt(sum / static_cast<double>(row.size()) + 1e-6);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] *= factor * gain[i];
  return row;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

CacheRow reference_cache_row(const std::vector<double>& row, const std::vector<double>& gain, int position) {
  CacheRow result{rms_norm(row, gain)};
  for (std::size_t i = 0; i < 32; ++i) {
    const double angle = position * std::pow(10000.0, -2.0 * static_cast<double>(i) / 64);
    double& a = result.values[448 + 2 * i];
    double& b = result.values[449 + 2 * i];
    const double turned = a * std::cos(angle) - b * std::sin(angle);
    b = a * std::sin(angle) + b * std::cos(angle);
    a = turned;
  }
  return result;
}

Mixing reference_mixing(const std::array<double, 24>& logits) {
  Mixing mixing;
  for (std::size_t i = 0; i < 4; ++i) {
    mixing.pre[i] = sigmoid(logits[i]);
    mixing.post[i] = 2 * sigmoid(logits[4 + i]);
  }
  for (std::size_t i = 0; i < 16; ++i) mixing.comb[i] = std::exp(logits[8 + i]);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < 4; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 4; ++j) sum += mixing.comb[4 * i + j];
      for (std::size_t j = 0; j < 4; ++j) mixing.comb[4 * i + j] /= sum;
    }
    for (std::size_t j = 0; j < 4; ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < 4; ++i) sum += mixing.comb[4 * i + j];
      for (std::size_t i = 0; i < 4; ++i) mixing.comb[4 * i + j] /= sum;
    }
  }
  return mixing;
}

std::vector<double> reference_compress(const std::vector<double>& values, const std::vector<double>& gates, const std::vector<double>& bias,
                                       const std::vector<double>& gain) {
  const std::size_t rows = values.size() / 512;
  std::vector<double> pooled(512);
  for (std::size_t c = 0; c < 512; ++c) {
    double largest = -1e300, sum = 0, total = 0;
    for (std::size_t r = 0; r < rows; ++r) largest = std::max(largest, gates[r * 512 + c] + bias[r * 512 + c]);
    for (std::size_t r = 0; r < rows; ++r) {
      const double weight = std::exp(gates[r * 512 + c] + bias[r * 512 + c] - largest);
      sum += weight;
      total += weight * values[r * 512 + c];
    }
    pooled[c] = total / sum;
  }
  return rms_norm(pooled, gain);
}

namespace {

class Small final : public Family {
 public:
  std::string name() const override { return "small"; }
  std::string summary() const override { return "norm + rope + quantise + cache insert, hyper-connections, compressor, Engram gather, sampling and verification"; }
  std::string math(const Shape&) const override { return "none"; }
  std::vector<Axis> axes() const override {
    return {{"op", "insert, mhc_pre, mhc_post, compress, engram, verify"},
            {"tokens", "tokens (verify: rows of logits)"},
            {"size", "insert: 512; mhc: H; compress: rows a group; engram: table in MiB; verify: vocabulary"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    const auto add = [&](const char* op, int tokens, int size) { shapes.push_back(Shape().set("op", op).set("tokens", tokens).set("size", size)); };
    if (grid == Grid::bench) return shapes;
    if (grid == Grid::sanitize) {
      for (const int tokens : {1, 19}) {
        add("insert", tokens, 512);
        add("mhc_pre", tokens, 256);
        add("mhc_post", tokens, 256);
        add("compress", 8 * tokens, 4);
        add("engram", tokens, 1);
        add("verify", tokens, 1031);
      }
      return shapes;
    }
    const auto all = [&](int tokens) {
      add("insert", tokens, 512);
      add("mhc_pre", tokens, 5120);
      add("mhc_post", tokens, 5120);
      add("compress", std::max(tokens / 128 * 128, 128), 128);
      add("compress", std::max(tokens / 2 * 2, 2), 2);
      add("engram", tokens, 16384);
      if (tokens <= 1024) add("verify", tokens, 129280);
    };
    for (const int tokens : {1, 64, 256, 4096}) all(tokens);
    if (grid == Grid::quick) return unique(shapes);
    for (int tokens = 1; tokens <= 16384; tokens *= 2) all(tokens);
    for (const int tokens : {16, 256, 4096}) {
      add("mhc_pre", tokens, 4096);
      add("mhc_post", tokens, 4096);
      for (const int table : {128, 1024, 65536}) add("engram", tokens, table);
    }
    return unique(shapes);
  }
  Work work(const Shape& shape) const override {
    const std::string& op = shape.text("op");
    const auto tokens = static_cast<double>(shape.number("tokens")), size = static_cast<double>(shape.number("size"));
    Work work;
    if (op == "insert") {
      work.bytes_hbm = tokens * (1024 + 4 + 584);
      work.flop = tokens * 512 * 4;
    } else if (op == "mhc_pre") {
      work.bytes_hbm = 24 * 4 * size * 4 + tokens * (4 * size * 2 + size * 2 + 24 * 4);
      work.flop = tokens * (2 * 24 * 4 * size + 2 * 4 * size + 2 * 4 * size);
    } else if (op == "mhc_post") {
      work.bytes_hbm = tokens * (4 * size * 2 * 2 + size * 2 + 24 * 4);
      work.flop = tokens * 4 * size * 10;
    } else if (op == "compress") {
      work.bytes_hbm = tokens * 512 * 8 + tokens / size * 512 * 2;
      work.flop = tokens * 512 * 5;
    } else if (op == "engram") {
      work.bytes_hbm = tokens * 24 * (264 + 4 + 512);
      work.touched = tokens * 24;
    } else {
      RACKCAST_CHECK(op == "verify", "unknown op " + op);
      work.bytes_hbm = tokens * (2 * size + 16);
      work.flop = tokens * size * 8;
    }
    return work;
  }
};

}  // namespace

const Family& small_family() {
  static const Small family;
  return family;
}

}  // namespace rackcast::kernels
