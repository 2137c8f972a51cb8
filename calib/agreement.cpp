#include "calib/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace rackcast::calib {
namespace {

std::map<std::string, const Measurement*> by_point(const std::vector<Measurement>& rows) {
  std::map<std::string, const Measurement*> points;
  for (const Measurement& row : rows)
    if (row.ok && row.time_us.count > 0) points[row.op + ' ' + row.shape.key() + ' ' + row.cache + ' ' + row.mode] = &row;
  return points;
}

std::string side(const Measurement& row) {
  std::string text = fmt::format("{:.2f} us, mad {:.2f}, {}", row.time_us.median, row.time_us.mad, row.implementation);
  if (!row.detail.empty()) text += ", " + row.detail;
  if (row.clocks) text += fmt::format(", {} MHz", row.clocks->sm_mhz);
  if (!row.note.empty()) text += ", " + row.note;
  return text;
}

}  // namespace

std::vector<Difference> compare_runs(const std::vector<Measurement>& a, const std::vector<Measurement>& b, const AgreementLimits& limits) {
  const auto first = by_point(a), second = by_point(b);
  std::vector<Difference> differences;
  for (const auto& [point, row] : first) {
    const auto other = second.find(point);
    if (other == second.end()) continue;
    const double longer = std::max(row->time_us.median, other->second->time_us.median);
    if (longer < limits.least_us) continue;
    Difference difference{row, other->second, other->second->time_us.median / row->time_us.median - 1, false};
    difference.inside = std::abs(difference.change) <= (longer > limits.split_us ? limits.large : limits.small);
    differences.push_back(difference);
  }
  std::stable_sort(differences.begin(), differences.end(), [](const Difference& x, const Difference& y) {
    return x.a->op != y.a->op ? x.a->op < y.a->op : std::abs(x.change) > std::abs(y.change);
  });
  return differences;
}

std::string agreement_table(const std::vector<Difference>& differences, std::size_t list_at_most) {
  std::string text = fmt::format("{:<18} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9}\n", "family", "compared", "inside", "share", "median", "p90", "largest");
  const auto line = [&](const std::string& name, const std::vector<double>& changes, std::size_t inside) {
    std::vector<double> sizes;
    for (const double change : changes) sizes.push_back(std::abs(change));
    const Summary summary = summarise(changes), size = summarise(sizes);
    text += fmt::format("{:<18} {:>8} {:>8} {:>7.1f}% {:>+8.2f}% {:>8.2f}% {:>8.2f}%\n", name, changes.size(), inside,
                        100.0 * static_cast<double>(inside) / static_cast<double>(changes.size()), 100 * summary.median, 100 * size.p90,
                        100 * *std::max_element(sizes.begin(), sizes.end()));
  };
  std::vector<double> all;
  std::size_t all_inside = 0;
  for (std::size_t i = 0; i < differences.size();) {
    std::vector<double> changes;
    std::size_t inside = 0;
    const std::string& op = differences[i].a->op;
    for (; i < differences.size() && differences[i].a->op == op; ++i) {
      changes.push_back(differences[i].change);
      inside += differences[i].inside;
    }
    line(op, changes, inside);
    all.insert(all.end(), changes.begin(), changes.end());
    all_inside += inside;
  }
  if (!all.empty()) line("all", all, all_inside);
  std::size_t listed = 0;
  for (const Difference& d : differences) {
    if (d.inside) continue;
    if (listed++ == list_at_most) {
      text += fmt::format("and {} more outside\n", all.size() - all_inside - list_at_most);
      break;
    }
    text += fmt::format("{:+.1f}%  {} {} {}\n    {}\n    {}\n", 100 * d.change, d.a->op, d.a->cache, d.a->shape.key(), side(*d.a), side(*d.b));
  }
  return text;
}

}  // namespace rackcast::calib
