// all_to_all by NCCL's two-sided calls, the baselines. Rows are packed into staging stripes with the dispatch kernel,
// moved by NCCL, and summed with the combine kernel; the receiving side is laid out like a window.
#include "kernels/all_to_all.hpp"
#include "kernels/all_to_all_cases.hpp"
#include "kernels/all_to_all_reference.hpp"
#include "kernels/chain_timing.hpp"
#include "kernels/draws.hpp"
#include "kernels/nccl_api.hpp"
#include "sim/base/error.hpp"

namespace rackcast::a2a {

using namespace kernels;

namespace {

constexpr uint32_t only_epoch = 1;  // without flags nothing tells epochs apart

class NcclCase final : public Case {
 public:
  NcclCase(const GpuEnvironment& gpu, const kernels::Shape& shape, const PrepareOptions& options)
      : shape_(shape), s_(a2a_shape(shape)), comm_(*gpu.comm), api_(comm_.nccl()), seed_(options.seed), part_(shape.text("part")),
        exact_(shape.text("path") == "sendrecv"), at_("all_to_all " + shape.key()), stripe_(s_.tokens_max * s_.dispatch_row_stride()),
        back_stripe_(s_.tokens_max * s_.combine_row_bytes()), memory_(s_, comm_.rank(), draw_gain(s_, options.seed)),
        window_(static_cast<std::size_t>(s_.window_bytes())), staging_(static_cast<std::size_t>(stripe_) * stripes()),
        back_(static_cast<std::size_t>(back_stripe_) * stripes()), received_(static_cast<std::size_t>(s_.ranks)), scratch_(1) {
    if (!exact_ && !api_.AlltoAll) throw Unavailable("this NCCL has no ncclAlltoAll (2.28 and later have)");
    load_all_kernels();
    load_linger();
    launch_.blocks = blocks_of(gpu, shape);
    // Window addresses such that row (rank, slot) of "peer" d is row slot of stripe d + rank: stripes lie one after another.
    for (int d = 0; d < s_.ranks; ++d) {
      to_staging_.base[d] = bytes(staging_) + d * stripe_ - s_.dispatch_row(only_epoch, 0, 0);
      from_back_.base[d] = bytes(back_) + d * back_stripe_ - s_.combine_row(only_epoch, 0, 0);
    }
    RACKCAST_CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&host_counts_), 2 * sizeof(uint32_t) * static_cast<std::size_t>(s_.ranks)));
    load_tokens(0);
    comm_.barrier(at_ + ": prepared");
  }
  ~NcclCase() override {
    cudaDeviceSynchronize();
    if (host_counts_) cudaFreeHost(host_counts_);
  }

  void launch(int, Stream stream) override {
    if (part_ != "combine") dispatch(stream);
    if (part_ != "dispatch") combine(stream);
  }
  CheckResult check(const CheckOptions& options) override {
    load_tokens(options.seed);
    comm_.barrier(at_ + ": check");
    const Stream stream = stream_.get();
    dispatch(stream);
    if (!exact_) exchange_counts(stream);
    launch_set_flags(s_, bytes(window_), only_epoch, received_.data(), stream);
    Launch local = launch_;
    local.peers.base[comm_.rank()] = bytes(window_);
    launch_experts(local, only_epoch, stream);
    combine(stream);
    comm_.wait(stream);
    return bits_equal(memory_.differences(stream), options, "rank " + std::to_string(comm_.rank()));
  }
  std::optional<OwnTiming> measure() override {
    OwnTiming timing;
    const auto one = [&](Stream stream) { launch(0, stream); };
    const auto meet = [&](Stream stream) { meet_all(stream); };
    if (exact_) {
      timing.mode = "eager";
      EagerSamples samples = time_eager(&comm_, at_, one, meet, 20);
      timing.samples_us = std::move(samples.time_us);
      timing.post_us = std::move(samples.post_us);
    } else {
      timing.mode = "chain";
      timing.samples_us = time_chain(comm_, at_, one, meet, {}, stream_.get(), launches_);
    }
    return timing;
  }
  std::optional<Work> work() const override { return work_of(shape_, tokens_); }
  std::string detail() const override { return exact_ ? "counts exchanged and read by the host in every dispatch" : "chain of " + std::to_string(launches_); }
  std::string transport() const override { return comm_.transport(); }

 private:
  static char* bytes(const DeviceBytes& memory) { return reinterpret_cast<char*>(memory.data()); }
  std::size_t stripes() const { return static_cast<std::size_t>(2 * s_.ranks - 1); }
  char* sent_stripe(int peer) const { return bytes(staging_) + (peer + comm_.rank()) * stripe_; }
  char* back_stripe(int peer) const { return bytes(back_) + (peer + comm_.rank()) * back_stripe_; }

  void load_tokens(uint64_t draw) {
    tokens_.clear();
    for (int r = 0; r < s_.ranks; ++r)
      tokens_.push_back(draw_tokens(s_, shape_.text("routing"), s_.tokens_max, (seed_ + draw) * 4096 + static_cast<uint64_t>(r)));
    memory_.load(tokens_[static_cast<std::size_t>(comm_.rank())], (seed_ + draw) * 4096 + 2048 + static_cast<uint64_t>(comm_.rank()));
    launch_.state = memory_.state();
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  }

  void exchange_counts(Stream stream) {
    RACKCAST_NCCL_CHECK(api_, GroupStart());
    for (int p = 0; p < s_.ranks; ++p) {
      RACKCAST_NCCL_CHECK(api_, Send(memory_.sent() + p, 1, ncclUint32, p, comm_.nccl_comm(), stream));
      RACKCAST_NCCL_CHECK(api_, Recv(received_.data() + p, 1, ncclUint32, p, comm_.nccl_comm(), stream));
    }
    RACKCAST_NCCL_CHECK(api_, GroupEnd());
  }

  void dispatch(Stream stream) {
    Launch pack = launch_;
    pack.peers = to_staging_;
    launch_dispatch(pack, false, false, stream);
    char* to = bytes(window_) + s_.dispatch_row(only_epoch, 0, 0);
    if (!exact_) {
      RACKCAST_NCCL_CHECK(api_, AlltoAll(sent_stripe(0), to, static_cast<std::size_t>(stripe_), ncclUint8, comm_.nccl_comm(), stream));
      return;
    }
    // The host has to know the counts before it can ask for exact sends.
    exchange_counts(stream);
    const std::size_t count_bytes = sizeof(uint32_t) * static_cast<std::size_t>(s_.ranks);
    RACKCAST_CUDA_CHECK(cudaMemcpyAsync(host_counts_, memory_.sent(), count_bytes, cudaMemcpyDeviceToHost, stream));
    RACKCAST_CUDA_CHECK(cudaMemcpyAsync(host_counts_ + s_.ranks, received_.data(), count_bytes, cudaMemcpyDeviceToHost, stream));
    comm_.wait(stream);
    RACKCAST_NCCL_CHECK(api_, GroupStart());
    for (int p = 0; p < s_.ranks; ++p) {
      const auto row = static_cast<std::size_t>(s_.dispatch_row_stride());
      RACKCAST_NCCL_CHECK(api_, Send(sent_stripe(p), host_counts_[p] * row, ncclUint8, p, comm_.nccl_comm(), stream));
      RACKCAST_NCCL_CHECK(api_, Recv(to + p * stripe_, host_counts_[s_.ranks + p] * row, ncclUint8, p, comm_.nccl_comm(), stream));
    }
    RACKCAST_NCCL_CHECK(api_, GroupEnd());
  }

  void combine(Stream stream) {
    char* from = bytes(window_) + s_.combine_row(only_epoch, 0, 0);
    if (!exact_) {
      RACKCAST_NCCL_CHECK(api_, AlltoAll(from, back_stripe(0), static_cast<std::size_t>(back_stripe_), ncclUint8, comm_.nccl_comm(), stream));
    } else {
      RACKCAST_NCCL_CHECK(api_, GroupStart());
      for (int p = 0; p < s_.ranks; ++p) {
        const auto row = static_cast<std::size_t>(s_.combine_row_bytes());
        RACKCAST_NCCL_CHECK(api_, Send(from + p * back_stripe_, host_counts_[s_.ranks + p] * row, ncclUint8, p, comm_.nccl_comm(), stream));
        RACKCAST_NCCL_CHECK(api_, Recv(back_stripe(p), host_counts_[p] * row, ncclUint8, p, comm_.nccl_comm(), stream));
      }
      RACKCAST_NCCL_CHECK(api_, GroupEnd());
    }
    Launch reduce = launch_;
    reduce.peers = from_back_;
    launch_combine(reduce, false, false, stream);
  }

  void meet_all(Stream stream) {
    RACKCAST_NCCL_CHECK(api_, AllReduce(scratch_.data(), scratch_.data(), 1, ncclFloat, ncclSum, comm_.nccl_comm(), stream));
    launch_linger(linger_for_graph_ns, stream);
  }

  kernels::Shape shape_;
  Shape s_;
  Comm& comm_;
  const NcclApi& api_;
  uint64_t seed_;
  std::string part_;
  bool exact_;
  std::string at_;
  int64_t stripe_, back_stripe_;
  RankMemory memory_;
  DeviceBytes window_, staging_, back_;
  DeviceBuffer<uint32_t> received_;
  DeviceBuffer<float> scratch_;
  StreamOwner stream_;
  Launch launch_;
  PeerTable to_staging_{}, from_back_{};
  uint32_t* host_counts_ = nullptr;  // pinned: sent to each, then received from each
  std::vector<RankTokens> tokens_;
  int launches_ = 0;
};

}  // namespace

std::unique_ptr<Case> nccl_case(const GpuEnvironment& gpu, const kernels::Shape& shape, const PrepareOptions& options) {
  return std::make_unique<NcclCase>(gpu, shape, options);
}

}  // namespace rackcast::a2a
