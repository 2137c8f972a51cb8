// The chain of the expert side and its check: every stage against a reference on what the stage before really wrote.
#include <algorithm>
#include <cmath>

#include "kernels/device.hpp"
#include "kernels/formats.hpp"
#include "kernels/lt_product.hpp"
#include "kernels/moe_gemm_reference.cuh"
#include "kernels/moe_gemm_weights.hpp"
#include "kernels/permute.hpp"
#include "kernels/permute_device.hpp"
#include "kernels/route.hpp"
#include "kernels/route_device.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace {

constexpr int align = 8;

class MoeLayerCase final : public Case {
 public:
  MoeLayerCase(const GpuEnvironment& gpu, const Shape& shape, GroupedKernel kernel, const PrepareOptions& options)
      : sm_count_(gpu.sm_count), kernel_(kernel), tokens_(static_cast<int>(shape.number("tokens"))), hidden_(static_cast<int>(shape.number("hidden"))),
        inter_(static_cast<int>(shape.number("inter"))), experts_(static_cast<int>(shape.number("experts"))), top_k_(static_cast<int>(shape.number("top_k"))),
        mxfp4_(shape.text("weights") == "mxfp4"), pitch_((tokens_ * top_k_ + experts_ * (align - 1) + 127) / 128 * 128),
        router_(gpu, {tokens_, experts_, hidden_, 1, LtMath::bf16, true}) {
    const auto tokens = static_cast<std::size_t>(tokens_), hidden = static_cast<std::size_t>(hidden_), inter = static_cast<std::size_t>(inter_);
    const auto experts = static_cast<std::size_t>(experts_), choices = tokens * static_cast<std::size_t>(top_k_), rows = static_cast<std::size_t>(pitch_);
    x_ = DeviceBuffer<std::uint16_t>(tokens * hidden);
    router_weights_ = DeviceBuffer<std::uint16_t>(experts * hidden);
    fill_bf16_normal(x_.data(), x_.size(), 1.0f, options.seed + 1);
    fill_bf16_normal(router_weights_.data(), router_weights_.size(), 1.0f / std::sqrt(static_cast<float>(hidden_)), options.seed + 2);
    bias_ = DeviceBuffer<float>(experts);
    fill_f32_normal(bias_.data(), experts, 0.05f, options.seed + 3);
    logits_ = DeviceBuffer<float>(tokens * experts);
    weights_ = DeviceBuffer<float>(choices);
    ids_ = DeviceBuffer<std::int32_t>(choices);
    rank_ = DeviceBuffer<std::int32_t>(choices);
    position_ = DeviceBuffer<std::int32_t>(choices);
    count_ = DeviceBuffer<std::int32_t>(experts);
    offset_ = DeviceBuffer<std::int32_t>(experts);
    base_ = DeviceBuffer<std::int32_t>(static_cast<std::size_t>(positions_blocks) * experts);
    codes_ = DeviceBuffer<std::uint8_t>(rows * hidden);
    scales_ = DeviceBuffer<float>(rows * (hidden / 128) + 128);
    h_ = DeviceBuffer<std::uint8_t>(rows * inter);
    h_scales_ = DeviceBuffer<float>(rows * (inter / 128) + 128);
    rows_ = DeviceBuffer<std::uint16_t>(rows * hidden);
    y_ = DeviceBuffer<std::uint16_t>(tokens * hidden);
    const std::size_t touched = std::min(choices, experts) * 3 * hidden * inter * (mxfp4_ ? 17 : 32) / 32;  // at most
    for (int set = 0; set < std::min(sets_needed(options, touched), 8); ++set) sets_.push_back(make_set(options.seed + 100 + 10 * static_cast<std::uint64_t>(set)));
    router_.choose({router_operands()});
  }

  int sets() const override { return static_cast<int>(sets_.size()); }
  void launch(int set, Stream stream) override {
    const Set& one = sets_[static_cast<std::size_t>(set)];
    router_.run(router_operands(), stream);
    launch_route_tail(tokens_, experts_, top_k_, logits_.data(), bias_.data(), ids_.data(), weights_.data(), stream);
    launch_positions(permutation(), stream);
    launch_scatter(permutation(), x_.data(), {codes_.data(), scales_.data(), pitch_}, stream);
    launch_grouped_up(one.up, mxfp4_, kernel_, sm_count_, stream);
    launch_grouped_down(one.down, mxfp4_, kernel_, sm_count_, stream);
    launch_unpermute(permutation(), rows_.data(), weights_.data(), nullptr, y_.data(), stream);
  }
  std::string detail() const override { return "router " + router_.detail(); }

