// kv_push: one case moves the blocks of a transfer from a source buffer to a destination buffer by one of four paths.
#include "kernels/kv_push.hpp"

#include <algorithm>
#include <cstdio>

#include "kernels/chain_timing.hpp"
#include "kernels/launcher.hpp"
#include "kernels/transfer.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {

namespace {

constexpr int64_t buffer_bytes_max = int64_t{2} << 30;
constexpr uint64_t linger_ns = 30'000;

class PinnedBytes {
 public:
  explicit PinnedBytes(std::size_t bytes) {
    if (bytes) RACKCAST_CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&data_), bytes));
  }
  ~PinnedBytes() {
    if (data_) cudaFreeHost(data_);
  }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
};

// Source and destination of a transfer as the acting rank sees them, and as their owners do.
struct Buffers {
  char* source = nullptr;
  char* destination = nullptr;
  char* staging_source = nullptr;       // beside the source, contiguous
  char* staging_destination = nullptr;  // beside the destination
};

class KvPushCase final : public Case {
 public:
  KvPushCase(const GpuEnvironment& gpu, const Shape& shape, const PrepareOptions& options)
      : transfer_(gpu.comm, "kv_push " + shape.key()), comm_(gpu.comm), path_(shape.text("path")), direction_(shape.text("direction")),
        bytes_(shape.number("bytes")), blocks_(shape.number("blocks")), seed_(options.seed), ctas_(2 * gpu.sm_count),
        from_(draw_places(bytes_, blocks_, buffer_bytes_max, options.seed + 1)), to_(draw_places(bytes_, blocks_, buffer_bytes_max, options.seed + 2)),
        pinned_places_(2 * sizeof(int64_t) * static_cast<std::size_t>(blocks_)), places_(2 * static_cast<std::size_t>(blocks_)) {
    load_block_kernels();
    load_linger();
    make_buffers();
    auto* places = reinterpret_cast<int64_t*>(pinned_places_.data());
    std::copy(from_.offset.begin(), from_.offset.end(), places);
    std::copy(to_.offset.begin(), to_.offset.end(), places + blocks_);
    places_.assign({places, 2 * static_cast<std::size_t>(blocks_)});
    list_ = {places_.data(), places_.data() + blocks_, blocks_, bytes_};
    for (int64_t i = 0; i < blocks_; ++i) {
      sources_.push_back(buffers_.source + from_.offset[static_cast<std::size_t>(i)]);
      destinations_.push_back(buffers_.destination + to_.offset[static_cast<std::size_t>(i)]);
      sizes_.push_back(static_cast<std::size_t>(bytes_));
    }
    if (owns_source()) fill_source(own_source_);
    if (owns_destination()) poison_destination();
    transfer_.meet("prepared");
  }
  ~KvPushCase() override { cudaDeviceSynchronize(); }

  void launch(int, Stream stream) override { move(stream); }
  CheckResult check(const CheckOptions& options) override {
    const Stream stream = stream_.get();
    if (acts()) move(stream);
    transfer_.wait(stream);
    transfer_.meet("moved");
    if (path_ == "staged" && owns_destination()) unpack(stream);
    transfer_.wait(stream);
    return owns_destination() ? arrival(compare(stream), options) : arrival(0, {});
  }
  std::optional<OwnTiming> measure() override {
    OwnTiming timing;
    timing.mode = "eager";
    // Only the acting rank works; the others come to the same meetings and report nothing.
    const auto linger = [&](Stream stream) { launch_linger(linger_ns, stream); };
    const auto idle = [](Stream) {};
    EagerSamples sent = acts() ? time_eager(comm_, transfer_.at(), [&](Stream s) { move(s); }, linger, 20)
                               : time_eager(comm_, transfer_.at(), idle, idle, 20);
    timing.samples_us = std::move(sent.time_us);
    timing.post_us = std::move(sent.post_us);
    char text[64];
    std::snprintf(text, sizeof text, "post %.4g to %.4g us by host core", sent.post_low_us, sent.post_high_us);
    host_calls_ = text;
    if (path_ == "staged") {
      const EagerSamples unpacked = owns_destination() ? time_eager(comm_, transfer_.at() + ": unpack", [&](Stream s) { unpack(s); }, linger, 20)
                                                       : time_eager(comm_, transfer_.at() + ": unpack", idle, idle, 20);
      const std::size_t samples = std::min(timing.samples_us.size(), unpacked.time_us.size());
      timing.samples_us.resize(samples);
      for (std::size_t i = 0; i < samples; ++i) timing.samples_us[i] += unpacked.time_us[i];
    }
    return timing;
  }
  std::string transport() const override {
    if (direction_ == "local") return "loopback";
    return direction_ == "push" || direction_ == "pull" ? comm_->transport() : "host";
  }
  std::string detail() const override {
    const char* call = comm_ && path_ == "copy" && peer_devices_known() ? "cudaMemcpyPeerAsync" : "";
    return *call && !host_calls_.empty() ? std::string(call) + ", " + host_calls_ : call + host_calls_;
  }

 private:
  bool between_ranks() const { return direction_ == "push" || direction_ == "pull"; }
  int rank() const { return transfer_.rank(); }
  bool acts() const { return between_ranks() ? rank() == (direction_ == "push" ? 0 : 1) : rank() == 0; }
  bool owns_source() const { return rank() == 0; }
  bool owns_destination() const { return between_ranks() ? rank() == 1 : rank() == 0; }
  bool peer_devices_known() const { return between_ranks() && comm_->device_of(0) >= 0 && comm_->device_of(1) >= 0; }

