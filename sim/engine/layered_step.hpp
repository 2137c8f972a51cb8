// Fidelity `layered`: one event a layer, with durations of its own for every layer and rank. In every layer the ranks meet
// at the expert exchange, so a step is the sum over layers of the slowest rank's time, not the slowest rank's sum. A rank's
// time of a layer is its mean (1 + jitter z), z standard normal; the jitter is assumed.
//
// What collapsed iterations leave out follows from that: with a_r the mean time of rank r between two exchanges,
//   E[step] = layers * E[max_r a_r (1 + jitter z_r)] + the rest,   collapsed = layers * max_r a_r + the rest,
// and E[max] = L + integral from L of 1 - prod_r Phi((x - a_r) / (jitter a_r)) dx, where L lies below every maximum.
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "sim/cost/step_model.hpp"

namespace rackcast {

double expected_maximum(std::span<const double> means, double jitter);
// The same of normals with any means and deviations. A deviation of 0 is a constant.
double expected_maximum(std::span<const double> means, std::span<const double> deviations);

class LayeredStep {
 public:
  static constexpr double jitter = 0.02;  // of a layer's attention side; assumed: run-to-run spread of short kernels

  LayeredStep(std::uint32_t layers, std::uint64_t seed) : layers_(layers), random_(seed) {}

  // Draws the layers of one iteration. `collapsed` becomes what they add up to (the difference goes to its attention side).
  void plan(const StepModel& model, std::span<const RankBatch> batch, const ExpertLoad& load, StepTime& collapsed);
  // The next layer's duration; false after the last one.
  bool next(double& duration_s);
  // E[step] / collapsed of the last planned iteration.
  double expected_ratio() const;

 private:
  std::uint32_t layers_;
  std::mt19937_64 random_;
  std::vector<double> durations_s_, rank_s_;
  std::vector<RankBatch> alike_;
  double collapsed_s_ = 0;
  std::size_t at_ = 0;
};

}  // namespace rackcast
