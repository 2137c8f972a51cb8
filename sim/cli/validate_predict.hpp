// Predict first, measure later: predictions of planned runs as a table, and the same table against measured results.
#pragma once
#include <string>
#include <vector>

#include "analysis/recipes.hpp"
#include "sim/base/catalog.hpp"

namespace rackcast {

// Planned runs have the columns of a published table without its results. CSV on stdout: id, metric, predicted, lo, hi,
// gpu, model, layers, acceptance_length, note.
int predict_runs(const std::string& planned, const std::vector<Recipe>& recipes, int draws, int jobs, const Catalog& catalog);

// Errors, bias and whether the bands held. costs_out: the GPU's cost file in which the median difference of TPOT is the
// model's layer composite, basis measured; needs results of one GPU and one model.
int compare_runs(const std::string& predictions, const std::string& measured, const std::string& costs_out, bool json, const Catalog& catalog);

}  // namespace rackcast
