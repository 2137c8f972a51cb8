// Predicted against published: errors, coverage, bands, rank agreement. Formulas in analysis/README.md.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rackcast {

struct ValidationItem {
  std::string id;
  std::string metric;                // tpot, ttft, total_tok_s_gpu, p90_tok_s_user, step
  double published = 0;
  std::optional<double> predicted, lo, hi;
  bool fitted = false;               // used in a fit: reported, not counted as evidence
  std::string refused;               // why there is no prediction; empty when there is one
  std::string citation;
  std::string note;                  // what was assumed
};

struct ValidationSuite {
  std::string name;
  std::vector<ValidationItem> items;
};

struct MetricErrors {
  int n = 0;
  double mean_abs = 0, median_abs = 0, bias = 0;  // of predicted / published - 1; bias = mean of the signed
};

// Over unfitted, predicted items of one metric; over fitted ones when there are no others.
MetricErrors errors_of(const std::vector<ValidationItem>& items, const std::string& metric);

// Share of pairs of items of one metric that prediction and publication order alike; nullopt below two items.
std::optional<double> rank_agreement(const std::vector<ValidationItem>& items);

// Share of unfitted items whose published figure lies in [lo, hi] widened by the published run-to-run spread.
std::optional<double> inside_band(const std::vector<ValidationItem>& items, double spread);

nlohmann::ordered_json validation_json(const std::vector<ValidationSuite>& suites);
std::string validation_table(const std::vector<ValidationSuite>& suites);

}  // namespace rackcast
