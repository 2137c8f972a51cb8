#include "analysis/validation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <cmath>
#include <nlohmann/json.hpp>
#include <map>
#include <set>

namespace rackcast {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_pairs_from = 2000;

double error_of(const ValidationItem& item) { return *item.predicted / item.published - 1.0; }

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

// Rows, not items: one row may give a TTFT and a TPOT.
std::pair<int, int> rows_and_predicted(const ValidationSuite& suite) {
  std::set<std::string> rows, predicted;
  for (const ValidationItem& item : suite.items) {
    rows.insert(item.id);
    if (item.predicted) predicted.insert(item.id);
  }
  return {static_cast<int>(rows.size()), static_cast<int>(predicted.size())};
}

std::vector<std::string> metrics_of(const ValidationSuite& suite) {
  std::vector<std::string> names;
  for (const ValidationItem& item : suite.items)
    if (std::find(names.begin(), names.end(), item.metric) == names.end()) names.push_back(item.metric);
  return names;
}

Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

MetricErrors errors_of(const std::vector<ValidationItem>& items, const std::string& metric) {
  for (const bool fitted : {false, true}) {
    std::vector<double> sizes;
    double bias = 0;
    for (const ValidationItem& item : items) {
      if (item.metric != metric || item.fitted != fitted || !item.predicted || item.published <= 0) continue;
      sizes.push_back(std::abs(error_of(item)));
      bias += error_of(item);
    }
    if (sizes.empty()) continue;
    const double n = static_cast<double>(sizes.size());
    double sum = 0;
    for (const double s : sizes) sum += s;
    return {static_cast<int>(sizes.size()), sum / n, median(sizes), bias / n};
  }
  return {};
}

std::optional<double> rank_agreement(const std::vector<ValidationItem>& items) {
  double agree = 0, pairs = 0;
  std::vector<const ValidationItem*> usable;
  for (const ValidationItem& item : items)
    if (item.predicted && item.published > 0 && usable.size() < most_pairs_from) usable.push_back(&item);
  for (std::size_t i = 0; i < usable.size(); ++i)
    for (std::size_t j = i + 1; j < usable.size(); ++j) {
      const ValidationItem &a = *usable[i], &b = *usable[j];
      if (a.metric != b.metric || a.published == b.published) continue;
      pairs += 1;
      if ((a.published < b.published) == (*a.predicted < *b.predicted)) agree += 1;
    }
  if (pairs == 0) return std::nullopt;
  return agree / pairs;
}

void add_model_error(ValidationItem& item, const RunKind& kind) {
  // Published / predicted of three rows in four: the shortest interval around 1 that holds 76% of a kind's rows of suite fixed (993 of
  // TPOT, 987 of TTFT, 2026-11), and three quarters of suite points for throughput. By users: up to 16, 256, more. First row that fits.
  struct Interval {
    double lo, hi;
  };
  struct ModelError {
    std::string_view metric, framework;  // empty: any
    bool disaggregated;
    Interval by_users[3];
  };
  static constexpr ModelError errors[] = {
      {"tpot", "trtllm", false, {{0.50, 1.18}, {0.52, 1.05}, {0.39, 1.24}}},
      {"tpot", "trtllm", true, {{0.73, 1.08}, {0.61, 1.13}, {0.87, 1.31}}},
      {"tpot", "sglang", false, {{0.69, 1.15}, {0.72, 1.33}, {1.00, 1.93}}},
      {"tpot", "sglang", true, {{0.70, 1.14}, {0.60, 1.31}, {0.83, 1.45}}},
      {"tpot", "vllm", false, {{0.86, 1.16}, {0.81, 1.35}, {0.81, 1.20}}},
      {"tpot", "", false, {{0.81, 1.35}, {0.54, 1.15}, {0.85, 1.93}}},
      {"tpot", "", true, {{0.72, 1.12}, {0.60, 1.17}, {0.85, 1.36}}},
      {"ttft", "trtllm", false, {{0.99, 1.69}, {0.63, 1.86}, {0.43, 1.85}}},
      {"ttft", "trtllm", true, {{0.58, 5.00}, {0.65, 1.62}, {0.48, 1.83}}},
      {"ttft", "sglang", false, {{0.89, 3.04}, {0.93, 9.70}, {1.00, 4.97}}},
      {"ttft", "sglang", true, {{0.73, 1.52}, {1.00, 4.04}, {0.61, 5.92}}},
      {"ttft", "vllm", false, {{0.87, 1.42}, {1.00, 1.53}, {0.91, 1.53}}},
      {"ttft", "", false, {{0.88, 1.79}, {0.63, 2.05}, {1.00, 4.95}}},
      {"ttft", "", true, {{0.58, 1.84}, {0.57, 2.28}, {0.25, 2.45}}},
      {"total_tok_s_gpu", "", false, {{0.63, 1.14}, {0.63, 1.14}, {0.63, 1.14}}},
      {"total_tok_s_gpu", "", true, {{0.63, 1.14}, {0.63, 1.14}, {0.63, 1.14}}},
      {"p90_tok_s_user", "", false, {{0.69, 1.23}, {0.69, 1.23}, {0.69, 1.23}}},
      {"p90_tok_s_user", "", true, {{0.69, 1.23}, {0.69, 1.23}, {0.69, 1.23}}},
  };
  if (!item.predicted || *item.predicted <= 0 || !item.lo || !item.hi || *item.lo <= 0) return;
  for (const ModelError& e : errors) {
    if (e.metric != item.metric || e.disaggregated != kind.disaggregated || (!e.framework.empty() && e.framework != kind.framework)) continue;
    const Interval& missed = e.by_users[kind.users <= 16 ? 0 : kind.users <= 256 ? 1 : 2];
    item.lo = std::min({*item.lo, *item.predicted, *item.predicted * missed.lo});
    item.hi = std::max({*item.hi, *item.predicted, *item.predicted * missed.hi});
    return;
  }
}

std::optional<double> inside_band(const std::vector<ValidationItem>& items) {
  int inside = 0, count = 0;
  for (const ValidationItem& item : items) {
    if (item.fitted || !item.lo || !item.hi || item.published <= 0) continue;
    ++count;
    if (item.published >= *item.lo * (1 - item.spread) && item.published <= *item.hi * (1 + item.spread)) ++inside;
  }
  if (count == 0) return std::nullopt;
  return static_cast<double>(inside) / count;
}

std::optional<double> half_band_width(const std::vector<ValidationItem>& items) {
  std::vector<double> widths;
  for (const ValidationItem& item : items)
    if (!item.fitted && item.lo && item.hi && item.predicted && *item.predicted > 0) widths.push_back(0.5 * (*item.hi - *item.lo) / *item.predicted);
  if (widths.empty()) return std::nullopt;
  return median(std::move(widths));
}

std::vector<BoundCheck> check_bounds(const ValidationSuite& suite) {
  std::vector<BoundCheck> checks;
  for (const ValidationBound& bound : suite.bounds) {
    ValidationSuite chosen{suite.name, {}, {}};
    for (const ValidationItem& item : suite.items) {
      const auto has = [&](const std::string& tag) { return std::find(item.tags.begin(), item.tags.end(), tag) != item.tags.end(); };
      if ((bound.metric.empty() || item.metric == bound.metric) && std::all_of(bound.tags.begin(), bound.tags.end(), has)) chosen.items.push_back(item);
    }
    const auto [rows, predicted] = rows_and_predicted(chosen);
    const MetricErrors e = errors_of(chosen.items, bound.metric);
    BoundCheck check{bound, static_cast<int>(chosen.items.size()), e.median_abs, rows ? static_cast<double>(predicted) / rows : 0.0, true};
    // A promise about nothing is not kept: a bound whose rows are gone must not pass.
    check.kept = rows > 0 && (bound.median <= 0 || (e.n > 0 && e.median_abs <= bound.median)) && (bound.coverage <= 0 || check.coverage >= bound.coverage);
    checks.push_back(check);
  }
  return checks;
}

Json validation_json(const std::vector<ValidationSuite>& suites) {
  Json list = Json::array();
  for (const ValidationSuite& suite : suites) {
    const auto [rows, predicted] = rows_and_predicted(suite);
    Json metrics = Json::object(), items = Json::array();
    for (const std::string& name : metrics_of(suite)) {
      const MetricErrors e = errors_of(suite.items, name);
      if (e.n > 0) metrics[name] = {{"n", e.n}, {"mean_abs_err", e.mean_abs}, {"median_abs_err", e.median_abs}, {"bias", e.bias}};
    }
    for (const ValidationItem& item : suite.items)
      items.push_back({{"id", item.id}, {"metric", item.metric}, {"published", item.published}, {"predicted", optional(item.predicted)},
                       {"lo", optional(item.lo)}, {"hi", optional(item.hi)}, {"fitted", item.fitted},
                       {"refused", item.refused.empty() ? Json(nullptr) : Json(item.refused)}, {"note", item.note}, {"citation", item.citation}, {"outside_range", item.outside_range}});
    Json bounds = Json::array();
    for (const BoundCheck& c : check_bounds(suite))
      bounds.push_back({{"metric", c.bound.metric}, {"tags", c.bound.tags}, {"items", c.items}, {"median_abs_err", c.median}, {"coverage", c.coverage},
                        {"bound_median", c.bound.median}, {"bound_coverage", c.bound.coverage}, {"kept", c.kept}, {"enforced", c.bound.enforced}});
    list.push_back({{"name", suite.name}, {"rows", rows}, {"predicted", predicted}, {"coverage", rows ? static_cast<double>(predicted) / rows : 0.0},
                    {"inside_band", optional(inside_band(suite.items))}, {"half_band_width", optional(half_band_width(suite.items))}, {"metrics", metrics},
                    {"rank_agreement", optional(rank_agreement(suite.items))}, {"bounds", bounds}, {"items", items}});
  }
  return {{"suites", list}};
}

std::string validation_table(const std::vector<ValidationSuite>& suites) {
  std::string text;
  for (const ValidationSuite& suite : suites) {
    const auto [rows, predicted] = rows_and_predicted(suite);
    text += fmt::format("{}: {} of {} rows predicted\n", suite.name, predicted, rows);
    for (const std::string& name : metrics_of(suite)) {
      const MetricErrors e = errors_of(suite.items, name);
      if (e.n > 0) text += fmt::format("  {:<18} n {:>4}  mean error {:>6.1f}%  median {:>6.1f}%  bias {:>+6.1f}%\n", name, e.n, 100 * e.mean_abs, 100 * e.median_abs, 100 * e.bias);
    }
    if (const auto band = inside_band(suite.items))
      text += fmt::format("  inside the band    {:.0f}% (median half width {:.0f}%)\n", 100 * *band, 100 * half_band_width(suite.items).value_or(0));
    if (const auto ranks = rank_agreement(suite.items)) text += fmt::format("  rank agreement     {:.0f}%\n", 100 * *ranks);
    for (const BoundCheck& c : check_bounds(suite)) {
      text += fmt::format("  {:<5} {}{}:", c.kept ? "kept" : c.bound.enforced ? "MISSED" : "missed", c.bound.metric.empty() ? "rows" : c.bound.metric, c.bound.tags.empty() ? "" : fmt::format(" of {}", fmt::join(c.bound.tags, " ")));
      if (c.bound.median > 0) text += fmt::format(" median error {:.1f}% (bound {:.0f}%)", 100 * c.median, 100 * c.bound.median);
      if (c.bound.coverage > 0) text += fmt::format(" coverage {:.0f}% (bound {:.0f}%)", 100 * c.coverage, 100 * c.bound.coverage);
      text += "\n";
    }
    int outside = 0;
    double most = 0;
    for (const ValidationItem& item : suite.items)
      if (item.predicted && item.outside_range > 0) ++outside, most = std::max(most, item.outside_range);
    if (outside > 0) text += fmt::format("  outside the range of the cost files' points: {} figures, {:.0f}% of their time at most\n", outside, 100 * most);
    constexpr std::size_t few = 40;
    if (suite.items.size() <= few) {
      text += fmt::format("  {:<34} {:<16} {:>12} {:>12} {:>8}  {}\n", "figure", "metric", "published", "predicted", "error", "");
      for (const ValidationItem& item : suite.items)
        text += item.predicted && item.published <= 0 ? fmt::format("  {:<34} {:<16} {:>12} {:>12.5g}\n", item.id, item.metric, "-", *item.predicted)
                : item.predicted ? fmt::format("  {:<34} {:<16} {:>12.5g} {:>12.5g} {:>+7.1f}%  {}\n", item.id, item.metric, item.published, *item.predicted, 100 * error_of(item), item.fitted ? "fitted" : "")
                               : fmt::format("  {:<34} {:<16} {:>12.5g} refused: {}\n", item.id, item.metric, item.published, item.refused);
    }
    std::map<std::string, int> reasons;
    for (const ValidationItem& item : suite.items)
      if (!item.refused.empty() && suite.items.size() > few) ++reasons[item.refused];
    for (const auto& [reason, count] : reasons) text += fmt::format("  refused {:>4}: {}\n", count, reason);
  }
  return text;
}

}  // namespace rackcast
