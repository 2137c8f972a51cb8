#include "sim/engine/result_range.hpp"

#include <fmt/format.h>

namespace rackcast {

namespace {

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

double sampled_s(const SimulationOutcome& o, std::size_t first, std::size_t engines) {
  double sum = 0;
  for (std::size_t e = first; e < first + engines; ++e) sum += o.engine_total[e].basis_sampled_s;
  return sum;
}

}  // namespace

nlohmann::ordered_json range_json(const RangeTally& tally, double whole) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const RangeTally::Family& f : tally.families()) {
    nlohmann::ordered_json axes = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < range_axes; ++i)
      if (f.reached[i].given())
        axes.push_back({{"axis", range_axis_names[i]}, {"reached", {f.reached[i].lo, f.reached[i].hi}}, {"points", {f.fitted[i].lo, f.fitted[i].hi}}});
    rows.push_back({{"family", f.name}, {"share", share(f.seconds, whole)}, {"axes", axes}});
  }
  return rows;
}

RangeTally pool_outside(const SimulationOutcome& o, std::size_t first, std::size_t engines) {
  RangeTally sum;
  for (std::size_t e = first; e < first + engines; ++e) sum.add(o.engine_outside[e]);
  return sum;
}

double outside_share(const SimulationOutcome& o) {
  double outside_s = 0, busy_s = 0;  // engines are sampled unequally: each stands for its own time
  for (std::size_t e = 0; e < o.engine_total.size(); ++e) {
    outside_s += o.engine_outside[e].share_of(o.engine_total[e].basis_sampled_s) * o.engine_total[e].busy_s;
    busy_s += o.engine_total[e].busy_s;
  }
  return share(outside_s, busy_s);
}

std::string range_remark(double outside) {
  return outside > 0 ? fmt::format("{:.1f}% of the time is in launches outside the range of the cost files' points", 100 * outside) : std::string();
}

std::vector<std::string> range_notes(const BuiltRun& built, const SimulationOutcome& o) {
  std::vector<std::string> notes;
  std::size_t at = 0;
  for (std::size_t p = 0; p < built.pools.size(); ++p) {
    const std::uint32_t engines = built.options.pools[p].engines;
    const RangeTally tally = pool_outside(o, at, engines);
    if (!tally.families().empty())
      notes.push_back(fmt::format("{}: {:.1f}% of its time is in launches outside the range of the cost file's points: {}", built.pools[p].name,
                                  100 * tally.share_of(sampled_s(o, at, engines)), tally.text(sampled_s(o, at, engines))));
    at += engines;
  }
  const double moves = static_cast<double>(o.transfer_moves);
  if (!o.transfer_outside.families().empty())
    notes.push_back(fmt::format("{:.1f}% of hand-overs are outside the range of the cost file's points: {}", 100 * o.transfer_outside.share_of(moves),
                                o.transfer_outside.text(moves)));
  return notes;
}

}  // namespace rackcast
