// Top-k: scores of three distributions, launches, the check against a sort of the CPU.
#include <algorithm>

#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/topk_kernels.hpp"

namespace rackcast::kernels {
namespace {

__global__ void write_ascending(float* scores, std::int64_t stride, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x)
    scores[i] = -4.f + 8.f * static_cast<float>(i % static_cast<std::size_t>(stride)) / static_cast<float>(stride);
}
__global__ void write_ties(float* scores, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x) scores[i] = 0.75f;
}

class TopkCase final : public Case {
 public:
  TopkCase(const GpuEnvironment& gpu, const Shape& shape, const PrepareOptions& options) {
    p_.rows = static_cast<int>(shape.number("rows"));
    p_.count = static_cast<int>(shape.number("scores"));
    p_.stride = (p_.count + 3) / 4 * 4;
    p_.k = static_cast<int>(shape.number("k"));
    p_.group = static_cast<int>(shape.number("group"));
    cluster_ = topk_cluster(p_, gpu.sm_count);
    const std::size_t values = static_cast<std::size_t>(p_.rows) * static_cast<std::size_t>(p_.stride);
    sets_ = sets_needed(options, values * 4);
    scores_ = DeviceBuffer<float>(values * static_cast<std::size_t>(sets_));
    const std::string& distribution = shape.text("distribution");
    if (distribution == "gaussian") fill_f32_normal(scores_.data(), scores_.size(), 1.f, options.seed);
    else if (distribution == "ascending") write_ascending<<<1024, 256>>>(scores_.data(), p_.stride, scores_.size());
    else write_ties<<<1024, 256>>>(scores_.data(), scores_.size());
    RACKCAST_LAUNCH_CHECK();
    chosen_ = DeviceBuffer<std::int32_t>(static_cast<std::size_t>(p_.rows) * static_cast<std::size_t>(p_.k));
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  }

  int sets() const override { return sets_; }
  std::string detail() const override { return "cluster=" + std::to_string(cluster_); }
  void launch(int set, Stream stream) override { topk_select(params(set), cluster_, stream); }

  CheckResult check(const CheckOptions& options) override {
    poison(chosen_.data(), chosen_.bytes());
    launch(0, nullptr);
    CheckResult result{true, 0, 0, 0, ""};
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(p_.k));
    std::vector<float> scores(static_cast<std::size_t>(p_.count));
    for (int i = 0; i < std::min(4, p_.rows) && result.ok; ++i) {
      const auto row = static_cast<std::size_t>(i == 0 ? p_.rows - 1 : static_cast<int>(random_bits(options.seed, static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(p_.rows)));
      copy_to_host(chosen.data(), chosen_.data() + row * chosen.size(), chosen.size() * 4);
      copy_to_host(scores.data(), scores_.data() + row * static_cast<std::size_t>(p_.stride), scores.size() * 4);
      if (options.inject_fault) chosen[0] = chosen[1];
      result.note = topk_problem(scores, p_.group, chosen, p_.k);
      result.ok = result.note.empty();
    }
    result.rel_l2 = result.ok ? 0 : 1;
    return result;
  }

 private:
  TopkParams params(int set) const {
    TopkParams p = p_;
    p.scores = scores_.data() + static_cast<std::size_t>(set) * (scores_.size() / static_cast<std::size_t>(sets_));
    p.chosen = chosen_.data();
    return p;
  }

  TopkParams p_;
  int cluster_ = 1, sets_ = 1;
  DeviceBuffer<float> scores_;
  DeviceBuffer<std::int32_t> chosen_;
};

class TopkLauncher final : public Launcher {
 public:
  const Family& family() const override { return topk_family(); }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape&) const override {
    return gpu.cc_major >= 9 ? std::vector<std::string>{"portable"} : std::vector<std::string>{};  // clusters
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    return std::make_unique<TopkCase>(gpu, shape, options);
  }
};

}  // namespace

const Launcher& topk_launcher() {
  static const TopkLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
