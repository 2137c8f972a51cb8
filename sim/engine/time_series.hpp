// Time series of a run as one CSV, a row a sample, written while the run goes on. Columns:
//   time_s                             simulated time since the run's start
//   ENGINE.utilisation                 share of the interval that the engine computes
//   ENGINE.running, .waiting           requests in its batch, in its queue
//   ENGINE.kv_used, .kv_pinned         share of its KV memory that holds blocks, and that running requests hold
//   cache.hbm, cache.host              of the prompts admitted in the interval: input found in HBM, in host memory; empty: none
//   ENGINE.LINK                        mean share of the bandwidth of its GPUs' links; node-N.node memory: of a node's memory
//   ENGINE.running.rN, .kv_used.rN     the same of one rank, for engines of several
//   ENGINE.experts_moved               uneven experts: that arrived at another rank in the interval
//   ENGINE.expert_load.rN              uneven experts: rows of one rank over the mean, expected where experts are
// A link's bytes count when their flow has ended, so an interval can show more than 1.
#pragma once
#include <string>
#include <vector>

#include "sim/engine/observer.hpp"
#include "sim/engine/text_file.hpp"

namespace rackcast {

class TimeSeries {
 public:
  TimeSeries(const std::string& path, std::vector<std::string> engine_names);
  void started(const RunLayout& layout);
  void sampled(const RunSample& sample);
  void close() { file_.close(); }

 private:
  struct LinkColumn {
    std::string name;
    std::vector<std::size_t> links;   // positions in RunLayout::links
    double bytes_per_s = 0;           // of all of them
    double bytes = 0;                 // carried up to the last sample
  };
  void find_link_columns(const RunLayout& layout);
  void share(double part, double whole);  // one cell
  void count(std::uint64_t value);

  TextFile file_;
  std::vector<std::string> names_;
  std::vector<RunLayout::Engine> engines_;
  std::vector<LinkColumn> link_columns_;
  std::vector<double> busy_s_, experts_moved_;  // up to the last sample
  double time_s_ = 0, asked_ = 0, hit_gpu_ = 0, hit_host_ = 0;
};

}  // namespace rackcast
