// Cases of the grouped expert product: inputs, launches, checks.
#include "kernels/moe_gemm.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/device.hpp"
#include "kernels/formats.hpp"
#include "kernels/moe_gemm_reference.cuh"
#include "kernels/moe_gemm_weights.hpp"
#include "kernels/tensor_map.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {

void launch_grouped_portable(const GroupedProduct& product, bool swiglu, bool mxfp4, int sm_count, Stream stream);
void launch_grouped_sm90(const GroupedProduct& product, bool swiglu, bool mxfp4, bool pairs, int sm_count, Stream stream);

void make_grouped_maps(GroupedProduct& product, const std::uint8_t* tokens, std::int64_t token_rows, const std::uint8_t* codes) {
  RACKCAST_CHECK(product.depth % 128 == 0 && product.depth <= 8192 && product.weight_rows % (2 * tile_rows) == 0 && product.experts <= max_experts,
                 "a shape that the grouped product does not do");
  product.tokens_by_8 = byte_matrix_map(tokens, token_rows, product.depth, 8);
  product.tokens_by_64 = byte_matrix_map(tokens, token_rows, product.depth, 64);
  if (codes) product.weights = byte_matrix_map(codes, std::int64_t{product.experts} * product.weight_rows, product.depth, 128);
}

namespace {

void launch(const GroupedProduct& product, bool swiglu, bool mxfp4, GroupedKernel kernel, int sm_count, Stream stream) {
  if (kernel == GroupedKernel::portable) return launch_grouped_portable(product, swiglu, mxfp4, sm_count, stream);
  launch_grouped_sm90(product, swiglu, mxfp4, kernel == GroupedKernel::sm90_cluster, sm_count, stream);
}

__global__ void count_unwritten_kernel(const std::uint8_t* codes, std::size_t count, unsigned long long* found) {
  unsigned long long mine = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x)
    mine += (codes[i] & 0x7f) == 0x7f;
  if (mine) atomicAdd(found, mine);
}
std::size_t count_unwritten(const std::uint8_t* codes, std::size_t count) {
  DeviceBuffer<unsigned long long> found(1);
  RACKCAST_CUDA_CHECK(cudaMemset(found.data(), 0, found.bytes()));
  count_unwritten_kernel<<<1024, 256>>>(codes, count, found.data());
  RACKCAST_LAUNCH_CHECK();
  return found.to_host()[0];
}

class GroupedCase final : public Case {
 public:
  GroupedCase(const GpuEnvironment& gpu, const Shape& shape, GroupedKernel kernel, const PrepareOptions& options)
      : kernel_(kernel), sm_count_(gpu.sm_count), hidden_(static_cast<int>(shape.number("hidden"))), inter_(static_cast<int>(shape.number("inter"))),
        mxfp4_(shape.text("weights") == "mxfp4"), up_(shape.text("part") != "down"), down_(shape.text("part") != "up"),
        layout_(make_layout(draw_expert_rows(static_cast<int>(shape.number("experts")), shape.number("rows"), shape.text("spread")), shape.text("layout"))),
        offset_(std::span<const std::int32_t>(layout_.offset)), count_(std::span<const std::int32_t>(layout_.count)) {
    const auto rows = static_cast<std::size_t>(layout_.rows);
    const std::uint64_t seed = options.seed;
    x_ = DeviceBuffer<std::uint8_t>(rows * hidden_);
    x_scales_ = DeviceBuffer<float>(rows * (hidden_ / 128) + 128);
    h_ = DeviceBuffer<std::uint8_t>(rows * inter_);
    h_scales_ = DeviceBuffer<float>(rows * (inter_ / 128) + 128);
    y_ = DeviceBuffer<std::uint16_t>(down_ ? rows * hidden_ : 0);
    fill_e4m3_normal(x_.data(), x_.size(), 60.0f, seed + 1);
    fill_power_scales(x_scales_.data(), x_scales_.size(), -7, -5, seed + 2);
    fill_e4m3_normal(h_.data(), h_.size(), 60.0f, seed + 3);  // what down alone reads
    fill_power_scales(h_scales_.data(), h_scales_.size(), -7, -5, seed + 4);
    const int experts = static_cast<int>(layout_.count.size());
    const double weight_bytes = static_cast<double>(experts) * hidden_ * inter_ * ((up_ ? 2 : 0) + (down_ ? 1 : 0)) * (mxfp4_ ? 17.0 / 32 : 1.0);
    const int sets = sets_needed(options, static_cast<std::size_t>(weight_bytes));
    for (int set = 0; set < sets; ++set) sets_.push_back(make_set(experts, seed + 100 + 10 * static_cast<std::uint64_t>(set)));
  }

