// What families that move bytes between ranks share: one rank's part in a transfer, which may be alone, and the check that
// every word arrived as it was sent. CUDA code only.
#pragma once
#include <string>

#include "kernels/block_copy.hpp"
#include "kernels/comm.hpp"
#include "kernels/device.hpp"

namespace rackcast::kernels {

class TransferRank {
 public:
  TransferRank(Comm* comm, std::string at) : comm_(comm), at_(std::move(at)) {}
  Comm* comm() const { return comm_; }
  const std::string& at() const { return at_; }
  int rank() const { return comm_ ? comm_->rank() : 0; }
  int ranks() const { return comm_ ? comm_->ranks() : 1; }
  void meet(const std::string& what) const;  // after all work of this rank; all ranks leave together
  void wait(Stream stream) const;            // with the limit that the ranks agreed on

 private:
  Comm* comm_;
  std::string at_;
};

// Words of 16 bytes that differ between the list's blocks at source and at destination.
unsigned long long unlike_words(const BlockList& list, const char* source, const char* destination, Stream stream);
CheckResult arrival(unsigned long long unlike, const CheckOptions& options);

}  // namespace rackcast::kernels
