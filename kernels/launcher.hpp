// The GPU half of a kernel family, without CUDA's headers: what the runner needs to check and time a kernel.
// A Case is one shape prepared on the GPU by one implementation. Contracts:
//  - prepare() allocates, draws fresh random inputs from the seed (never zeros) and may tune; nothing in launch()
//    allocates or synchronises, so that launch() can be captured in a CUDA graph.
//  - A case holds working sets so that rotating over them defeats the L2 cache (options.cold_bytes). Inputs that a real
//    step finds in the cache (activations) may be shared by the sets; weights and KV may not.
//  - check() poisons the outputs (poison() in device.hpp), launches set 0 and compares with an FP64 reference kernel,
//    which on small shapes is itself compared with the CPU reference.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/comm.hpp"
#include "kernels/family.hpp"

namespace rackcast::kernels {

using Stream = CUstream_st*;

struct GpuEnvironment {
  int device = 0;
  int cc_major = 0;
  int cc_minor = 0;
  int sm_count = 0;
  std::size_t l2_bytes = 0;
  std::size_t memory_bytes = 0;
  std::vector<std::string> library_folders;  // where cuBLASLt and NCCL are looked for first
  int rank = 0;
  int ranks = 1;
  Comm* comm = nullptr;  // null: this GPU alone
};

struct PrepareOptions {
  std::uint64_t seed = 0;
  std::size_t cold_bytes = 0;  // make sets until together they exceed this...
  int max_sets = 1;            // ...or are this many; 1 when only a check is wanted
};

struct CheckOptions {
  std::uint64_t seed = 0;
  bool inject_fault = false;  // corrupt one output before comparing: the check must then fail
};

struct CheckResult {
  bool ok = false;
  double rel_l2 = 0;
  double max_abs = 0;
  double tolerance = 0;  // on rel_l2
  std::string note;      // why not ok
};

// A case that cannot be timed by replaying a graph (chains over ranks, host copies) times itself.
struct OwnTiming {
  std::string mode;                 // "chain", "eager"
  std::vector<double> samples_us;   // per launch; over ranks, the slowest rank's of each iteration
  std::vector<double> post_us;      // host time to hand the work over, where that is a figure of its own
};

class Case {
 public:
  virtual ~Case() = default;
  virtual int sets() const { return 1; }
  virtual void launch(int set, Stream stream) = 0;
  virtual CheckResult check(const CheckOptions& options) = 0;
  virtual std::optional<OwnTiming> measure() { return std::nullopt; }
  virtual std::optional<Work> work() const { return std::nullopt; }  // where it depends on the drawn data
  virtual std::string detail() const { return {}; }                  // chosen algorithm, splits...
  virtual std::string transport() const { return "none"; }
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual const Family& family() const = 0;
  // Names of implementations that can run this shape on this GPU, the preferred one first; the last one is the
  // portable one. Empty: the shape is not possible here.
  virtual std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape& shape) const = 0;
  virtual std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string& implementation,
                                        const PrepareOptions& options) const = 0;
};

std::span<const Launcher* const> launchers();  // in the order of families.def; only in a CUDA build

}  // namespace rackcast::kernels
