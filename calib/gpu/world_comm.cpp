#include "calib/gpu/world_comm.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "kernels/device.hpp"
#include "kernels/lsa_pointers.hpp"
#include "kernels/nccl_api.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {

namespace {

template <typename T>
std::string as_bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <typename T>
T from_bytes(const std::string& bytes) {
  T value;
  RACKCAST_CHECK(bytes.size() == sizeof value, "a message between ranks has the wrong size");
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

struct WorldComm::Region {
  char* local = nullptr;
  std::size_t bytes = 0;
  std::vector<char*> peers;
  std::vector<bool> opened;  // by an IPC handle
  ncclWindow_t window = nullptr;
  bool from_nccl = false;
  bool taken = false;
};

class WorldComm::PooledWindow final : public kernels::Window {
 public:
  PooledWindow(Region& region, int rank) : region_(region) {
    region_.taken = true;
    peers_ = region.peers;
    rank_ = rank;
  }
  ~PooledWindow() override { region_.taken = false; }

 private:
  Region& region_;
};

WorldComm::WorldComm(Exchange& exchange, const kernels::GpuEnvironment& gpu, const std::shared_ptr<kernels::NcclApi>& api, WindowKind kind,
                     double work_limit_s)
    : exchange_(exchange), device_(gpu.device), api_(api), kind_(kind), work_limit_s_(work_limit_s) {
  establish_links();
  if (api_) start_nccl();
  // NCCL sees less than all ranks as one memory domain: whatever the wires are, this run is not one over NVLink.
  if (comm_ && lsa_size_ != ranks() && (transport_ == "nvlink" || transport_ == "mnnvl")) transport_ = "partly " + transport_;
}

WorldComm::~WorldComm() {
  for (const auto& region : regions_) {
    for (std::size_t r = 0; r < region->opened.size(); ++r)
      if (region->opened[r]) cudaIpcCloseMemHandle(region->peers[r]);
    if (region->window) api_->CommWindowDeregister(comm_, region->window);
    if (region->from_nccl) api_->MemFree(region->local);
    else if (region->local) cudaFree(region->local);
  }
  if (comm_) api_->CommDestroy(comm_);
}

void WorldComm::establish_links() {
  for (const std::string& text : exchange_.gather("places", to_text(own_place(device_)))) places_.push_back(place_from(text));
  for (const std::string& text : exchange_.gather("processes", as_bytes(static_cast<int>(getpid())))) processes_.push_back(from_bytes<int>(text));
  for (const std::string& text : exchange_.gather("devices", as_bytes(device_))) devices_.push_back(from_bytes<int>(text));
  const std::string problem = place_problem(places_);
  if (!problem.empty()) throw UserError(problem);
  const std::string mine = transport_between(places_, static_cast<std::size_t>(rank()));
  // The weakest word wins: a run is over NVLink only when every rank says so.
  transport_ = mine;
  for (const std::string& theirs : exchange_.gather("transport", mine))
    if (theirs != mine) transport_ = "mixed";
}

void WorldComm::start_nccl() {
  ncclUniqueId id{};
  if (rank() == 0) RACKCAST_NCCL_CHECK(*api_, GetUniqueId(&id));
  id = from_bytes<ncclUniqueId>(broadcast(exchange_, "nccl id", as_bytes(id)));
  RACKCAST_CUDA_CHECK(cudaSetDevice(device_));
  RACKCAST_NCCL_CHECK(*api_, CommInitRank(&comm_, ranks(), id, rank()));
  struct Team {  // ncclTeam_t
    int ranks, rank, stride;
  };
  if (auto* team = api_->library.function_or_null<Team(ncclComm_t)>("ncclTeamLsa")) lsa_size_ = team(comm_).ranks;
  calib::barrier(exchange_, "nccl started");
}

int WorldComm::device_of(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  const bool here = places_[r].host == places_[static_cast<std::size_t>(this->rank())].host && processes_[r] == getpid();
  return here && window_kind_ == "peer" ? devices_[r] : -1;
}

int WorldComm::nodes() const {
  std::set<std::string> hosts;
  for (const GpuPlace& place : places_) hosts.insert(place.host);
  return static_cast<int>(hosts.size());
}

const kernels::NcclApi& WorldComm::nccl() const {
  if (!api_ || !comm_) throw Unavailable("NCCL was not found (--library-path names its folder)");
  return *api_;
}
ncclComm* WorldComm::nccl_comm() const {
  nccl();
  return comm_;
}

std::vector<double> WorldComm::max_over_ranks(const std::string& at, const std::vector<double>& mine) {
  return calib::max_over_ranks(exchange_, at, mine);
}

std::unique_ptr<kernels::Window> WorldComm::make_window(std::size_t bytes) {
  // All ranks ask for the same sizes in the same order, so all choose the same region.
  Region* best = nullptr;
  for (const auto& region : regions_)
    if (!region->taken && region->bytes >= bytes && (!best || region->bytes < best->bytes)) best = region.get();
  if (!best) {
    auto region = std::make_unique<Region>();
    region->bytes = std::bit_ceil(std::max(bytes, std::size_t{1} << 21));
    const bool may_nccl = kind_ != WindowKind::peer && comm_ && api_->MemAlloc && api_->CommWindowRegister && lsa_size_ == ranks();
    const bool done = may_nccl && try_nccl_region(*region);
    if (!done && kind_ == WindowKind::nccl) throw Unavailable("NCCL's symmetric windows do not reach every rank here");
    if (!done) make_peer_region(*region);
    window_kind_ = done ? "nccl" : "peer";
    best = region.get();
    regions_.push_back(std::move(region));
  }
  return std::make_unique<PooledWindow>(*best, rank());
}

bool WorldComm::try_nccl_region(Region& region) {
  void* memory = nullptr;
  const bool got = api_->MemAlloc(&memory, region.bytes) == ncclSuccess;
  if (!all_true("window memory", got)) {
    if (got) api_->MemFree(memory);
    return false;
  }
  region.local = static_cast<char*>(memory);
  region.from_nccl = true;
  const bool registered = api_->CommWindowRegister(comm_, memory, region.bytes, &region.window, NCCL_WIN_COLL_SYMMETRIC) == ncclSuccess && region.window;
  bool good = all_true("window registered", registered);
  if (good) {
    region.peers = kernels::lsa_pointers(*api_, region.window, ranks());
    good = all_true("window addresses", !region.peers.empty()) && all_answer(region);
  }
  if (good) return true;
  if (region.window) api_->CommWindowDeregister(comm_, region.window);
  api_->MemFree(memory);
  const std::size_t bytes = region.bytes;
  region = Region{};
  region.bytes = bytes;
  return false;
}

void WorldComm::make_peer_region(Region& region) {
  for (std::size_t r = 0; r < places_.size(); ++r)
    if (places_[r].host != places_[static_cast<std::size_t>(rank())].host)
      throw Unavailable("ranks on several hosts need NCCL's symmetric windows, and they do not reach every rank here");
  RACKCAST_CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&region.local), region.bytes));
  cudaIpcMemHandle_t handle{};
  const bool own_process = std::all_of(processes_.begin(), processes_.end(), [](int p) { return p == getpid(); });
  if (!own_process) RACKCAST_CUDA_CHECK(cudaIpcGetMemHandle(&handle, region.local));
  const auto handles = exchange_.gather("window handles", as_bytes(handle));
  const auto addresses = exchange_.gather("window pointers", as_bytes(region.local));
  region.opened.assign(places_.size(), false);
  for (std::size_t r = 0; r < places_.size(); ++r) {
    char* address = from_bytes<char*>(addresses[r]);
    if (processes_[r] != getpid()) {
      void* opened = nullptr;
      RACKCAST_CUDA_CHECK(cudaIpcOpenMemHandle(&opened, from_bytes<cudaIpcMemHandle_t>(handles[r]), cudaIpcMemLazyEnablePeerAccess));
      address = static_cast<char*>(opened);
      region.opened[r] = true;
    } else if (devices_[r] != device_) {
      const cudaError_t status = cudaDeviceEnablePeerAccess(devices_[r], 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled) cudaGetLastError();
      else if (status != cudaSuccess) throw Unavailable(std::string("no peer access between the GPUs: ") + cudaGetErrorString(status));
    }
    region.peers.push_back(address);
  }
  if (!all_answer(region)) throw Unavailable("the peers' memory does not answer through its mapped addresses");
}

