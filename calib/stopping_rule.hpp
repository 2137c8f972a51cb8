// When to stop repeating a measurement. Fed one sample at a time, owns no clock and no GPU.
// Stops when the median is known well enough, or when the allowed time is over, but never before min_samples.
#pragma once
#include <cstddef>
#include <vector>

namespace rackcast::calib {

struct StoppingLimits {
  std::size_t min_samples = 20;
  std::size_t max_samples = 1000;
  double max_seconds = 0.5;           // of measured time, summed over samples
  double relative_half_width = 0.005; // of the median's ~95% interval
};

// What is reported of a sample set. Percentiles by linear interpolation between order statistics.
struct Summary {
  std::size_t count = 0;
  double median = 0;
  double mad = 0;   // median of |sample - median|
  double p10 = 0;
  double p90 = 0;
  double min = 0;
};
Summary summarise(std::vector<double> samples);

class StoppingRule {
 public:
  explicit StoppingRule(const StoppingLimits& limits) : limits_(limits) {}
  void add(double sample_us, double elapsed_s);  // elapsed: device time that this sample took, all its launches
  bool done() const;
  const std::vector<double>& samples() const { return samples_; }
  // Half the distance between the order statistics that bound the median with ~95%, over the median.
  double relative_half_width() const;

 private:
  StoppingLimits limits_;
  std::vector<double> samples_;
  double elapsed_s_ = 0;
};

}  // namespace rackcast::calib
