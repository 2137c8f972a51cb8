// Physical cores of this host, for timing what the host itself does. A call that hands work to a GPU takes twice as long
// when the core's other hardware thread is busy, be it another tenant's of a virtual machine, which does not tell. So a rank
// that is timed stands alone on a core, on one that has just run a loop at full speed, and the time is taken on several.
#pragma once
#include <string>
#include <vector>

namespace rackcast::kernels {

// One hardware thread of each physical core that this process may run on, in order. sysfs: "/sys", or a copy of it for tests.
std::vector<int> physical_cores(const std::string& sysfs = "/sys");

// A rank's share of the cores; ranks share none while there are enough. Empty only when cores is.
std::vector<int> cores_of(const std::vector<int>& cores, int rank, int ranks);

// The fastest first, by a loop of some 0.1 ms on each. The calling thread is back where it was afterwards.
std::vector<int> quiet_first(const std::vector<int>& cores);

// The calling thread stays on one hardware thread while this lives; where the system refuses, nothing happens.
class PinnedThread {
 public:
  explicit PinnedThread(int cpu);
  ~PinnedThread();
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

 private:
  std::vector<int> before_;
};

}  // namespace rackcast::kernels