  int sets() const override { return static_cast<int>(sets_.size()); }
  void launch(int set, Stream stream) override {
    const Set& one = sets_[static_cast<std::size_t>(set)];
    if (up_) kernels::launch(one.up, true, mxfp4_, kernel_, sm_count_, stream);
    if (down_) kernels::launch(one.down, false, mxfp4_, kernel_, sm_count_, stream);
  }

  CheckResult check(const CheckOptions& options) override {
    std::int64_t used = 0;
    for (const std::int32_t count : layout_.count) used += count;
    const auto unused = static_cast<std::size_t>(layout_.rows - used);
    if (up_) {
      poison(h_.data(), h_.bytes());
      poison(h_scales_.data(), h_scales_.bytes());
    }
    if (down_) poison(y_.data(), y_.bytes());
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    launch(0, nullptr);
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    choose_picks(options.seed);
    CheckResult result;
    result.ok = true;
    result.tolerance = 1;
    if (up_) {
      result = check_up(options);
      if (result.ok && count_unwritten(h_.data(), h_.size()) != unused * static_cast<std::size_t>(inter_)) {
        result.ok = false;
        result.note = "up wrote too few or too many rows";
      }
    }
    if (down_ && result.ok) {
      const CheckResult second = check_down(options);
      result = up_ ? both(result, second) : second;
      if (result.ok && count_nan_bf16(y_.data(), y_.size()) != unused * static_cast<std::size_t>(hidden_)) {
        result.ok = false;
        result.note = "down wrote too few or too many rows";
      }
    }
    return result;
  }

 private:
  struct Set {
    ExpertWeights up_weights, down_weights;
    GroupedProduct up, down;
  };

  GroupedProduct product(const ExpertWeights& weights, int experts, int weight_rows, int depth) const {
    GroupedProduct result;
    result.experts = experts;
    result.depth = depth;
    result.weight_rows = weight_rows;
    result.offset = offset_.data();
    result.count = count_.data();
    result.token_pitch = result.out_pitch = static_cast<int>(layout_.rows);
    result.weight_scales = weights.scales.data();
    result.packed = weights.packed.data();
    return result;
  }

  Set make_set(int experts, std::uint64_t seed) {
    Set set;
    if (up_) {
      set.up_weights = random_expert_weights(experts, 2 * inter_, hidden_, mxfp4_, seed);
      set.up = product(set.up_weights, experts, 2 * inter_, hidden_);
      set.up.token_scales = x_scales_.data();
      set.up.out_codes = h_.data();
      set.up.out_scales = h_scales_.data();
      make_grouped_maps(set.up, x_.data(), layout_.rows, set.up_weights.codes.data());
    }
    if (down_) {
      set.down_weights = random_expert_weights(experts, hidden_, inter_, mxfp4_, seed + 5);
      set.down = product(set.down_weights, experts, hidden_, inter_);
      set.down.token_scales = h_scales_.data();
      set.down.out = y_.data();
      make_grouped_maps(set.down, h_.data(), layout_.rows, set.down_weights.codes.data());
    }
    return set;
  }

