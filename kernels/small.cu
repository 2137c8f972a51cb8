// Cases of the small kernels: inputs, launches, checks against the host's double.
#include "kernels/small.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/formats.hpp"
#include "kernels/small_device.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
const Family& small_family();

namespace {

using Bf16 = DeviceBuffer<std::uint16_t>;

Bf16 random_bf16(std::size_t count, std::uint64_t seed, float sigma = 1.0f) {
  Bf16 buffer(count);
  fill_bf16_normal(buffer.data(), count, sigma, seed);
  return buffer;
}
DeviceBuffer<float> random_floats(std::size_t count, std::uint64_t seed, float sigma = 1.0f) {
  DeviceBuffer<float> buffer(count);
  fill_f32_normal(buffer.data(), count, sigma, seed);
  return buffer;
}
std::vector<double> as_doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }
std::vector<double> part_of(const Bf16& matrix, std::size_t first, std::size_t count) {
  std::vector<std::uint16_t> raw(count);
  copy_to_host(raw.data(), matrix.data() + first, count * 2);
  std::vector<double> values(count);
  std::transform(raw.begin(), raw.end(), values.begin(), bf16_to_double);
  return values;
}
// First, last and six tokens between.
std::vector<std::size_t> some(std::size_t tokens, std::uint64_t seed) {
  std::vector<std::size_t> picks = {0, tokens - 1};
  for (std::uint64_t i = 0; i < 6; ++i) picks.push_back(random_bits(seed, i) % tokens);
  return picks;
}
CheckResult with_all_written(CheckResult result, const Bf16& out) {
  if (result.ok && count_nan_bf16(out.data(), out.size())) {
    result.ok = false;
    result.note = "not every output was written";
  }
  return result;
}
void append(std::vector<double>& to, const std::vector<double>& more) { to.insert(to.end(), more.begin(), more.end()); }

// Launches, then everything is on the host's side of a synchronisation.
void launch_and_wait(Case& one) {
  RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  one.launch(0, nullptr);
  RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
}

class InsertCase final : public Case {
 public:
  InsertCase(int tokens, const PrepareOptions& options) : tokens_(tokens), gain_(random_floats(512, options.seed + 1)) {
    const auto count = static_cast<std::size_t>(tokens);
    std::vector<std::int32_t> slots(count);
    for (std::size_t i = 0; i < count; ++i) slots[i] = static_cast<std::int32_t>(2 * i + random_bits(options.seed, i) % 2);
    slots_host_ = slots;
    slot_ = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(slots));
    for (int set = 0; set < sets_needed(options, count * (1024 + 2 * 584)); ++set) {
      rows_.push_back(random_bf16(count * 512, options.seed + 2 + static_cast<std::uint64_t>(set)));
      pools_.emplace_back(2 * count * 584);
    }
  }
  int sets() const override { return static_cast<int>(rows_.size()); }
  void launch(int set, Stream stream) override {
    const auto s = static_cast<std::size_t>(set);
    launch_insert(tokens_, rows_[s].data(), gain_.data(), slot_.data(), pools_[s].data(), stream);
  }
  CheckResult check(const CheckOptions& options) override {
    poison(pools_[0].data(), pools_[0].bytes());
    launch_and_wait(*this);
    const std::vector<std::uint8_t> pool = pools_[0].to_host();
    const std::vector<double> gain = as_doubles(gain_.to_host());
    std::vector<double> expected, found;
    for (const std::size_t token : some(static_cast<std::size_t>(tokens_), options.seed)) {
      const CacheRow reference = reference_cache_row(part_of(rows_[0], token * 512, 512), gain, slots_host_[token]);
      const std::uint8_t* row = pool.data() + static_cast<std::size_t>(slots_host_[token]) * 584;
      for (std::size_t i = 0; i < 512; ++i) {
        double value, allowed = 0;
        if (i < 448) {
          const double scale = ue8m0_value(row[576 + i / 64]);
          value = e4m3_value(row[i]) * scale;
          allowed = e4m3_step(std::abs(reference.values[i]) / scale) * scale / 2;
        } else {
          value = bf16_to_double(static_cast<std::uint16_t>(row[448 + 2 * (i - 448)] | row[449 + 2 * (i - 448)] << 8));
        }
        const double difference = value - reference.values[i];  // beyond half a step of e4m3
        expected.push_back(reference.values[i]);
        found.push_back(std::abs(difference) <= allowed ? reference.values[i] : reference.values[i] + std::copysign(std::abs(difference) - allowed, difference));
      }
    }
    return compare(expected, found, 5e-3, options);
  }

 private:
  int tokens_;
  DeviceBuffer<float> gain_;
  DeviceBuffer<std::int32_t> slot_;
  std::vector<std::int32_t> slots_host_;
  std::vector<Bf16> rows_;
  std::vector<DeviceBuffer<std::uint8_t>> pools_;
};

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

