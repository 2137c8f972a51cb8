// Predicted against published: errors, coverage, bands, rank agreement. Formulas in analysis/README.md.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rackcast {

constexpr double run_to_run_spread = 0.03;           // between clusters at load (InferenceX repeats, 2026-06)
constexpr double run_to_run_spread_low_load = 0.15;  // at 64 users and below: 8 to 19% in the same repeats

struct ValidationItem {
  std::string id;
  std::string metric;                // tpot, ttft, total_tok_s_gpu, p90_tok_s_user, step
  double published = 0;              // 0: nothing published, predicted only
  std::optional<double> predicted, lo, hi;
  bool fitted = false;               // used in a fit: reported, not counted as evidence
  std::string refused;               // why there is no prediction; empty when there is one
  std::string citation;
  std::string note;                  // what was assumed
  std::vector<std::string> tags;     // what a bound selects by: gpu=gb300, mode=disagg, load=high
  double spread = run_to_run_spread; // of the published figure from run to run
  double outside_range = 0;          // share of its time in launches outside the range of the cost file's points
};

// An error that a suite promises: median over the unfitted items of a metric that have every tag.
struct ValidationBound {
  std::string metric;
  std::vector<std::string> tags;
  double median = 0;                 // 0: no promise about errors
  double coverage = 0;               // share of rows that are predicted; 0: no promise
  bool enforced = false;             // missing it fails the run
};
struct BoundCheck {
  ValidationBound bound;
  int items = 0;
  double median = 0, coverage = 0;   // found
  bool kept = true;
};

struct ValidationSuite {
  std::string name;
  std::vector<ValidationItem> items;
  std::vector<ValidationBound> bounds;
};

struct MetricErrors {
  int n = 0;
  double mean_abs = 0, median_abs = 0, bias = 0;  // of predicted / published - 1; bias = mean of the signed
};

// Over unfitted, predicted items of one metric; over fitted ones when there are no others.
MetricErrors errors_of(const std::vector<ValidationItem>& items, const std::string& metric);

// Share of pairs of items of one metric that prediction and publication order alike; nullopt below two items.
std::optional<double> rank_agreement(const std::vector<ValidationItem>& items);

// What a prediction's error is known to depend on.
struct RunKind {
  std::string_view framework;     // trtllm, sglang, vllm; empty: any
  bool disaggregated = false;
  double users = 0;               // at once
};

// Widens an item's band (of parameter draws) to what predictions of published runs of its kind missed: software of another
// date, waits that no launch script shows, speculation that the row does not say. What they missed holds the parameters'
// error, too, so the wider of the two counts, not their sum. Metrics without a known error keep their band.
void add_model_error(ValidationItem& item, const RunKind& kind);

// Share of unfitted items whose published figure lies in [lo, hi] widened by its spread from run to run.
std::optional<double> inside_band(const std::vector<ValidationItem>& items);

// Median of (hi - lo) / (2 predicted) over unfitted items with a band.
std::optional<double> half_band_width(const std::vector<ValidationItem>& items);

std::vector<BoundCheck> check_bounds(const ValidationSuite& suite);

nlohmann::ordered_json validation_json(const std::vector<ValidationSuite>& suites);
std::string validation_table(const std::vector<ValidationSuite>& suites);

}  // namespace rackcast
