#include "kernels/host_cores.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace rackcast::kernels {
namespace {

std::vector<int> allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

void allow(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

// The text that names a core's hardware threads, e.g. "3,35"; the same for each of them. Empty where nothing tells.
std::string siblings(const std::string& sysfs, int cpu) {
  std::ifstream file(sysfs + "/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
  std::string text;
  std::getline(file, text);
  return text;
}

}  // namespace

std::vector<int> physical_cores(const std::string& sysfs) {
  std::vector<int> cores;
  std::set<std::string> seen;
  for (const int cpu : allowed()) {
    const std::string name = siblings(sysfs, cpu);
    if (name.empty() || seen.insert(name).second) cores.push_back(cpu);
  }
  return cores;
}

int core_of(const std::vector<int>& cores, int rank, int ranks, int round) {
  if (cores.empty()) return -1;
  const auto count = static_cast<int>(cores.size());
  // From the back: the first cores serve the system's interrupts. Ranks lie far apart and move by different steps: a virtual
  // machine does not tell which of its processors share a core, so no pair of neighbours should last through all rounds.
  const int at = (rank * count / ranks + round * (2 * rank + 3)) % count;
  return cores[static_cast<std::size_t>(count - 1 - at)];
}

PinnedThread::PinnedThread(int cpu) {
  if (cpu < 0) return;
  before_ = allowed();
  allow({cpu});
}
PinnedThread::~PinnedThread() { allow(before_); }

}  // namespace rackcast::kernels
