// Listens to a run: statistics of measured requests, one CSV row each (optional), and a time line (optional).
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "analysis/metrics.hpp"
#include "sim/engine/simulation.hpp"

namespace rackcast {

struct TimeLine {
  std::vector<double> times_s;
  std::vector<std::vector<EngineSample>> samples;  // by time, then engine
};

class Recorder final : public RunObserver {
 public:
  // rows_path empty: no rows. UserError when it cannot be written.
  Recorder(const std::string& rows_path, std::function<void(double)> progress);
  ~Recorder() override;
  void finished(const RequestRecord& record) override;
  void sampled(double time_s, const std::vector<EngineSample>& samples) override;
  void progress(double share_done) override;
  void close();  // flushes the rows; UserError when the disk is full

  RequestStatistics statistics;
  TimeLine time_line;

 private:
  void flush();

  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string rows_path_;
  std::unique_ptr<std::FILE, CloseFile> rows_;
  fmt::memory_buffer buffer_;
  std::function<void(double)> progress_;
};

}  // namespace rackcast
