// Floors: two nodes of a graph, 3-4 us; 4 MB of weights 0.9 us; the product's flops never count.
#include "kernels/route.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/lt_product.hpp"
#include "kernels/route_device.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace {

// A warp a token; a lane holds every 32nd expert. top_k rounds of: best of the lane, best of the warp, strike it out.
__global__ void __launch_bounds__(128) route_tail_kernel(int tokens, int experts, int top_k, const float* logits, const float* bias, std::int32_t* ids, float* weights) {
  constexpr int slots = 16;
  const int token = static_cast<int>(blockIdx.x) * 4 + static_cast<int>(threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (token >= tokens) return;
  float score[slots], value[slots];
#pragma unroll
  for (int i = 0; i < slots; ++i) {
    const int expert = i * 32 + lane;
    const float logit = expert < experts ? logits[static_cast<std::size_t>(token) * experts + expert] : 0.0f;
    score[i] = sqrtf(logit > 30.0f ? logit : log1pf(__expf(logit)));
    value[i] = expert < experts ? score[i] + __ldg(bias + expert) : -1e30f;
  }
  float sum = 0, my_score = 0;
  int my_id = 0;
  for (int round = 0; round < top_k; ++round) {
    float best = -1e30f, best_score = 0;
    int best_id = 1 << 30;
#pragma unroll
    for (int i = 0; i < slots; ++i)
      if (value[i] > best) best = value[i], best_score = score[i], best_id = i * 32 + lane;
    for (int step = 16; step > 0; step >>= 1) {
      const float other = __shfl_xor_sync(0xffffffffu, best, step), other_score = __shfl_xor_sync(0xffffffffu, best_score, step);
      const int other_id = __shfl_xor_sync(0xffffffffu, best_id, step);
      if (other > best || (other == best && other_id < best_id)) best = other, best_score = other_score, best_id = other_id;
    }
    sum += best_score;
    if (lane == round) my_score = best_score, my_id = best_id;
#pragma unroll
    for (int i = 0; i < slots; ++i)
      if (i * 32 + lane == best_id) value[i] = -1e30f;
  }
  if (lane < top_k) {
    ids[token * top_k + lane] = my_id;
    weights[token * top_k + lane] = 1.5f * my_score / sum;
  }
}

class RouteCase final : public Case {
 public:
  RouteCase(const GpuEnvironment& gpu, const Shape& shape, const PrepareOptions& options)
      : tokens_(static_cast<int>(shape.number("tokens"))), hidden_(static_cast<int>(shape.number("hidden"))), experts_(static_cast<int>(shape.number("experts"))),
        top_k_(static_cast<int>(shape.number("top_k"))), product_(gpu, {tokens_, experts_, hidden_, 1, LtMath::bf16, true}),
        x_(static_cast<std::size_t>(tokens_) * hidden_), logits_(static_cast<std::size_t>(tokens_) * experts_), bias_(static_cast<std::size_t>(experts_)),
        weights_(static_cast<std::size_t>(tokens_) * top_k_), ids_(weights_.size()) {
    fill_bf16_normal(x_.data(), x_.size(), 1.0f, options.seed + 1);
    fill_f32_normal(bias_.data(), bias_.size(), 0.05f, options.seed + 2);
    const std::size_t count = static_cast<std::size_t>(experts_) * hidden_;
    for (int set = 0; set < sets_needed(options, count * 2); ++set) {
      matrices_.emplace_back(count);
      fill_bf16_normal(matrices_.back().data(), count, 1.0f / std::sqrt(static_cast<float>(hidden_)), options.seed + 10 + static_cast<std::uint64_t>(set));
    }
    std::vector<LtOperands> turns;
    for (int set = 0; set < this->sets(); ++set) turns.push_back(operands(set));
    product_.choose(turns);
  }
  int sets() const override { return static_cast<int>(matrices_.size()); }
  void launch(int set, Stream stream) override {
    product_.run(operands(set), stream);
    launch_route_tail(tokens_, experts_, top_k_, logits_.data(), bias_.data(), ids_.data(), weights_.data(), stream);
  }
  std::string detail() const override { return product_.detail(); }
  CheckResult check(const CheckOptions& options) override {
    poison(weights_.data(), weights_.bytes());
    poison(ids_.data(), ids_.bytes());
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    launch(0, nullptr);
    const std::vector<std::int32_t> ids = ids_.to_host();
    const std::vector<float> weights = weights_.to_host(), bias = bias_.to_host(), logits = logits_.to_host();
    const std::vector<std::uint16_t> x = x_.to_host(), matrix = matrices_[0].to_host();
    std::vector<double> expected, found;
    for (std::uint64_t pick = 0; pick < 8; ++pick) {
      const std::size_t token = pick == 0 ? 0 : random_bits(options.seed, pick) % static_cast<std::size_t>(tokens_);
      const auto width = static_cast<std::size_t>(hidden_), experts = static_cast<std::size_t>(experts_), top_k = static_cast<std::size_t>(top_k_);
      for (std::size_t e = 0; e < experts; e += 37) {  // the product, sampled
        double sum = 0;
        for (std::size_t i = 0; i < width; ++i) sum += bf16_to_double(x[token * width + i]) * bf16_to_double(matrix[e * width + i]);
        expected.push_back(sum);
        found.push_back(logits[token * experts + e]);
      }
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(token * experts);
      const Routing reference = reference_route({begin, begin + experts_}, {bias.begin(), bias.end()}, top_k_);
      for (std::size_t i = 0; i < top_k; ++i) {
        expected.push_back(reference.weights[i]);
        found.push_back(weights[token * top_k + i]);
        expected.push_back(0.01 * reference.ids[i]);
        found.push_back(0.01 * ids[token * top_k + i]);
      }
    }
    return compare(expected, found, 1e-3, options);
  }

 private:
  LtOperands operands(int set) const { return {x_.data(), matrices_[static_cast<std::size_t>(set)].data(), nullptr, nullptr, const_cast<float*>(logits_.data())}; }
  int tokens_, hidden_, experts_, top_k_;
  LtProduct product_;
  DeviceBuffer<std::uint16_t> x_;
  DeviceBuffer<float> logits_, bias_, weights_;
  DeviceBuffer<std::int32_t> ids_;
  std::vector<DeviceBuffer<std::uint16_t>> matrices_;
};

class RouteLauncher final : public Launcher {
 public:
  const Family& family() const override { return route_family(); }
  std::vector<std::string> implementations(const GpuEnvironment&, const Shape&) const override { return {"cublaslt"}; }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    return std::make_unique<RouteCase>(gpu, shape, options);
  }
};

}  // namespace

void launch_route_tail(int tokens, int experts, int top_k, const float* logits, const float* bias, std::int32_t* ids, float* weights, Stream stream) {
  RACKCAST_CHECK(experts <= 512 && top_k <= 32 && top_k <= experts, "a router that the tail does not do");
  route_tail_kernel<<<static_cast<unsigned>((tokens + 3) / 4), 128, 0, stream>>>(tokens, experts, top_k, logits, bias, ids, weights);
  RACKCAST_LAUNCH_CHECK();
}

const Launcher& route_launcher() {
  static const RouteLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