  CheckResult check(const CheckOptions& options) override {
    poison(y_.data(), y_.bytes());
    poison(rows_.data(), rows_.bytes());
    poison(h_.data(), h_.bytes());
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    launch(0, nullptr);
    const std::vector<std::int32_t> ids = ids_.to_host(), position = position_.to_host();
    const std::vector<float> weights = weights_.to_host(), logits = logits_.to_host(), bias = bias_.to_host();
    std::vector<double> expected, found;
    std::vector<GroupedPick> picks;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::size_t token = i == 0 ? static_cast<std::size_t>(tokens_) - 1 : random_bits(options.seed, i) % static_cast<std::size_t>(tokens_);
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(token) * experts_;
      const Routing routing = reference_route({begin, begin + experts_}, {bias.begin(), bias.end()}, top_k_);
      std::vector<double> rows, factors;
      std::vector<std::int32_t> order;
      for (int choice = 0; choice < top_k_; ++choice) {
        const std::size_t at = token * static_cast<std::size_t>(top_k_) + static_cast<std::size_t>(choice);
        expected.push_back(routing.weights[static_cast<std::size_t>(choice)] * (1 + routing.ids[static_cast<std::size_t>(choice)]));
        found.push_back(static_cast<double>(weights[at]) * (1 + ids[at]));
        const std::vector<double> row = values_of(rows_, static_cast<std::size_t>(position[at]));
        rows.insert(rows.end(), row.begin(), row.end());
        factors.push_back(weights[at]);
        order.push_back(choice);
        picks.push_back({ids[at], position[at]});
      }
      const std::vector<double> y = reference_unpermute(rows, order, factors, std::vector<double>(static_cast<std::size_t>(hidden_), 0.0), hidden_), mine = values_of(y_, token);
      expected.insert(expected.end(), y.begin(), y.end());
      found.insert(found.end(), mine.begin(), mine.end());
    }
    CheckResult result = both(compare(expected, found, 5e-3, options), both(check_up(picks), check_down(picks)));
    if (result.ok && count_nan_bf16(y_.data(), y_.size())) {
      result.ok = false;
      result.note = "not every token was written";
    }
    return result;
  }

 private:
  struct Set {
    ExpertWeights up_weights, down_weights;
    GroupedProduct up, down;
  };
  Set make_set(std::uint64_t seed) {
    Set set;
    set.up_weights = random_expert_weights(experts_, 2 * inter_, hidden_, mxfp4_, seed);
    set.down_weights = random_expert_weights(experts_, hidden_, inter_, mxfp4_, seed + 5);
    const auto fill = [&](GroupedProduct& product, const ExpertWeights& weights, int weight_rows, int depth) {
      product.experts = experts_;
      product.weight_rows = weight_rows;
      product.depth = depth;
      product.offset = offset_.data();
      product.count = count_.data();
      product.token_pitch = product.out_pitch = pitch_;
      product.weight_scales = weights.scales.data();
      product.packed = weights.packed.data();
    };
    fill(set.up, set.up_weights, 2 * inter_, hidden_);
    set.up.token_scales = scales_.data();
    set.up.out_codes = h_.data();
    set.up.out_scales = h_scales_.data();
    make_grouped_maps(set.up, codes_.data(), pitch_, set.up_weights.codes.data());
    fill(set.down, set.down_weights, hidden_, inter_);
    set.down.token_scales = h_scales_.data();
    set.down.out = rows_.data();
    make_grouped_maps(set.down, h_.data(), pitch_, set.down_weights.codes.data());
    return set;
  }
  LtOperands router_operands() { return {x_.data(), router_weights_.data(), nullptr, nullptr, logits_.data()}; }
  Permutation permutation() const {
    return {tokens_, hidden_, experts_, top_k_, align, ids_.data(), rank_.data(), position_.data(), count_.data(), offset_.data(), base_.data()};
  }
  std::vector<double> values_of(const DeviceBuffer<std::uint16_t>& matrix, std::size_t row) const {
    std::vector<std::uint16_t> raw(static_cast<std::size_t>(hidden_));
    copy_to_host(raw.data(), matrix.data() + row * raw.size(), raw.size() * 2);
    std::vector<double> values(raw.size());
    std::transform(raw.begin(), raw.end(), values.begin(), bf16_to_double);
    return values;
  }
  std::vector<double> reference_of(const GroupedProduct& product, const std::uint8_t* tokens, const std::uint8_t* codes, bool up, const std::vector<GroupedPick>& picks, int outputs) const {
    GroupedReference reference;
    reference.product = product;
    reference.tokens = tokens;
    reference.codes = codes;
    reference.up = up;
    const DeviceBuffer<GroupedPick> on_device{std::span<const GroupedPick>(picks)};
    DeviceBuffer<double> out(picks.size() * static_cast<std::size_t>(outputs));
    grouped_reference_kernel<<<dim3(static_cast<unsigned>((outputs + 7) / 8), static_cast<unsigned>(picks.size())), 256>>>(reference, on_device.data(), outputs, out.data());
    RACKCAST_LAUNCH_CHECK();
    return out.to_host();
  }
  // Requantised: what exceeds half a step of e4m3 is an error.
  CheckResult check_up(const std::vector<GroupedPick>& picks) const {
    const std::vector<double> expected = reference_of(sets_[0].up, codes_.data(), sets_[0].up_weights.codes.data(), true, picks, inter_);
    const std::vector<std::uint8_t> codes = h_.to_host();
    const std::vector<float> scales = h_scales_.to_host();
    std::vector<double> found(expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto row = static_cast<std::size_t>(picks[i / static_cast<std::size_t>(inter_)].row), column = i % static_cast<std::size_t>(inter_);
      const double scale = scales[column / 128 * static_cast<std::size_t>(pitch_) + row];
      const double difference = e4m3_value(codes[row * static_cast<std::size_t>(inter_) + column]) * scale - expected[i];
      const double allowed = e4m3_step(std::abs(expected[i] / scale)) * scale / 2;
      found[i] = std::abs(difference) <= allowed ? expected[i] : expected[i] + std::copysign(std::abs(difference) - allowed, difference);
    }
    return compare(expected, found, mxfp4_ ? 1e-2 : 5e-3, {});
  }
  CheckResult check_down(const std::vector<GroupedPick>& picks) const {
    const std::vector<double> expected = reference_of(sets_[0].down, h_.data(), sets_[0].down_weights.codes.data(), false, picks, hidden_);
    std::vector<double> found;
    for (const GroupedPick& pick : picks) {
      const std::vector<double> row = values_of(rows_, static_cast<std::size_t>(pick.row));
      found.insert(found.end(), row.begin(), row.end());
    }
    return compare(expected, found, mxfp4_ ? 1e-2 : 5e-3, {});
  }

  int sm_count_;
  GroupedKernel kernel_;
  int tokens_, hidden_, inter_, experts_, top_k_;
  bool mxfp4_;
  int pitch_;
  LtProduct router_;
  DeviceBuffer<std::uint16_t> x_, router_weights_, rows_, y_;
  DeviceBuffer<float> bias_, logits_, weights_, scales_, h_scales_;
  DeviceBuffer<std::int32_t> ids_, rank_, position_, count_, offset_, base_;
  DeviceBuffer<std::uint8_t> codes_, h_;
  std::vector<Set> sets_;
};

class MoeLayerLauncher final : public Launcher {
 public:
  const Family& family() const override { return moe_layer_family(); }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape&) const override {
    if (gpu.cc_major < 9) return {};
    return gpu.cc_major == 9 ? std::vector<std::string>{"sm90", "portable"} : std::vector<std::string>{"portable"};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string& implementation, const PrepareOptions& options) const override {
    return std::make_unique<MoeLayerCase>(gpu, shape, implementation == "sm90" ? GroupedKernel::sm90 : GroupedKernel::portable, options);
  }
};

}  // namespace

const Launcher& moe_layer_launcher() {
  static const MoeLayerLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
