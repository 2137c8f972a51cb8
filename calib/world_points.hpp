// Takes planned points on all ranks together: agrees on which are still to do, on whether every rank's check passed, and
// writes the rows on rank 0 as points finish. Knows no GPU: what a point does is the PointWork's business.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calib/exchange.hpp"
#include "calib/measurement.hpp"
#include "calib/plan.hpp"

namespace rackcast::calib {

class PointWork {
 public:
  virtual ~PointWork() = default;
  // Same answer on every rank. Called before anything is prepared.
  virtual bool possible(const PlannedPoint& point) = 0;
  // Every rank calls it for the same point; rank 0's row is written. ok is this rank's own check, before and after the
  // timing; times are already those of the slowest rank.
  virtual Measurement take(const PlannedPoint& point) = 0;
};

struct WorldOutcome {
  int points = 0, skipped = 0, failed = 0, impossible = 0;
  bool finished = true;
};

// writer: rank 0's, null elsewhere or without a file. seconds_left: when it says 0 or less on rank 0, no further point starts.
WorldOutcome take_points(Exchange& exchange, const std::vector<PlannedPoint>& points, PointWork& work, MeasurementWriter* writer,
                         const std::function<double()>& seconds_left, const std::function<void(const Measurement&)>& show);

}  // namespace rackcast::calib
