#include "kernels/host_cores.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <set>
#include <utility>

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

// Eight chains that wait for nobody: the loop wants every slot that the core has, and so feels whoever shares it.
double loop_ns() {
  using Clock = std::chrono::steady_clock;
  static volatile std::uint64_t seed = 1;
  std::array<std::uint64_t, 8> chain;
  for (std::size_t i = 0; i < chain.size(); ++i) chain[i] = seed + i;
  const auto start = Clock::now();
  for (int step = 0; step < 4000; ++step)
    for (std::uint64_t& x : chain) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
    }
  const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  seed = chain[0] ^ chain[1] ^ chain[2] ^ chain[3] ^ chain[4] ^ chain[5] ^ chain[6] ^ chain[7];
  return ns;
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

std::vector<int> cores_of(const std::vector<int>& cores, int rank, int ranks) {
  const std::size_t count = cores.size(), at = static_cast<std::size_t>(rank), of = static_cast<std::size_t>(ranks);
  if (count == 0) return {};
  if (count < of) return {cores[at % count]};
  const auto first = static_cast<std::ptrdiff_t>(at * count / of), last = static_cast<std::ptrdiff_t>((at + 1) * count / of);
  return {cores.begin() + first, cores.begin() + last};
}

std::vector<int> quiet_first(const std::vector<int>& cores) {
  std::vector<std::pair<double, int>> timed;
  for (const int core : cores) {
    const PinnedThread pinned(core);
    double best_ns = loop_ns();
    for (int again = 0; again < 3; ++again) best_ns = std::min(best_ns, loop_ns());
    timed.emplace_back(best_ns, core);
  }
  std::sort(timed.begin(), timed.end());
  std::vector<int> order;
  for (const auto& [ns, core] : timed) order.push_back(core);
  return order;
}

PinnedThread::PinnedThread(int cpu) {
  if (cpu < 0) return;
  before_ = allowed();
  allow({cpu});
}
PinnedThread::~PinnedThread() { allow(before_); }

}  // namespace rackcast::kernels
