// Physical cores of this host, for timing what the host itself does. A call that hands work to a GPU takes twice as long
// when the core's other hardware thread is busy, so a rank that is timed stands alone on a core, and the time is taken on
// several of them.
#pragma once
#include <string>
#include <vector>

namespace rackcast::kernels {

// One hardware thread of each physical core that this process may run on, in order. sysfs: "/sys", or a copy of it for tests.
std::vector<int> physical_cores(const std::string& sysfs = "/sys");

// The core of a rank in a round: ranks apart from one another, rounds apart from those before.
int core_of(const std::vector<int>& cores, int rank, int ranks, int round);

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
