// Listens to a run: statistics of measured requests; optional: one CSV row each, time series, a trace for viewers.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "analysis/metrics.hpp"
#include "sim/engine/event_trace.hpp"
#include "sim/engine/observer.hpp"
#include "sim/engine/text_file.hpp"
#include "sim/engine/time_series.hpp"

namespace rackcast {

class Recorder final : public RunObserver {
 public:
  // rows_path empty: no rows. UserError when it cannot be written.
  Recorder(const std::string& rows_path, std::function<void(double)> progress);
  void started(const RunLayout& layout) override;
  void window_opened(double time_s) override;
  void finished(const RequestRecord& record) override;
  void sampled(const RunSample& sample) override;
  void progress(double share_done) override;
  bool wants_details() const override { return event_trace != nullptr; }
  void stepped(const StepEvent& step) override { event_trace->stepped(step); }
  void moved(const MovementEvent& movement) override { event_trace->moved(movement); }
  void ended(const Request& request, double time_s) override { event_trace->ended(request, time_s); }
  void unfinished(const Request& request, double time_s) override { event_trace->unfinished(request, time_s); }
  void noted(const NoteEvent& note) override { event_trace->noted(note); }
  void close();  // flushes every file; UserError when the disk is full

  RequestStatistics statistics;
  std::unique_ptr<TimeSeries> time_series;
  std::unique_ptr<EventTrace> event_trace;

 private:
  std::unique_ptr<TextFile> rows_;
  std::function<void(double)> progress_;
};

}  // namespace rackcast
