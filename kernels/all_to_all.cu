// Launcher of all_to_all, and the case of virtual ranks.
#include "kernels/all_to_all.hpp"

#include <algorithm>

#include "kernels/all_to_all_cases.hpp"
#include "kernels/all_to_all_virtual.hpp"
#include "kernels/draws.hpp"

namespace rackcast::a2a {

using namespace kernels;

int blocks_of(const GpuEnvironment& gpu, const kernels::Shape& shape) {
  const auto ctas = static_cast<int>(shape.number("ctas"));
  return ctas > 0 ? std::min(ctas, 2 * gpu.sm_count) : 2 * gpu.sm_count;
}

Work work_of(const kernels::Shape& shape, const std::vector<RankTokens>& tokens) {
  Work work = all_to_all_family().work(shape);
  const Shape s = a2a_shape(shape);
  const Volume v = volume(s, tokens);
  const auto busiest = static_cast<double>(std::max(v.egress_max(), v.ingress_max()));
  const std::string& part = shape.text("part");
  work.bytes_link = busiest * ((part != "combine" ? static_cast<double>(s.dispatch_row_bytes()) : 0) +
                               (part != "dispatch" ? static_cast<double>(s.combine_row_bytes()) : 0));
  work.touched = static_cast<double>(v.copies) / static_cast<double>(tokens.size());
  return work;
}

CheckResult bits_equal(unsigned long long differences, const CheckOptions& options, const std::string& where) {
  if (options.inject_fault) ++differences;
  CheckResult result;
  result.ok = differences == 0;
  result.rel_l2 = differences == 0 ? 0 : 1;
  if (!result.ok) result.note = std::to_string(differences) + " values differ from the reference, " + where;
  return result;
}

namespace {

class VirtualCase final : public Case {
 public:
  VirtualCase(const GpuEnvironment& gpu, const kernels::Shape& shape, const PrepareOptions& options)
      : shape_(shape), s_(a2a_shape(shape)), seed_(options.seed), blocks_(blocks_of(gpu, shape)), part_(shape.text("part")),
        ranks_(s_, options.seed) {}

  // Every launch of pack and reduce is another rank's, with its own input and rows.
  int sets() const override { return part_ == "pair" ? 1 : s_.ranks; }
  void launch(int set, Stream stream) override {
    if (part_ == "pack") ranks_.pack(set, blocks_, stream);
    else if (part_ == "reduce") ranks_.reduce(set, blocks_, stream);
    else ranks_.round_trip({}, false, stream);
  }
  CheckResult check(const CheckOptions& options) override {
    StreamOwner stream;
    DeviceBuffer<Fault> fault(1);
    RACKCAST_CUDA_CHECK(cudaMemset(fault.data(), 0, fault.bytes()));
    Knobs knobs;
    knobs.fault = fault.data();
    unsigned long long differences = 0;
    for (uint64_t e = 0; e < 3; ++e) {  // the last one with every stripe full, as it is then timed
      Draws draws(seed_ + e);
      std::vector<int> tokens;
      for (int r = 0; r < s_.ranks; ++r)
        tokens.push_back(e == 2 ? s_.tokens_max : static_cast<int>(draws.below(static_cast<uint64_t>(s_.tokens_max) + 1)));
      ranks_.load(shape_.text("routing"), tokens, seed_ * 8 + e);
      RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
      ranks_.round_trip(knobs, false, stream.get());
      differences += ranks_.differences(stream.get());
      if (fault.to_host()[0].set) return bits_equal(1, options, "a flag never came");
    }
    // Leaves both halves of the windows full of real rows for the timing.
    ranks_.round_trip(knobs, false, stream.get());
    RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
    return bits_equal(differences, options, "virtual ranks");
  }
  std::string transport() const override { return "loopback"; }
  std::string detail() const override {
    return std::to_string(part_ == "pair" ? ranks_.blocks_per_rank(false) * s_.ranks : blocks_) + " blocks";
  }

 private:
  kernels::Shape shape_;
  Shape s_;
  uint64_t seed_;
  int blocks_;
  std::string part_;
  VirtualRanks ranks_;
};

}  // namespace

std::unique_ptr<Case> virtual_case(const GpuEnvironment& gpu, const kernels::Shape& shape, const PrepareOptions& options) {
  return std::make_unique<VirtualCase>(gpu, shape, options);
}

}  // namespace rackcast::a2a

namespace rackcast::kernels {

namespace {

class AllToAllLauncher final : public Launcher {
 public:
  const Family& family() const override { return all_to_all_family(); }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape& shape) const override {
    const bool together = gpu.comm && gpu.comm->ranks() == shape.number("ranks");
    const bool is_virtual = shape.text("path") == "virtual";
    if (is_virtual != !gpu.comm) return {};
    if (is_virtual && shape.text("part") == "pair" && a2a::blocks_together(false) < shape.number("ranks")) return {};
    return is_virtual || together ? std::vector<std::string>{"portable"} : std::vector<std::string>{};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    if (shape.text("path") == "virtual") return a2a::virtual_case(gpu, shape, options);
    if (shape.text("path") == "lsa") return a2a::one_sided_case(gpu, shape, options);
    return a2a::nccl_case(gpu, shape, options);
  }
};

}  // namespace

const Launcher& all_to_all_launcher() {
  static const AllToAllLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
