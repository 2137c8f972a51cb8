// GPUs that work together, as a kernel family sees them from one rank: memory that every rank can reach, NCCL, and
// agreement between the ranks. One object per rank; every rank makes the same calls in the same order.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

struct CUstream_st;
struct ncclComm;

namespace rackcast::kernels {

struct NcclApi;  // nccl_api.hpp

// Memory of the same size on every rank, each rank's mapped into all of them.
class Window {
 public:
  virtual ~Window() = default;
  char* local() const { return peers_.at(static_cast<std::size_t>(rank_)); }
  const std::vector<char*>& peers() const { return peers_; }  // in rank order

 protected:
  std::vector<char*> peers_;
  int rank_ = 0;
};

class Comm {
 public:
  virtual ~Comm() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // CUDA device that cudaMemcpyPeerAsync takes together with window addresses of that rank; -1 where it takes none
  // (another process's GPU, or addresses that NCCL mapped).
  virtual int device_of(int rank) const = 0;
  // What lies between the GPUs: nvlink and mnnvl only where that was established, else pcie, network or unknown.
  virtual std::string transport() const = 0;
  virtual std::unique_ptr<Window> make_window(std::size_t bytes) = 0;  // Unavailable when peers cannot be reached
  virtual const NcclApi& nccl() const = 0;     // Unavailable when NCCL could not be loaded
  virtual ncclComm* nccl_comm() const = 0;

  virtual void barrier(const std::string& at) = 0;
  virtual bool all_true(const std::string& at, bool mine) = 0;
  virtual std::vector<double> max_over_ranks(const std::string& at, const std::vector<double>& mine) = 0;
  // Waits for the stream, but neither for ever nor past the loss of a peer.
  virtual void wait(CUstream_st* stream) = 0;
};

}  // namespace rackcast::kernels
