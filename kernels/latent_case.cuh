// What the cases of sparse attention and dense MLA share: outputs and their splits, the comparison with the references,
// the choice of an implementation.
#pragma once
#include <cmath>

#include "kernels/attention_reference.cuh"
#include "kernels/device.hpp"
#include "kernels/latent_splits.hpp"

namespace rackcast::kernels {

constexpr double latent_tolerance = 1e-2;  // bf16 probabilities and outputs
constexpr double lse_tolerance = 2e-3;

// `items` independent results of `rows` query rows, 512 values each.
struct LatentOutputs {
  int items = 0, rows = 64;
  SplitPlan plan;
  DeviceBuffer<__nv_bfloat16> out;
  DeviceBuffer<float> lse, partial_out, partial_lse;

  LatentOutputs() = default;
  LatentOutputs(int items_, int rows_, int keys, int sm_count) : items(items_), rows(rows_), plan(plan_splits(items_ * tiles(), keys, sm_count)) {
    const std::size_t all = static_cast<std::size_t>(items) * static_cast<std::size_t>(rows);
    out = DeviceBuffer<__nv_bfloat16>(all * 512);
    lse = DeviceBuffer<float>(all);
    if (plan.splits == 1) return;
    const std::size_t parts = static_cast<std::size_t>(items) * static_cast<std::size_t>(tiles() * plan.splits) * 64;
    partial_out = DeviceBuffer<float>(parts * 512);
    partial_lse = DeviceBuffer<float>(parts);
  }
  int tiles() const { return (rows + 63) / 64; }

  template <typename Params>
  void give(Params& p) const {
    p.splits = plan.splits;
    p.blocks_per_split = plan.blocks_per_split;
    p.out = out.data();
    p.lse = lse.data();
    p.partial_out = partial_out.data();
    p.partial_lse = partial_lse.data();
  }
  void combine(const float* sink, Stream stream) const {
    if (plan.splits > 1)
      combine_splits({partial_out.data(), partial_lse.data(), plan.splits, items * tiles(), tiles(), rows, sink, reinterpret_cast<std::uint16_t*>(out.data()), lse.data()}, stream);
  }
  void poison_all() const {
    poison(out.data(), out.bytes());
    poison(lse.data(), lse.bytes());
    if (plan.splits == 1) return;
    poison(partial_out.data(), partial_out.bytes());
    poison(partial_lse.data(), partial_lse.bytes());
  }
  bool written() const { return count_nan_bf16(out.data(), out.size()) == 0 && count_nan_f32(lse.data(), lse.size()) == 0; }
};

inline std::vector<double> bf16_row(const void* device, std::size_t count) {
  std::vector<std::uint16_t> bits(count);
  copy_to_host(bits.data(), device, count * 2);
  std::vector<double> values;
  for (const std::uint16_t b : bits) values.push_back(bf16_to_double(b));
  return values;
}

// The first row and the last item's, then random ones.
inline std::vector<SampledRow> sample_rows(const LatentOutputs& outputs, int wanted, std::uint64_t seed) {
  std::vector<SampledRow> samples;
  for (int i = 0; i < wanted; ++i) {
    const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(i));
    samples.push_back({i == 0 ? 0 : i == 1 ? outputs.items - 1 : static_cast<int>((bits >> 8) % static_cast<std::uint64_t>(outputs.items)),
                       i == 0 ? 0 : i == 1 ? outputs.rows - 1 : static_cast<int>((bits >> 40) % static_cast<std::uint64_t>(outputs.rows))});
  }
  return samples;
}

// Sampled rows against the FP64 reference on the GPU, whose outputs are left in `reference`. lse is compared with
// `lse_offset` added: where it may be near 0, a relative error of it would say nothing.
template <typename Source>
CheckResult compare_samples(const Source& source, const std::vector<SampledRow>& samples, const LatentOutputs& outputs, int qk_dims, int most_keys,
                            double softmax_scale, double lse_offset, const CheckOptions& options, std::vector<double>& reference) {
  const DeviceBuffer<SampledRow> device_samples{std::span<const SampledRow>(samples)};
  DeviceBuffer<double> logits(samples.size() * static_cast<std::size_t>(most_keys)), out(samples.size() * 512), lse(samples.size());
  attention_reference_kernel<<<static_cast<unsigned>(samples.size()), 256>>>(source, device_samples.data(), qk_dims, 512, softmax_scale, logits.data(),
                                                                              most_keys, out.data(), lse.data());
  RACKCAST_LAUNCH_CHECK();
  reference = out.to_host();
  const std::vector<double> reference_lse = lse.to_host();
  const std::vector<float> all_lse = outputs.lse.to_host();
  std::vector<double> got, lse_got, lse_want;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::size_t row = static_cast<std::size_t>(samples[i].item) * static_cast<std::size_t>(outputs.rows) + static_cast<std::size_t>(samples[i].row);
    for (const double value : bf16_row(outputs.out.data() + row * 512, 512)) got.push_back(value);
    const bool empty = std::isinf(reference_lse[i]);
    if (empty != static_cast<bool>(std::isinf(all_lse[row])))
      return {false, 1, 1, latent_tolerance, "an empty row is not recognised, or seen where there is none"};
    if (empty) continue;
    lse_want.push_back(reference_lse[i] + lse_offset);
    lse_got.push_back(static_cast<double>(all_lse[row]) + lse_offset);
  }
  CheckResult result = compare(reference, got, latent_tolerance, options);
  if (!lse_want.empty()) result = both(result, compare(lse_want, lse_got, lse_tolerance, options));
  return result;
}

// CaseType(gpu, shape, use the Hopper kernel, options)
template <typename CaseType>
class LatentLauncher final : public Launcher {
 public:
  explicit LatentLauncher(const Family& family) : family_(family) {}
  const Family& family() const override { return family_; }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape&) const override {
    if (gpu.cc_major == 9 && gpu.cc_minor == 0) return {"sm90", "portable"};
    return {"portable"};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string& implementation, const PrepareOptions& options) const override {
    return std::make_unique<CaseType>(gpu, shape, implementation == "sm90", options);
  }

 private:
  const Family& family_;
};

}  // namespace rackcast::kernels
