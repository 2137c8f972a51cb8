// Failures of a run as plain values, and what they did to it. Times count from the opening of the measured window.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/spec/failures.hpp"

namespace rackcast {

class StepModel;

struct FailureSource {
  FailureKind kind = FailureKind::engine;
  std::uint32_t first_engine = 0, engines = 1;   // of the pool; a dated failure has one
  std::uint32_t gpus = 1, gpu = 0;               // of an engine; the dated failure's GPU
  double at_s = -1, every_s = -1;                // one of them
  double lasts_s = -1;                           // -1: for good
  double share = 1;
  double down_s = 0;                             // from being noticed to being back: restart and weights
  const StepModel* slowed = nullptr;             // nvlink: the engine's steps with the bandwidth that is left; borrowed
};

struct FailureOptions {
  std::vector<FailureSource> sources;
  InFlightPolicy in_flight = InFlightPolicy::retry;
  double detection_s = 5;
  std::uint32_t spare_gpus = 0;                  // that engines which lost a GPU can start again with
};

// One that happened.
struct FailureRecord {
  FailureKind kind = FailureKind::engine;
  std::uint32_t engine = 0, gpu = 0;             // of all engines; of the engine
  double at_s = 0, back_s = -1;                  // -1: never
  double share = 1;
  bool happened = false;                         // within the run
  std::uint32_t held = 0, resent = 0;            // requests that started again or were lost; hand-overs sent again
};

// Tokens of requests that end, by second: what a failure costs is read off it.
class Goodput {
 public:
  void add(double time_s, double tokens) {
    if (time_s < 0) return;
    const auto bucket = static_cast<std::size_t>(time_s / bucket_s);
    if (bucket >= tokens_.size()) tokens_.resize(bucket + 1, 0);
    tokens_[bucket] += tokens;
  }
  struct Loss {
    double before_tok_s = 0;                     // mean from the window's start (its last 300 s) to the failure
    double lost_tokens = 0;                      // what a rate as before would have given, less what there was, until recovery
    double recovered_s = -1;                     // since the failure: the mean of 30 s is back at 95%; -1: not within the window
    double lowest_tok_s = 0;                     // of these means
  };
  Loss loss(double failure_s, double end_s) const;

 private:
  static constexpr double bucket_s = 1;
  double mean(double from_s, double to_s) const;
  std::vector<double> tokens_;
};

}  // namespace rackcast
