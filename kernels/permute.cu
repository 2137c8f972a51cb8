// Cases of permute and unpermute: inputs, launches, checks against the host.
#include "kernels/permute.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/device.hpp"
#include "kernels/formats.hpp"
#include "kernels/permute_device.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace {

class PermuteCase final : public Case {
 public:
  PermuteCase(const Shape& shape, const PrepareOptions& options)
      : permute_(shape.text("part") == "permute"), tokens_(static_cast<int>(shape.number("tokens"))), hidden_(static_cast<int>(shape.number("hidden"))),
        top_k_(static_cast<int>(shape.number("top_k"))), experts_(static_cast<int>(shape.number("experts"))), align_(static_cast<int>(shape.number("align"))),
        ids_host_(draw_expert_ids(tokens_, experts_, top_k_, shape.text("spread"), options.seed)) {
    const auto choices = ids_host_.size();
    pitch_ = (static_cast<int>(choices) + experts_ * (align_ - 1) + 127) / 128 * 128;
    ids_ = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(ids_host_));
    rank_ = DeviceBuffer<std::int32_t>(choices);
    position_ = DeviceBuffer<std::int32_t>(choices);
    count_ = DeviceBuffer<std::int32_t>(static_cast<std::size_t>(experts_));
    offset_ = DeviceBuffer<std::int32_t>(static_cast<std::size_t>(experts_));
    base_ = DeviceBuffer<std::int32_t>(static_cast<std::size_t>(positions_blocks * experts_));
    const auto tokens = static_cast<std::size_t>(tokens_), rows = static_cast<std::size_t>(pitch_), width = static_cast<std::size_t>(hidden_);
    const std::size_t set_bytes = tokens * width * 2 + rows * width * (permute_ ? 1 : 2);
    for (int set = 0; set < sets_needed(options, set_bytes); ++set) {
      Set one;
      const std::uint64_t seed = options.seed + 10 * static_cast<std::uint64_t>(set);
      one.tokens = DeviceBuffer<std::uint16_t>(tokens * width);
      fill_bf16_normal(one.tokens.data(), one.tokens.size(), 1.0f, seed + 1);
      if (permute_) {
        one.codes = DeviceBuffer<std::uint8_t>(rows * width);
        one.scales = DeviceBuffer<float>(rows * (width / 128));
      } else {
        one.rows = DeviceBuffer<std::uint16_t>(rows * width);
        fill_bf16_normal(one.rows.data(), one.rows.size(), 1.0f, seed + 2);
        one.y = DeviceBuffer<std::uint16_t>(tokens * width);
      }
      sets_.push_back(std::move(one));
    }
    if (!permute_) {
      weights_ = DeviceBuffer<float>(choices);
      fill_f32_normal(weights_.data(), choices, 0.4f, options.seed + 3);
      place_on_host();
    }
  }

  int sets() const override { return static_cast<int>(sets_.size()); }

  void launch(int set, Stream stream) override {
    const Set& one = sets_[static_cast<std::size_t>(set)];
    if (!permute_) return launch_unpermute(permutation(), one.rows.data(), weights_.data(), one.tokens.data(), one.y.data(), stream);
    launch_positions(permutation(), stream);
    launch_scatter(permutation(), one.tokens.data(), {one.codes.data(), one.scales.data(), pitch_}, stream);
  }

  CheckResult check(const CheckOptions& options) override { return permute_ ? check_permute(options) : check_unpermute(options); }

 private:
  struct Set {
    DeviceBuffer<std::uint16_t> tokens, rows, y;
    DeviceBuffer<std::uint8_t> codes;
    DeviceBuffer<float> scales;
  };

  Permutation permutation() const {
    return {tokens_, hidden_, experts_, top_k_, align_, ids_.data(), rank_.data(), position_.data(), count_.data(), offset_.data(), base_.data()};
  }

  // Unpermute alone needs some valid positions.
  void place_on_host() {
    std::vector<std::int32_t> count(static_cast<std::size_t>(experts_), 0), offset(count.size()), position(ids_host_.size());
    for (const std::int32_t id : ids_host_) ++count[static_cast<std::size_t>(id)];
    std::int32_t next = 0;
    for (std::size_t e = 0; e < count.size(); ++e) {
      offset[e] = next;
      next += (count[e] + align_ - 1) / align_ * align_;
    }
    for (std::size_t i = 0; i < position.size(); ++i) position[i] = offset[static_cast<std::size_t>(ids_host_[i])]++;
    position_.assign(position);
  }

  std::vector<int> sample_tokens(std::uint64_t seed) const {
    std::vector<int> tokens = {0, tokens_ - 1};
    for (std::uint64_t i = 0; i < 14; ++i) tokens.push_back(static_cast<int>((seed * 2654435761u + i * 7919u) % static_cast<std::uint64_t>(tokens_)));
    return tokens;
  }

  std::vector<double> row_of(const DeviceBuffer<std::uint16_t>& matrix, std::size_t row) const {
    std::vector<std::uint16_t> raw(static_cast<std::size_t>(hidden_));
    copy_to_host(raw.data(), matrix.data() + row * raw.size(), raw.size() * 2);
    std::vector<double> values(raw.size());
    std::transform(raw.begin(), raw.end(), values.begin(), bf16_to_double);
    return values;
  }

  // Every choice has a row of its own inside its expert's segment; counts and offsets are the host's.
  std::string positions_wrong() const {
    const std::vector<std::int32_t> position = position_.to_host(), count = count_.to_host(), offset = offset_.to_host();
    std::vector<std::int32_t> expected(static_cast<std::size_t>(experts_), 0);
    for (const std::int32_t id : ids_host_) ++expected[static_cast<std::size_t>(id)];
    std::int32_t next = 0;
    for (std::size_t e = 0; e < expected.size(); ++e) {
      if (count[e] != expected[e]) return "a count is wrong";
      if (offset[e] != next) return "an offset is wrong";
      next += (count[e] + align_ - 1) / align_ * align_;
    }
    std::vector<bool> taken(static_cast<std::size_t>(next), false);
    for (std::size_t i = 0; i < position.size(); ++i) {
      const auto e = static_cast<std::size_t>(ids_host_[i]);
      if (position[i] < offset[e] || position[i] >= offset[e] + count[e]) return "a row lies outside its expert";
      if (taken[static_cast<std::size_t>(position[i])]) return "two choices share a row";
      taken[static_cast<std::size_t>(position[i])] = true;
    }
    return {};
  }

  CheckResult check_permute(const CheckOptions& options) {
    const Set& one = sets_[0];
    for (int repeat = 0; repeat < 2; ++repeat) {  // the second finds what the first left behind
      poison(one.codes.data(), one.codes.bytes());
      poison(one.scales.data(), one.scales.bytes());
      poison(position_.data(), position_.bytes());
      poison(count_.data(), count_.bytes());
      poison(base_.data(), base_.bytes());
      RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
      launch(0, nullptr);
    }
    const std::string wrong = positions_wrong();
    std::vector<double> expected, found;
    const std::vector<std::int32_t> position = position_.to_host();
    const std::vector<float> scales = one.scales.to_host();
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(hidden_));
    if (wrong.empty())
      for (const int token : sample_tokens(options.seed)) {
        const QuantisedRow reference = reference_quantise(row_of(one.tokens, static_cast<std::size_t>(token)));
        for (int choice = 0; choice < top_k_; ++choice) {
          const auto row = static_cast<std::size_t>(position[static_cast<std::size_t>(token * top_k_ + choice)]);
          copy_to_host(codes.data(), one.codes.data() + row * codes.size(), codes.size());
          for (std::size_t i = 0; i < codes.size(); ++i) {
            expected.push_back(e4m3_value(reference.codes[i]) * reference.scales[i / 128]);
            found.push_back(e4m3_value(codes[i]) * scales[i / 128 * static_cast<std::size_t>(pitch_) + row]);
          }
        }
      }
    CheckResult result;
    result.note = wrong;
    if (wrong.empty()) result = compare(expected, found, 1e-6, options);  // the same rounding: exact
    return result;
  }

  CheckResult check_unpermute(const CheckOptions& options) {
    const Set& one = sets_[0];
    poison(one.y.data(), one.y.bytes());
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    launch(0, nullptr);
    const std::vector<std::int32_t> position = position_.to_host();
    const std::vector<float> weights = weights_.to_host();
    std::vector<double> expected, found;
    for (const int token : sample_tokens(options.seed)) {
      std::vector<double> rows, factors;
      std::vector<std::int32_t> at;
      for (int choice = 0; choice < top_k_; ++choice) {
        const auto i = static_cast<std::size_t>(token * top_k_ + choice);
        const std::vector<double> row = row_of(one.rows, static_cast<std::size_t>(position[i]));
        rows.insert(rows.end(), row.begin(), row.end());
        at.push_back(choice);
        factors.push_back(weights[i]);
      }
      const std::vector<double> y = reference_unpermute(rows, at, factors, row_of(one.tokens, static_cast<std::size_t>(token)), hidden_);
      const std::vector<double> mine = row_of(one.y, static_cast<std::size_t>(token));
      expected.insert(expected.end(), y.begin(), y.end());
      found.insert(found.end(), mine.begin(), mine.end());
    }
    CheckResult result = compare(expected, found, 5e-3, options);
    if (result.ok && count_nan_bf16(one.y.data(), one.y.size())) {
      result.ok = false;
      result.note = "not every token was written";
    }
    return result;
  }

  bool permute_;
  int tokens_, hidden_, top_k_, experts_, align_, pitch_ = 0;
  std::vector<std::int32_t> ids_host_;
  DeviceBuffer<std::int32_t> ids_, rank_, position_, count_, offset_, base_;
  DeviceBuffer<float> weights_;
  std::vector<Set> sets_;
};

class PermuteLauncher final : public Launcher {
 public:
  const Family& family() const override { return permute_family(); }
  std::vector<std::string> implementations(const GpuEnvironment&, const Shape&) const override { return {"portable"}; }
  std::unique_ptr<Case> prepare(const GpuEnvironment&, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    return std::make_unique<PermuteCase>(shape, options);
  }
};

}  // namespace

const Launcher& permute_launcher() {
  static const PermuteLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
