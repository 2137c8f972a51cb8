// Whether two runs of the same points agree: medians within a share of one another, a wider one for short times.
#pragma once
#include <string>
#include <vector>

#include "calib/measurement.hpp"

namespace rackcast::calib {

struct AgreementLimits {
  double split_us = 20;  // above: `large`, else `small`
  double large = 0.03;
  double small = 0.08;
  double least_us = 0;   // both shorter: not compared
};

struct Difference {
  const Measurement* a = nullptr;
  const Measurement* b = nullptr;
  double change = 0;  // b over a, minus 1, by medians
  bool inside = false;
};

// Rows of the same op, shape, cache and mode whose checks passed; of several rows of one point in a run the last counts.
// Ordered by op, then by size of the change, largest first. Points into the arguments.
std::vector<Difference> compare_runs(const std::vector<Measurement>& a, const std::vector<Measurement>& b, const AgreementLimits& limits);

// A line a family with its share inside, then the points outside with clocks and algorithms of both runs.
std::string agreement_table(const std::vector<Difference>& differences, std::size_t list_at_most);

}  // namespace rackcast::calib