  // Up to eight touched experts, the first, the last and the fullest among them; of each the first and last row and two more.
  void choose_picks(std::uint64_t seed) {
    std::vector<int> touched;
    for (std::size_t e = 0; e < layout_.count.size(); ++e)
      if (layout_.count[e] > 0) touched.push_back(static_cast<int>(e));
    std::set<int> experts = {touched.front(), touched.back(),
                             static_cast<int>(std::max_element(layout_.count.begin(), layout_.count.end()) - layout_.count.begin())};
    for (std::uint64_t i = 0; i < 5; ++i) experts.insert(touched[(seed * 2654435761u + i * 40503u) % touched.size()]);
    picks_.clear();
    for (const int expert : experts) {
      const auto e = static_cast<std::size_t>(expert);
      const auto count = static_cast<std::uint64_t>(layout_.count[e]);
      std::set<int> rows = {0, static_cast<int>(count - 1), static_cast<int>((seed + 17) % count), static_cast<int>((seed * 31 + 5) % count)};
      for (const int row : rows) picks_.push_back({expert, layout_.offset[e] + row});
    }
  }

  GroupedReference reference(const GroupedProduct& product, const DeviceBuffer<std::uint8_t>& tokens, const ExpertWeights& weights, bool up) const {
    GroupedReference result;
    result.product = product;
    result.tokens = tokens.data();
    result.codes = weights.codes.data();
    result.up = up;
    return result;
  }

  std::vector<double> reference_values(const GroupedReference& reference, int outputs) const {
    const DeviceBuffer<GroupedPick> picks{std::span<const GroupedPick>(picks_)};
    DeviceBuffer<double> out(picks_.size() * static_cast<std::size_t>(outputs));
    grouped_reference_kernel<<<dim3(static_cast<unsigned>((outputs + 7) / 8), static_cast<unsigned>(picks_.size())), 256>>>(reference, picks.data(), outputs, out.data());
    RACKCAST_LAUNCH_CHECK();
    return out.to_host();
  }

  // The GPU reference against the CPU's, where that is quick: the worst relative difference.
  double reference_error(const GroupedReference& reference, const std::vector<double>& values, int outputs) const {
    const int depth = reference.product.depth;
    if (static_cast<double>(depth) * reference.product.weight_rows > 512.0 * 1024) return 0;
    const DeviceBuffer<GroupedPick> picks{std::span<const GroupedPick>(picks_)};
    DeviceBuffer<double> tokens(picks_.size() * static_cast<std::size_t>(depth));
    DeviceBuffer<double> weights(static_cast<std::size_t>(depth) * reference.product.weight_rows);
    grouped_tokens_kernel<<<static_cast<unsigned>(picks_.size()), 128>>>(reference, picks.data(), tokens.data());
    RACKCAST_LAUNCH_CHECK();
    const std::vector<double> all_tokens = tokens.to_host();
    double worst = 0;
    for (std::size_t p = 0; p < picks_.size(); ++p) {
      grouped_dequantise_kernel<<<256, 256>>>(reference, picks_[p].expert, weights.data());
      RACKCAST_LAUNCH_CHECK();
      const auto begin = all_tokens.begin() + static_cast<std::ptrdiff_t>(p) * depth;
      const std::vector<double> x(begin, begin + depth);
      const std::vector<double> host = reference.up ? reference_up(x, weights.to_host(), depth) : reference_down(x, weights.to_host(), depth);
      for (int o = 0; o < outputs; ++o)
        worst = std::max(worst, std::abs(host[static_cast<std::size_t>(o)] - values[p * static_cast<std::size_t>(outputs) + static_cast<std::size_t>(o)]));
    }
    return worst;
  }

  CheckResult finish(CheckResult result, double reference_error) const {
    if (reference_error > 1e-9) {
      result.ok = false;
      result.note = "the GPU's reference differs from the CPU's";
    }
    return result;
  }

