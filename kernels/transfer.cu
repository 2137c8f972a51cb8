#include "kernels/transfer.hpp"

namespace rackcast::kernels {

void TransferRank::meet(const std::string& what) const {
  RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  if (comm_) comm_->barrier(at_ + ": " + what);
}

void TransferRank::wait(Stream stream) const {
  if (comm_) comm_->wait(stream);
  else RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream));
}

unsigned long long unlike_words(const BlockList& list, const char* source, const char* destination, Stream stream) {
  DeviceBuffer<unsigned long long> found(1);
  RACKCAST_CUDA_CHECK(cudaMemsetAsync(found.data(), 0, found.bytes(), stream));
  launch_block_compare(list, source, destination, found.data(), stream);
  RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream));
  return found.to_host()[0];
}

CheckResult arrival(unsigned long long unlike, const CheckOptions& options) {
  if (options.inject_fault) ++unlike;
  CheckResult result;
  result.ok = unlike == 0;
  result.rel_l2 = unlike ? 1 : 0;
  if (unlike) result.note = std::to_string(unlike) + " words of 16 bytes did not arrive as they were sent";
  return result;
}

}  // namespace rackcast::kernels
