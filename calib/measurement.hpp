// The measurement file: JSON lines, a header line a run and one line a point (schema calib/1).
// Written by rackcast-calib, read by the fitter. A file may hold several runs; a cut last line is ignored and repaired.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calib/stopping_rule.hpp"
#include "kernels/family.hpp"

namespace rackcast::calib {

struct MeasurementHeader {
  std::string run_id;
  std::string utc;
  std::string tool_version;
  std::string git;
  std::string host_hash;
  std::string gpu;           // "NVIDIA H200"
  std::string compute_capability;
  int sm_count = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::string uuid_hash;
  std::string driver;
  std::string cuda_runtime;
  std::string cublaslt;      // empty: not loaded
  std::string nccl;
  std::string compiler_arch;
  int ranks = 1;
  int nodes = 1;
  int lsa_size = 1;          // ranks that NCCL maps into each other's memory
  std::string transport;     // between the ranks; empty for one GPU
  std::string window;        // how peers' memory is reached: nccl (symmetric windows), peer (peer access or IPC handles)
  std::string launcher;      // threads, mpirun, slurm...
  std::string nvls;          // NCCL_NVLS_ENABLE as set
  std::uint64_t seed = 0;
};

// Read through NVML before and after a point; absent where NVML is.
struct Clocks {
  int sm_mhz = 0;
  int memory_mhz = 0;
  double power_w = 0;
  int temperature_c = 0;
  std::uint64_t throttle = 0;  // NVML's reason bits, before | after
};

struct Measurement {
  std::string op;              // family
  std::string implementation;  // sm90, portable, cublaslt...
  std::string fallback_from;   // preferred implementation whose self-check failed; empty: none did
  std::string math;
  kernels::Shape shape;
  kernels::Work work;
  std::string cache = "cold";  // cold | hot
  std::string mode = "graph";  // graph | eager | chain
  std::string detail;
  std::string transport = "none";
  int launches = 0;            // a sample
  int sets = 0;
  int pass = 1;
  Summary time_us;             // a launch; count 0 when the check failed
  std::optional<Summary> post_us;  // host time to hand the work over, where that is a figure of its own
  std::optional<Clocks> clocks;
  bool ok = false;             // false: never fitted
  double rel_l2 = 0;
  double max_abs = 0;
  std::string note;
  std::string basis = "measured";
  std::string key() const;     // what a resumed run skips: op, shape, cache, mode and pass
};

// Whether the row may become a cost of the link between GPUs. Virtual ranks and copies within one GPU (loopback) say
// nothing about it, nor does a row whose link was not established to be NVLink.
bool measures_nvlink(const Measurement& row);

struct MeasurementFile {
  std::vector<MeasurementHeader> headers;
  std::vector<Measurement> points;
  std::vector<int> header_of_point;  // index into headers
};

std::string to_json_line(const MeasurementHeader& header);  // without newline
std::string to_json_line(const Measurement& point);

// Plain or gzip. UserError with file:line for a line that is not ours; a cut last line is dropped.
MeasurementFile read_measurements(const std::string& path);
MeasurementFile parse_measurements(const std::string& text, const std::string& path);

// Appends; every line is on disk (fsync) before append() returns, so that a killed run keeps its finished points.
class MeasurementWriter {
 public:
  explicit MeasurementWriter(const std::string& path);  // creates the file, or reads the keys of what is there
  ~MeasurementWriter();
  MeasurementWriter(const MeasurementWriter&) = delete;
  MeasurementWriter& operator=(const MeasurementWriter&) = delete;
  bool has(const std::string& key) const { return keys_.count(key) != 0; }
  std::size_t size() const { return keys_.size(); }
  void append(const MeasurementHeader& header);
  void append(const Measurement& point);

 private:
  void write_line(const std::string& line);
  int descriptor_ = -1;
  std::string path_;
  std::set<std::string> keys_;
};

}  // namespace rackcast::calib