  // Requantised outputs: what exceeds half a step of e4m3 is an error.
  CheckResult check_up(const CheckOptions& options) const {
    const GroupedReference r = reference(sets_[0].up, x_, sets_[0].up_weights, true);
    const std::vector<double> expected = reference_values(r, inter_);
    const std::vector<std::uint8_t> codes = h_.to_host();
    const std::vector<float> scales = h_scales_.to_host();
    std::vector<double> found(expected.size());
    for (std::size_t p = 0; p < picks_.size(); ++p)
      for (int i = 0; i < inter_; ++i) {
        const std::size_t at = p * static_cast<std::size_t>(inter_) + static_cast<std::size_t>(i);
        const double scale = scales[static_cast<std::size_t>(i / 128) * static_cast<std::size_t>(layout_.rows) + static_cast<std::size_t>(picks_[p].row)];
        const double value = e4m3_value(codes[static_cast<std::size_t>(picks_[p].row) * static_cast<std::size_t>(inter_) + static_cast<std::size_t>(i)]) * scale;
        const double allowed = e4m3_step(std::abs(expected[at] / scale)) * scale / 2, difference = value - expected[at];
        found[at] = std::abs(difference) <= allowed ? expected[at] : expected[at] + std::copysign(std::abs(difference) - allowed, difference);
      }
    return finish(compare(expected, found, mxfp4_ ? 1e-2 : 5e-3, options), reference_error(r, expected, inter_));
  }

  CheckResult check_down(const CheckOptions& options) const {
    const GroupedReference r = reference(sets_[0].down, h_, sets_[0].down_weights, false);
    const std::vector<double> expected = reference_values(r, hidden_);
    std::vector<double> found(expected.size());
    std::vector<std::uint16_t> row(static_cast<std::size_t>(hidden_));
    for (std::size_t p = 0; p < picks_.size(); ++p) {
      copy_to_host(row.data(), y_.data() + static_cast<std::size_t>(picks_[p].row) * row.size(), row.size() * 2);
      for (std::size_t i = 0; i < row.size(); ++i) found[p * row.size() + i] = bf16_to_double(row[i]);
    }
    return finish(compare(expected, found, mxfp4_ ? 1e-2 : 5e-3, options), reference_error(r, expected, hidden_));
  }

  GroupedKernel kernel_;
  int sm_count_, hidden_, inter_;
  bool mxfp4_, up_, down_;
  GroupedLayout layout_;
  DeviceBuffer<std::int32_t> offset_, count_;
  DeviceBuffer<std::uint8_t> x_, h_;
  DeviceBuffer<float> x_scales_, h_scales_;
  DeviceBuffer<std::uint16_t> y_;
  std::vector<Set> sets_;
  std::vector<GroupedPick> picks_;
};

class MoeGemmLauncher final : public Launcher {
 public:
  const Family& family() const override;
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape& shape) const override {
    if (gpu.cc_major < 9) return {};
    if (gpu.cc_major != 9) return {"portable"};
    if (shape.text("weights") == "mxfp4") return {"sm90", "portable"};
    const bool many = shape.number("rows") >= 256 * shape.number("experts");
    return many ? std::vector<std::string>{"sm90_cluster", "sm90", "portable"} : std::vector<std::string>{"sm90", "sm90_cluster", "portable"};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string& implementation,
                                const PrepareOptions& options) const override {
    const GroupedKernel kernel = implementation == "portable" ? GroupedKernel::portable
                                 : implementation == "sm90"   ? GroupedKernel::sm90
                                                              : GroupedKernel::sm90_cluster;
    return std::make_unique<GroupedCase>(gpu, shape, kernel, options);
  }
};

}  // namespace

const Family& MoeGemmLauncher::family() const { return moe_gemm_family(); }

void launch_grouped_up(const GroupedProduct& product, bool mxfp4, GroupedKernel kernel, int sm_count, Stream stream) {
  launch(product, true, mxfp4, kernel, sm_count, stream);
}
void launch_grouped_down(const GroupedProduct& product, bool mxfp4, GroupedKernel kernel, int sm_count, Stream stream) {
  launch(product, false, mxfp4, kernel, sm_count, stream);
}

const Launcher& moe_gemm_launcher() {
  static const MoeGemmLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