// Everyone writes its rank at the start of its own part and reads everyone's: the mapping is what it claims to be.
bool WorldComm::all_answer(const Region& region) {
  const int mine = rank() + 1000;
  RACKCAST_CUDA_CHECK(cudaMemcpy(region.local, &mine, sizeof mine, cudaMemcpyDefault));
  RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  calib::barrier(exchange_, "window marked");
  bool good = true;
  for (int r = 0; r < ranks() && good; ++r) {
    int seen = 0;
    good = cudaMemcpy(&seen, region.peers[static_cast<std::size_t>(r)], sizeof seen, cudaMemcpyDefault) == cudaSuccess && seen == r + 1000;
  }
  if (!good) cudaGetLastError();
  return all_true("window read", good);
}

void WorldComm::wait(CUstream_st* stream) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (int tries = 0;; ++tries) {
    const cudaError_t status = cudaStreamQuery(stream);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) RACKCAST_CUDA_CHECK(status);
    if (tries < 20'000) continue;  // about as long as a measurement takes
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (tries % 64 == 0) exchange_.poll();
    ncclResult_t asynchronous = ncclSuccess;
    if (comm_ && api_->CommGetAsyncError(comm_, &asynchronous) == ncclSuccess && asynchronous != ncclSuccess)
      throw PeerLost(std::string("NCCL reports ") + api_->GetErrorString(asynchronous) + " on rank " + std::to_string(rank()));
    if (std::chrono::duration<double>(Clock::now() - start).count() > work_limit_s_)
      throw PeerLost("GPU work of rank " + std::to_string(rank()) + " did not end within " + std::to_string(static_cast<int>(work_limit_s_)) + " s");
  }
}

}  // namespace rackcast::calib
