// Comm over NCCL, CUDA peer access and an Exchange. One a rank and number of ranks; outlived by nothing made from it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "calib/exchange.hpp"
#include "calib/gpu/link_state.hpp"
#include "kernels/comm.hpp"
#include "kernels/launcher.hpp"

namespace rackcast::calib {

enum class WindowKind { best, nccl, peer };  // peer: peer access in one process, IPC handles between processes of a host

class WorldComm final : public kernels::Comm {
 public:
  WorldComm(Exchange& exchange, const kernels::GpuEnvironment& gpu, const std::shared_ptr<kernels::NcclApi>& api, WindowKind kind,
            double work_limit_s);
  ~WorldComm() override;

  int rank() const override { return exchange_.rank(); }
  int ranks() const override { return exchange_.ranks(); }
  int device_of(int rank) const override;
  std::string transport() const override { return transport_; }
  std::unique_ptr<kernels::Window> make_window(std::size_t bytes) override;
  const kernels::NcclApi& nccl() const override;
  ncclComm* nccl_comm() const override;
  void barrier(const std::string& at) override { calib::barrier(exchange_, at); }
  bool all_true(const std::string& at, bool mine) override { return calib::all_true(exchange_, at, mine); }
  std::vector<double> max_over_ranks(const std::string& at, const std::vector<double>& mine) override;
  void wait(CUstream_st* stream) override;

  int lsa_size() const { return lsa_size_; }
  int nodes() const;
  std::string window_kind() const { return window_kind_; }

 private:
  struct Region;  // memory behind windows; kept and handed out again, because registering is slow
  class PooledWindow;
  void establish_links();
  void start_nccl();
  bool try_nccl_region(Region& region);
  void make_peer_region(Region& region);
  bool all_answer(const Region& region);

  Exchange& exchange_;
  int device_;
  std::shared_ptr<kernels::NcclApi> api_;
  WindowKind kind_;
  double work_limit_s_;
  std::vector<GpuPlace> places_;
  std::vector<int> processes_, devices_;
  std::string transport_ = "unknown", window_kind_ = "none";
  int lsa_size_ = 1;
  ncclComm* comm_ = nullptr;
  std::vector<std::unique_ptr<Region>> regions_;
};

}  // namespace rackcast::calib
