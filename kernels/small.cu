// Cases of the small kernels: inputs, launches, checks against the host's double. Those of hyper-connections and verification
// have files of their own.
#include <algorithm>
#include <cmath>

#include "kernels/device.cuh"
#include "kernels/small_case.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace {

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

class SmallLauncher final : public Launcher {
 public:
  const Family& family() const override { return small_family(); }
  std::vector<std::string> implementations(const GpuEnvironment&, const Shape&) const override { return {"portable"}; }
  std::unique_ptr<Case> prepare(const GpuEnvironment&, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    const std::string& op = shape.text("op");
    const int tokens = static_cast<int>(shape.number("tokens")), size = static_cast<int>(shape.number("size"));
    if (op == "insert") return std::make_unique<InsertCase>(tokens, options);
    if (op == "mhc_pre" || op == "mhc_post") return hyper_connection_case(op == "mhc_pre", tokens, size, options);
    if (op == "compress") return std::make_unique<CompressCase>(tokens, size, options);
    if (op == "engram") return std::make_unique<EngramCase>(tokens, static_cast<std::size_t>(size), options);
    RACKCAST_CHECK(op == "verify", "unknown op " + op);
    return verify_case(tokens, size, options);
  }
};

}  // namespace

const Launcher& small_launcher() {
  static const SmallLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
