// Runs planned points on the GPU: self-check, fall back, time, write. One call is one slice of a run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "calib/plan.hpp"

namespace rackcast::calib {

struct RunRequest {
  std::vector<PlannedPoint> points;
  bool timed = true;                  // false: checks only
  bool hot = true;                    // also time the hot cache
  bool quick = true;                  // shorter samples
  bool sustained = false;             // also compute-bound points back to back for two seconds (mode "sustained")
  std::string out;                    // measurement file; empty: none
  double budget_s = 0;                // stop starting points after this; 0: no limit
  std::uint64_t seed = 1;
  int device = 0;
  std::string force_implementation;   // only this one, no fallback
  std::string inject_fault;           // this implementation's self-check is made to fail
  std::vector<std::string> library_folders;
};

struct RunOutcome {
  int points = 0;      // done now
  int skipped = 0;     // were in the file
  int failed = 0;      // no implementation passed its check
  int fallbacks = 0;
  int impossible = 0;  // no implementation for this GPU, or not enough memory
  bool finished = true;
};

// Progress to stderr, one result line a point to stdout.
RunOutcome run_points(const RunRequest& request);

// Times the bars' shapes and prints them beside what is wanted. True when every bar's lower figure was reached.
bool run_bench(const RunRequest& how, const std::vector<const kernels::Family*>& families);

}  // namespace rackcast::calib
