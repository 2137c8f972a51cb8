#include "sim/trace/open_loop.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/trace/ideal_cache.hpp"

namespace rackcast {
namespace {

struct Arrival {
  double time_s;
  std::uint32_t session;
  std::uint32_t request;
};

std::vector<Arrival> arrivals_of(const Trace& trace) {
  std::vector<Arrival> arrivals;
  arrivals.reserve(trace.requests.size());
  for (std::uint32_t s = 0; s < trace.sessions.size(); ++s) {
    const Session& session = trace.sessions[s];
    for (std::uint32_t r = session.requests_begin; r < session.requests_begin + session.requests_count; ++r)
      arrivals.push_back({trace.requests[r].start_s, s, r});
  }
  std::stable_sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) { return a.time_s < b.time_s; });
  return arrivals;
}

class OpenLoop final : public Load {
 public:
  explicit OpenLoop(const OpenLoopOptions& options) : options_(options), random_(options.seed) {
    if (options.trace) {
      arrivals_ = arrivals_of(*options.trace);
      ideal_.resize(options.trace->block_ids_global ? 1 : options.trace->sessions.size());
    }
    advance();
  }

  double next_time_s() const override { return exhausted() ? never_s : next_s_; }

  void take_due(double now_s, std::vector<LoadRequest>& out) override {
    while (!exhausted() && next_s_ <= now_s) {
      out.push_back(options_.trace ? recorded() : fixed());
      ++given_;
      advance();
    }
  }

  void finished(std::uint64_t, double) override {}
  LoadPhase phase() const override { return given_ < options_.warmup_requests ? LoadPhase::warmup : LoadPhase::measured; }
  bool exhausted() const override {
    return stopped_ || (options_.trace && given_ >= arrivals_.size()) ||
           (options_.requests > 0 && given_ >= options_.warmup_requests + options_.requests);
  }
  void stop() override { stopped_ = true; }
  void preload(const std::function<void(const LoadRequest&)>&) override { options_.warmup_requests = 0; }
  std::uint32_t lanes() const override { return 0; }

 private:
  void advance() {
    if (options_.rate_per_s > 0) {
      next_s_ += -std::log1p(-random_.uniform()) / options_.rate_per_s;
    } else if (given_ < arrivals_.size()) {
      next_s_ = arrivals_[given_].time_s;
    }
  }

  LoadRequest numbered() const {
    LoadRequest request;
    request.id = given_;
    request.lane = static_cast<std::uint32_t>(given_);
    request.phase = phase();
    return request;
  }

  LoadRequest fixed() {
    LoadRequest request = numbered();
    request.input_tokens = draw_length(options_.lengths.input_tokens, options_.lengths.range_ratio, random_);
    request.output_tokens = limited(draw_length(options_.lengths.output_tokens, options_.lengths.range_ratio, random_),
                                    options_.lengths.output_limit);
    return request;
  }

  LoadRequest recorded() {
    const Trace& trace = *options_.trace;
    const Arrival& arrival = arrivals_[given_];
    const TraceRequest& from = trace.requests[arrival.request];
    LoadRequest request = numbered();
    request.play = trace.block_ids_global ? 0 : arrival.session;
    // Sessions of one chain keep their affinity; a trace without sessions has none to keep.
    if (trace.sessions.size() > 1) request.lane = arrival.session;
    request.input_tokens = from.input_tokens;
    request.output_tokens = limited(from.output_tokens, options_.lengths.output_limit);
    request.block_tokens = trace.sessions[arrival.session].block_tokens;
    request.runs = trace.runs_of(from);
    request.ideal_cached_blocks = ideal_[request.play].add(request.runs);
    return request;
  }

  OpenLoopOptions options_;
  NumpyRandom random_;
  std::vector<Arrival> arrivals_;
  std::vector<IdealCache> ideal_;
  std::uint64_t given_ = 0;
  double next_s_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Load> make_open_loop(const OpenLoopOptions& options) {
  if (!options.trace && options.rate_per_s <= 0)
    throw UserError("open-loop load: give a trace with recorded times, or a Poisson rate such as '20 /s'");
  return std::make_unique<OpenLoop>(options);
}

}  // namespace rackcast
