// Case of the verification of drafts: inputs, launches, check against the host's double.
#include <cmath>

#include "kernels/device.cuh"
#include "kernels/small_case.hpp"

namespace rackcast::kernels {
namespace {

class VerifyCase final : public Case {
 public:
  VerifyCase(int rows, int vocabulary, const PrepareOptions& options)
      : rows_(rows), vocabulary_(vocabulary), seed_(options.seed), drafts_(static_cast<std::size_t>(rows)), scratch_(static_cast<std::size_t>(rows) * verify_splits * 4), verdicts_(static_cast<std::size_t>(rows)) {
    fill_i32_uniform(drafts_.data(), drafts_.size(), 0, vocabulary - 1, seed_ + 1);
    const std::size_t count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(vocabulary);
    for (int set = 0; set < sets_needed(options, count * 2); ++set) logits_.push_back(random_bf16(count, seed_ + 2 + static_cast<std::uint64_t>(set), 3.0f));
  }
  int sets() const override { return static_cast<int>(logits_.size()); }
  void launch(int set, Stream stream) override { launch_verify(rows_, vocabulary_, logits_[static_cast<std::size_t>(set)].data(), drafts_.data(), seed_, scratch_.data(), verdicts_.data(), stream); }
  CheckResult check(const CheckOptions& options) override {
    poison(verdicts_.data(), verdicts_.bytes());
    launch_and_wait(*this);
    const std::vector<Verdict> verdicts = verdicts_.to_host();
    const std::vector<std::int32_t> drafts = drafts_.to_host();
    std::vector<double> expected, found;
    const auto width = static_cast<std::size_t>(vocabulary_);
    for (const std::size_t row : some(static_cast<std::size_t>(rows_), options.seed)) {
      const std::vector<double> logits = part_of(logits_[0], row * width, width);
      const double largest = *std::max_element(logits.begin(), logits.end());
      double sum = 0, best = -1e300;
      for (const double logit : logits) sum += std::exp(logit - largest);
      const auto noisy = [&](std::size_t token) {
        const double uniform = (static_cast<double>(random_bits(seed_ + row, token) >> 41) + 0.5) * 0x1p-23;
        return logits[token] - std::log(-std::log(uniform));
      };
      for (std::size_t token = 0; token < width; ++token)
        if (token != static_cast<std::size_t>(drafts[row])) best = std::max(best, noisy(token));
      const auto chosen = static_cast<std::size_t>(verdicts[row].token);
      expected.push_back(std::exp(logits[static_cast<std::size_t>(drafts[row])] - largest) / sum);
      found.push_back(verdicts[row].probability);
      expected.push_back(best);  // the chosen token's noisy logit is the best one
      found.push_back(chosen < width && chosen != static_cast<std::size_t>(drafts[row]) ? noisy(chosen) : -1e9);
    }
    return compare(expected, found, 1e-3, options);
  }

 private:
  int rows_, vocabulary_;
  std::uint64_t seed_;
  DeviceBuffer<std::int32_t> drafts_;
  DeviceBuffer<float> scratch_;
  DeviceBuffer<Verdict> verdicts_;
  std::vector<Bf16> logits_;
};

}  // namespace

std::unique_ptr<Case> verify_case(int rows, int vocabulary, const PrepareOptions& options) {
  return std::make_unique<VerifyCase>(rows, vocabulary, options);
}

}  // namespace rackcast::kernels
