// Times a graph of chained launches on all ranks at once: a barrier on the GPUs, then the chain between two events; of
// each replay the slowest rank counts. CUDA code only.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "kernels/comm.hpp"
#include "kernels/device.hpp"

namespace rackcast::kernels {

// Holds the stream for that long: what meet() ends with, so that the host can queue what follows.
void launch_linger(uint64_t ns, Stream stream);
void load_linger();
constexpr uint64_t linger_for_graph_ns = 60'000;

struct ChainOptions {
  int samples = 20;
  double chain_us = 3000;  // long, so that what the ranks' start differs by is small against it
  int launches_max = 256;
};

// one(): what a link of the chain queues on the stream. meet(): queues the barrier that all ranks leave together.
std::vector<double> time_chain(Comm& comm, const std::string& at, const std::function<void(Stream)>& one,
                               const std::function<void(Stream)>& meet, const ChainOptions& options, Stream stream, int& launches);

// The same for work that the host must steer (exact counts, copies): begin and end events around one call each. Taken in
// 12 rounds, each with a stream of its own and each rank on a core of its own, the quiet cores first: host calls have two
// speeds, a factor of two apart, by the core and the queue that they happen to get, and neighbours on the host come and go.
// The fastest eighth of all samples counts, as what the work costs when nobody disturbs it; the range of the rounds'
// medians tells the rest.
struct EagerSamples {
  std::vector<double> time_us, post_us;
  double post_low_us = 0, post_high_us = 0;  // medians of the fastest and the slowest round
};
EagerSamples time_eager(Comm* comm, const std::string& at, const std::function<void(Stream)>& one,
                        const std::function<void(Stream)>& meet, int samples);

double elapsed_us(const EventOwner& begin, const EventOwner& end);

}  // namespace rackcast::kernels