class CompressCase final : public Case {
 public:
  CompressCase(int tokens, int group, const PrepareOptions& options)
      : tokens_(static_cast<std::size_t>(tokens)), group_(static_cast<std::size_t>(group)), bias_(random_floats(group_ * 512, options.seed + 1)),
        gain_(random_floats(512, options.seed + 2)), out_(tokens_ / group_ * 512) {
    for (int set = 0; set < sets_needed(options, tokens_ * 512 * 8); ++set) {
      values_.push_back(random_floats(tokens_ * 512, options.seed + 10 + 2 * static_cast<std::uint64_t>(set)));
      gates_.push_back(random_floats(tokens_ * 512, options.seed + 11 + 2 * static_cast<std::uint64_t>(set)));
    }
  }
  int sets() const override { return static_cast<int>(values_.size()); }
  void launch(int set, Stream stream) override {
    const auto s = static_cast<std::size_t>(set);
    launch_compress(static_cast<int>(tokens_), static_cast<int>(group_), values_[s].data(), gates_[s].data(), bias_.data(), gain_.data(), out_.data(), stream);
  }
  CheckResult check(const CheckOptions& options) override {
    poison(out_.data(), out_.bytes());
    launch_and_wait(*this);
    const std::vector<double> values = as_doubles(values_[0].to_host()), gates = as_doubles(gates_[0].to_host());
    const std::vector<double> bias = as_doubles(bias_.to_host()), gain = as_doubles(gain_.to_host());
    std::vector<double> expected, found;
    for (const std::size_t one : some(tokens_ / group_, options.seed)) {
      const auto begin = static_cast<std::ptrdiff_t>(one * group_ * 512), end = begin + static_cast<std::ptrdiff_t>(group_ * 512);
      append(expected, reference_compress({values.begin() + begin, values.begin() + end}, {gates.begin() + begin, gates.begin() + end}, bias, gain));
      append(found, part_of(out_, one * 512, 512));
    }
    return with_all_written(compare(expected, found, 5e-3, options), out_);
  }

 private:
  std::size_t tokens_, group_;
  DeviceBuffer<float> bias_, gain_;
  Bf16 out_;
  std::vector<DeviceBuffer<float>> values_, gates_;
};

__global__ void engram_scales_kernel(std::uint8_t* table, std::size_t rows, std::uint64_t seed) {  // and no NaN codes
  for (std::size_t row = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; row < rows; row += std::size_t{gridDim.x} * blockDim.x)
    for (int i = 0; i < 8; ++i) table[row * 264 + 256 + i] = static_cast<std::uint8_t>(118 + random_bits(seed, row * 8 + i) % 4);
}

class EngramCase final : public Case {
 public:
  EngramCase(int tokens, std::size_t table_mib, const PrepareOptions& options)
      : tokens_(static_cast<std::size_t>(tokens)), table_((table_mib << 20) / 264 * 264), out_(tokens_ * 24 * 256) {
    const std::size_t rows = table_.size() / 264;
    fill_e4m3_normal(table_.data(), table_.size(), 60.0f, options.seed + 1);
    engram_scales_kernel<<<1024, 256>>>(table_.data(), rows, options.seed + 2);
    RACKCAST_LAUNCH_CHECK();
    for (int set = 0; set < std::min(sets_needed(options, tokens_ * 24 * 264), 64); ++set) {
      index_.emplace_back(tokens_ * 24);
      fill_i32_uniform(index_.back().data(), tokens_ * 24, 0, static_cast<std::int32_t>(rows - 1), options.seed + 10 + static_cast<std::uint64_t>(set));
    }
  }
  int sets() const override { return static_cast<int>(index_.size()); }
  void launch(int set, Stream stream) override { launch_engram(static_cast<int>(tokens_), index_[static_cast<std::size_t>(set)].data(), table_.data(), out_.data(), stream); }
  CheckResult check(const CheckOptions& options) override {
    poison(out_.data(), out_.bytes());
    launch_and_wait(*this);
    const std::vector<std::int32_t> index = index_[0].to_host();
    std::vector<double> expected, found;
    std::uint8_t row[264];
    for (const std::size_t one : some(index.size(), options.seed)) {
      copy_to_host(row, table_.data() + static_cast<std::size_t>(index[one]) * 264, 264);
      for (std::size_t i = 0; i < 256; ++i) expected.push_back(e4m3_value(row[i]) * ue8m0_value(row[256 + i / 32]));
      append(found, part_of(out_, one * 256, 256));
    }
    return with_all_written(compare(expected, found, 5e-3, options), out_);
  }

 private:
  std::size_t tokens_;
  DeviceBuffer<std::uint8_t> table_;
  Bf16 out_;
  std::vector<DeviceBuffer<std::int32_t>> index_;
};

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

class SmallLauncher final : public Launcher {
 public:
  const Family& family() const override { return small_family(); }
  std::vector<std::string> implementations(const GpuEnvironment&, const Shape&) const override { return {"portable"}; }
  std::unique_ptr<Case> prepare(const GpuEnvironment&, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    const std::string& op = shape.text("op");
    const int tokens = static_cast<int>(shape.number("tokens")), size = static_cast<int>(shape.number("size"));
    if (op == "insert") return std::make_unique<InsertCase>(tokens, options);
    if (op == "mhc_pre" || op == "mhc_post") return std::make_unique<HyperConnectionCase>(op == "mhc_pre", tokens, size, options);
    if (op == "compress") return std::make_unique<CompressCase>(tokens, size, options);
    if (op == "engram") return std::make_unique<EngramCase>(tokens, static_cast<std::size_t>(size), options);
    RACKCAST_CHECK(op == "verify", "unknown op " + op);
    return std::make_unique<VerifyCase>(tokens, size, options);
  }
};

}  // namespace

const Launcher& small_launcher() {
  static const SmallLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