  void make_buffers() {
    const auto total = static_cast<std::size_t>(bytes_ * blocks_);
    const auto source = static_cast<std::size_t>(from_.buffer_bytes);
    const auto destination = static_cast<std::size_t>(to_.buffer_bytes);
    const std::size_t staging = path_ == "staged" ? total : 0;
    if (between_ranks()) {
      // The same layout on every rank: source, destination, staging.
      window_ = comm_->make_window(source + destination + staging);
      char* at_source = window_->peers()[0];
      char* at_destination = window_->peers()[1];
      buffers_ = {at_source, at_destination + source, at_source + source + destination, at_destination + source + destination};
      own_source_ = window_->local();
      return;
    }
    const bool to_host = direction_ == "to_host";
    const bool from_host = direction_ == "from_host";
    device_ = DeviceBytes((from_host ? 0 : source + staging) + (to_host ? 0 : destination + staging));
    host_ = std::make_unique<PinnedBytes>((from_host ? source + staging : 0) + (to_host ? destination + staging : 0));
    char* device = reinterpret_cast<char*>(device_.data());
    char* at_source = from_host ? host_->data() : device;
    char* at_destination = to_host ? host_->data() : device + (from_host ? 0 : source + staging);
    buffers_ = {at_source, at_destination, at_source + source, at_destination + destination};
    own_source_ = at_source;
  }

  void fill_source(char* to) {
    const auto bytes = static_cast<std::size_t>(from_.buffer_bytes);
    if (direction_ != "from_host") return fill_bytes(to, bytes, seed_);
    DeviceBytes random(bytes);
    fill_bytes(random.data(), bytes, seed_);
    RACKCAST_CUDA_CHECK(cudaMemcpy(to, random.data(), bytes, cudaMemcpyDefault));
  }
  void poison_destination() {
    if (direction_ == "to_host") std::fill_n(buffers_.destination, to_.buffer_bytes, static_cast<char>(0xff));
    else poison(buffers_.destination, static_cast<std::size_t>(to_.buffer_bytes));
  }

  void move(Stream stream) {
    if (path_ == "copy") return copy_each(stream);
    if (path_ == "batch") return copy_batch(stream);
    upload_places(stream);
    if (path_ == "kernel") return launch_block_copy(list_, buffers_.source, buffers_.destination, ctas_, stream);
    BlockList pack = list_;
    pack.to = nullptr;
    launch_block_copy(pack, buffers_.source, buffers_.staging_source, ctas_, stream);
    RACKCAST_CUDA_CHECK(cudaMemcpyAsync(buffers_.staging_destination, buffers_.staging_source, static_cast<std::size_t>(bytes_ * blocks_), cudaMemcpyDefault, stream));
  }
  void unpack(Stream stream) {
    upload_places(stream);
    BlockList unpack = list_;
    unpack.from = nullptr;
    launch_block_copy(unpack, buffers_.staging_destination, buffers_.destination, ctas_, stream);
  }
  // Part of every transfer: the places are new each time.
  void upload_places(Stream stream) {
    RACKCAST_CUDA_CHECK(cudaMemcpyAsync(places_.data(), pinned_places_.data(), places_.bytes(), cudaMemcpyHostToDevice, stream));
  }
  void copy_each(Stream stream) {
    const bool peer = peer_devices_known();
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (peer) RACKCAST_CUDA_CHECK(cudaMemcpyPeerAsync(destinations_[i], comm_->device_of(1), sources_[i], comm_->device_of(0), sizes_[i], stream));
      else RACKCAST_CUDA_CHECK(cudaMemcpyAsync(destinations_[i], sources_[i], sizes_[i], cudaMemcpyDefault, stream));
    }
  }
  void copy_batch(Stream stream) {
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::size_t first = 0;
    RACKCAST_CUDA_CHECK(cudaMemcpyBatchAsync(reinterpret_cast<void* const*>(destinations_.data()), reinterpret_cast<const void* const*>(sources_.data()),
                                             sizes_.data(), sizes_.size(), &attributes, &first, 1, stream));
  }

  // The destination's owner draws the source again and looks at its own blocks.
  unsigned long long compare(Stream stream) {
    const auto bytes = static_cast<std::size_t>(from_.buffer_bytes);
    DeviceBytes again;
    const char* source = buffers_.source;
    if (between_ranks()) {
      again = DeviceBytes(bytes);
      fill_bytes(again.data(), bytes, seed_);
      RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
      source = reinterpret_cast<const char*>(again.data());
    }
    upload_places(stream);
    return unlike_words(list_, source, buffers_.destination, stream);
  }

  TransferRank transfer_;
  Comm* comm_;
  std::string path_, direction_, host_calls_;
  int64_t bytes_, blocks_;
  uint64_t seed_;
  int ctas_;
  BlockPlaces from_, to_;
  PinnedBytes pinned_places_;
  DeviceBuffer<int64_t> places_;
  BlockList list_;
  Buffers buffers_;
  char* own_source_ = nullptr;
  std::unique_ptr<Window> window_;
  DeviceBytes device_;
  std::unique_ptr<PinnedBytes> host_;
  std::vector<char*> sources_, destinations_;
  std::vector<std::size_t> sizes_;
  StreamOwner stream_;
};

class KvPushLauncher final : public Launcher {
 public:
  const Family& family() const override { return kv_push_family(); }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape& shape) const override {
    const std::string& direction = shape.text("direction");
    const bool between = direction == "push" || direction == "pull";
    // Within one GPU and to the host it is measured where that GPU is alone; between GPUs in a world of two.
    if (between != (gpu.comm && gpu.comm->ranks() == 2)) return {};
    if (!between && gpu.comm) return {};
    return {"portable"};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    return std::make_unique<KvPushCase>(gpu, shape, options);
  }
};

}  // namespace

const Launcher& kv_push_launcher() {
  static const KvPushLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
