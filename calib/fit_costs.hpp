// Points in, cost file out: fits every family of one GPU and writes the results over a prior cost file, with intervals,
// errors and sources. What was not fitted keeps its prior.
#pragma once
#include <string>
#include <vector>

#include "calib/fit_exact.hpp"
#include "calib/fit_family.hpp"

namespace rackcast::calib {

struct CostFit {
  CostSpec costs;
  std::vector<FamilyFit> families;
  std::vector<ExactFit> exact;     // what became of measured points of single matrices
  std::vector<std::string> notes;  // families left at their prior, and why
};

// points of other GPUs are ignored. Families with fewer points than 1.5 for each parameter that they tell keep their prior.
CostFit fit_costs(const CostSpec& prior, const std::string& gpu, const std::vector<FitPoint>& points,
                  const FamilyFitOptions& options = {});

// The parameters stay: their errors on the points and the range of these are written beside them, where they meet them.
CostFit judge_costs(const CostSpec& prior, const std::string& gpu, const std::vector<FitPoint>& points,
                    const FamilyFitOptions& options = {});

}  // namespace rackcast::calib
