// Case of the hyper-connections: inputs, launches, check against the host's double.
#include <array>
#include <cmath>

#include "kernels/small_case.hpp"

namespace rackcast::kernels {
namespace {

class HyperConnectionCase final : public Case {
 public:
  HyperConnectionCase(bool pre, int tokens, int hidden, const PrepareOptions& options)
      : pre_(pre), tokens_(static_cast<std::size_t>(tokens)), hidden_(static_cast<std::size_t>(hidden)),
        weights_(random_floats(24 * 4 * hidden_, options.seed + 1, 0.5f / std::sqrt(static_cast<float>(4 * hidden)))), scratch_(mhc_splits * tokens_ * 25), mixing_(tokens_ * 24) {
    for (int set = 0; set < sets_needed(options, tokens_ * hidden_ * (pre ? 10 : 18)); ++set) {
      const std::uint64_t seed = options.seed + 10 * static_cast<std::uint64_t>(set);
      x_.push_back(random_bf16(tokens_ * 4 * hidden_, seed + 2));
      o_.push_back(random_bf16(pre ? 0 : tokens_ * hidden_, seed + 3));
      out_.emplace_back(tokens_ * hidden_ * (pre ? 1 : 4));
    }
    if (!pre) {  // some valid mixing: that of set 0
      Bf16 y(tokens_ * hidden_);
      launch_mhc_pre(tokens, hidden, x_[0].data(), weights_.data(), scratch_.data(), mixing_.data(), y.data(), nullptr);
      RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    }
  }
  int sets() const override { return static_cast<int>(x_.size()); }
  void launch(int set, Stream stream) override {
    const auto s = static_cast<std::size_t>(set);
    const int tokens = static_cast<int>(tokens_), hidden = static_cast<int>(hidden_);
    if (pre_) launch_mhc_pre(tokens, hidden, x_[s].data(), weights_.data(), scratch_.data(), mixing_.data(), out_[s].data(), stream);
    else launch_mhc_post(tokens, hidden, x_[s].data(), o_[s].data(), mixing_.data(), out_[s].data(), stream);
  }
  CheckResult check(const CheckOptions& options) override {
    poison(out_[0].data(), out_[0].bytes());
    if (pre_) poison(mixing_.data(), mixing_.bytes());
    launch_and_wait(*this);
    const std::vector<double> weights = as_doubles(weights_.to_host());
    const std::vector<float> mixing = mixing_.to_host();
    std::vector<double> expected, found;
    for (const std::size_t token : some(tokens_, options.seed)) {
      const std::vector<double> x = part_of(x_[0], token * 4 * hidden_, 4 * hidden_);
      const Mixing reference = mixing_of(x, weights);
      for (std::size_t i = 0; i < 24; ++i) {
        expected.push_back(i < 4 ? reference.pre[i] : i < 8 ? reference.post[i - 4] : reference.comb[i - 8]);
        found.push_back(mixing[token * 24 + i]);
      }
      append_outputs(expected, x, reference, token);
      append(found, part_of(out_[0], token * hidden_ * (pre_ ? 1 : 4), hidden_ * (pre_ ? 1 : 4)));
    }
    return with_all_written(compare(expected, found, 5e-3, options), out_[0]);
  }

 private:
  Mixing mixing_of(const std::vector<double>& x, const std::vector<double>& weights) const {
    std::array<double, 24> logits{};
    double square = 0;
    for (const double value : x) square += value * value;
    const double inverse = 1 / std::sqrt(square / static_cast<double>(x.size()));
    for (std::size_t o = 0; o < 24; ++o)
      for (std::size_t i = 0; i < x.size(); ++i) logits[o] += weights[o * x.size() + i] * x[i] * inverse;
    return reference_mixing(logits);
  }
  void append_outputs(std::vector<double>& expected, const std::vector<double>& x, const Mixing& mixing, std::size_t token) const {
    const std::vector<double> o = pre_ ? std::vector<double>() : part_of(o_[0], token * hidden_, hidden_);
    for (std::size_t i = 0; i < (pre_ ? 1u : 4u); ++i)
      for (std::size_t c = 0; c < hidden_; ++c) {
        double sum = pre_ ? 0 : mixing.post[i] * o[c];
        for (std::size_t j = 0; j < 4; ++j) sum += (pre_ ? mixing.pre[j] : mixing.comb[4 * i + j]) * x[j * hidden_ + c];
        expected.push_back(sum);
      }
  }
  bool pre_;
  std::size_t tokens_, hidden_;
  DeviceBuffer<float> weights_, scratch_, mixing_;
  std::vector<Bf16> x_, o_, out_;
};

}  // namespace

std::unique_ptr<Case> hyper_connection_case(bool pre, int tokens, int hidden, const PrepareOptions& options) {
  return std::make_unique<HyperConnectionCase>(pre, tokens, hidden, options);
}

}  // namespace rackcast::kernels
