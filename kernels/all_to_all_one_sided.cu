// all_to_all between GPUs by one-sided stores and loads: dispatch pushes rows into the peers' windows, combine pulls.
#include "kernels/all_to_all.hpp"
#include "kernels/all_to_all_cases.hpp"
#include "kernels/all_to_all_reference.hpp"
#include "kernels/chain_timing.hpp"
#include "kernels/draws.hpp"
#include "sim/base/error.hpp"

namespace rackcast::a2a {

using namespace kernels;

namespace {

class OneSidedCase final : public Case {
 public:
  OneSidedCase(const GpuEnvironment& gpu, const kernels::Shape& shape, const PrepareOptions& options)
      : shape_(shape), s_(a2a_shape(shape)), comm_(*gpu.comm), seed_(options.seed), part_(shape.text("part")), at_("all_to_all " + shape.key()),
        window_(comm_.make_window(static_cast<std::size_t>(s_.window_bytes()))), memory_(s_, comm_.rank(), draw_gain(s_, options.seed)), fault_(1) {
    RACKCAST_CHECK(s_.ranks <= peers_max, "more ranks than the table of windows holds");
    load_all_kernels();
    RACKCAST_CUDA_CHECK(cudaMemset(window_->local(), 0, static_cast<std::size_t>(s_.window_bytes())));
    RACKCAST_CUDA_CHECK(cudaMemset(fault_.data(), 0, fault_.bytes()));
    launch_.blocks = blocks_of(gpu, shape);
    for (int r = 0; r < s_.ranks; ++r) launch_.peers.base[r] = window_->peers()[static_cast<std::size_t>(r)];
    launch_.knobs.fault = fault_.data();
    load_tokens(0, false);
    comm_.barrier(at_ + ": prepared");  // nobody stores into a window before its owner has cleared it
  }
  ~OneSidedCase() override {
    cudaDeviceSynchronize();
  }

  void launch(int, Stream stream) override {
    if (part_ != "combine") launch_dispatch(launch_, true, true, stream);
    if (part_ != "dispatch") launch_combine(launch_, true, true, stream);
  }
  CheckResult check(const CheckOptions& options) override {
    level_epochs();
    unsigned long long differences = 0;
    for (uint64_t e = 0; e < 4; ++e) {
      load_tokens(options.seed + e, e < 3);  // the last one full, as it is then timed
      comm_.barrier(at_ + ": check");
      launch_dispatch(launch_, true, true, stream_.get());
      launch_experts(launch_, 0, stream_.get());
      launch_combine(launch_, true, true, stream_.get());
      comm_.wait(stream_.get());
      differences += memory_.differences(stream_.get());
    }
    const Fault fault = fault_.to_host()[0];
    if (fault.set) return bits_equal(differences + 1, options, fault_text(fault));
    return bits_equal(differences, options, "rank " + std::to_string(comm_.rank()));
  }
  std::optional<OwnTiming> measure() override {
    OwnTiming timing;
    timing.mode = "chain";
    timing.samples_us = time_chain(comm_, at_, [&](Stream stream) { launch(0, stream); }, [&](Stream stream) { meet(stream); }, {},
                                   stream_.get(), launches_);
    return timing;
  }
  std::optional<Work> work() const override { return work_of(shape_, tokens_); }
  std::string detail() const override { return std::to_string(launch_.blocks) + " blocks, chain of " + std::to_string(launches_); }
  std::string transport() const override { return comm_.transport(); }

 private:
  static std::string fault_text(const Fault& fault) {
    return "rank " + std::to_string(fault.rank) + " waited in vain for flag " + std::to_string(fault.kind) + " of rank " +
           std::to_string(fault.peer) + ", epoch " + std::to_string(fault.epoch) + ", saw " + std::to_string(fault.seen);
  }
  // Every rank draws all ranks' tokens, so that everyone knows the whole volume.
  void load_tokens(uint64_t draw, bool some) {
    tokens_.clear();
    for (int r = 0; r < s_.ranks; ++r) {
      const uint64_t seed = (seed_ + draw) * 4096 + static_cast<uint64_t>(r);
      const int tokens = some ? static_cast<int>(Draws(seed).below(static_cast<uint64_t>(s_.tokens_max) + 1)) : s_.tokens_max;
      tokens_.push_back(draw_tokens(s_, shape_.text("routing"), tokens, seed));
    }
    memory_.load(tokens_[static_cast<std::size_t>(comm_.rank())], (seed_ + draw) * 4096 + 2048 + static_cast<uint64_t>(comm_.rank()));
    launch_.state = memory_.state();
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  }
  void level_epochs() {
    comm_.wait(stream_.get());
    memory_.set_epoch(memory_.last_epoch());  // all ranks have launched the same
    comm_.barrier(at_ + ": level");
  }
  void meet(Stream stream) {
    launch_barrier(launch_, ++barriers_, linger_for_graph_ns, stream);
  }

  kernels::Shape shape_;
  Shape s_;
  Comm& comm_;
  uint64_t seed_;
  std::string part_, at_;
  std::unique_ptr<Window> window_;
  RankMemory memory_;
  DeviceBuffer<Fault> fault_;
  StreamOwner stream_;
  Launch launch_;
  std::vector<RankTokens> tokens_;
  uint32_t barriers_ = 0;
  int launches_ = 0;
};

}  // namespace

std::unique_ptr<Case> one_sided_case(const GpuEnvironment& gpu, const kernels::Shape& shape, const PrepareOptions& options) {
  return std::make_unique<OneSidedCase>(gpu, shape, options);
}

}  // namespace rackcast::a2a
