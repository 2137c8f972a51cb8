#include "sim/cost/cost_range.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rackcast {

const std::string_view range_axis_names[range_axes] = {"gflop", "mb", "link_mb", "ranks", "rows", "context_mtok"};

namespace {

constexpr std::string_view axis_docs[range_axes] = {
    "least and most GFLOP of a launch among the points", "least and most MB that a launch moved from and to HBM", "least and most MB that a rank sent or received",
    "least and most ranks", "least and most rows (composite), requests (host) or descriptors (kv_transfer)",
    "least and most tokens that a rank's decode requests held, in millions (composite)"};

bool is_span(const std::vector<double>& ends) { return ends.size() == 2 && ends[0] >= 0 && ends[1] >= ends[0] && ends[1] > 0; }

std::string number(double value) { return value >= 1000 && value < 1e7 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value); }
std::string span_text(const AxisSpan& s) { return s.lo == s.hi ? number(s.lo) : number(s.lo) + " to " + number(s.hi); }

}  // namespace

void fields(Visitor& v, CostRange& r) {
  v.field("points", r.points, "measured launches that the errors and spans are of: those that the parameters were fitted on, or held against").require(r.points > 0, "must be > 0").required();
  const auto error = [&](const char* key, double& member, const char* doc) { return v.field(key, member, doc).require(member >= 0 && member <= 10, "must be 0 to 10 (a fraction)"); };
  error("mean_error", r.mean_error, "mean error of the parameters beside it on these points, as a fraction of the measured time").required();
  error("p90_error", r.p90_error, "90th percentile of it").required();
  if (!v.writing() || r.cross_validated_error > 0) error("cross_validated_error", r.cross_validated_error, "mean error on points that were left out of the fit; 0: unknown");
  for (std::size_t i = 0; i < range_axes; ++i) {
    AxisSpan& span = r.spans[i];
    if (v.writing() && !span.given()) continue;
    std::vector<double> ends;
    if (span.given()) ends = {span.lo, span.hi};
    v.field(range_axis_names[i], ends, axis_docs[i]).require(ends.empty() || is_span(ends), "must be [least, most], with 0 <= least <= most and most > 0");
    span = is_span(ends) ? AxisSpan{ends[0], ends[1]} : AxisSpan{};
  }
  if (v.clean()) v.rule("", std::any_of(r.spans.begin(), r.spans.end(), [](const AxisSpan& s) { return s.given(); }), "give at least one of gflop, mb, link_mb, ranks, rows and context_mtok");
}

std::vector<RangeExit> CostRange::exits(const LaunchWork& work) const {
  std::vector<RangeExit> found;
  for (std::size_t i = 0; i < range_axes; ++i)
    if (spans[i].given() && work[i] > 0 && !spans[i].holds(work[i])) found.push_back({static_cast<RangeAxis>(i), work[i], spans[i]});
  return found;
}

RangeTally::Family& RangeTally::of(std::string_view name) {
  const auto known = std::find_if(families_.begin(), families_.end(), [&](const Family& f) { return f.name == name; });
  return known != families_.end() ? *known : families_.emplace_back(Family{.name = std::string(name), .seconds = 0, .reached = {}, .fitted = {}});
}

void RangeTally::add(std::string_view family, const std::vector<RangeExit>& exits, double seconds) {
  if (exits.empty()) return;
  Family& f = of(family);
  f.seconds += std::max(0.0, seconds);
  for (const RangeExit& e : exits) {
    const auto i = static_cast<std::size_t>(e.axis);
    f.reached[i].widen(e.value);
    f.fitted[i] = e.fitted;
  }
}

void RangeTally::add(const RangeTally& other) {
  for (const Family& theirs : other.families_) {
    Family& ours = of(theirs.name);
    ours.seconds += theirs.seconds;
    for (std::size_t i = 0; i < range_axes; ++i) {
      if (!theirs.reached[i].given()) continue;
      ours.reached[i].widen(theirs.reached[i].lo);
      ours.reached[i].widen(theirs.reached[i].hi);
      ours.fitted[i] = theirs.fitted[i];
    }
  }
}

double RangeTally::seconds() const {
  double sum = 0;
  for (const Family& f : families_) sum += f.seconds;
  return sum;
}

double RangeTally::share_of(double whole_s) const { return whole_s > 0 ? std::min(1.0, seconds() / whole_s) : 0; }

std::string RangeTally::text(double whole_s) const {
  std::vector<const Family*> order;
  for (const Family& f : families_) order.push_back(&f);
  std::stable_sort(order.begin(), order.end(), [](const Family* a, const Family* b) { return a->seconds > b->seconds; });
  std::string text;
  constexpr std::size_t shown = 4;
  for (std::size_t k = 0; k < order.size() && k < shown; ++k) {
    std::string axes;
    for (std::size_t i = 0; i < range_axes; ++i)
      if (order[k]->reached[i].given())
        axes += fmt::format("{}{} {}, points {}", axes.empty() ? "" : "; ", range_axis_names[i], span_text(order[k]->reached[i]), span_text(order[k]->fitted[i]));
    text += fmt::format("{}{} {:.1f}% ({})", text.empty() ? "" : ", ", order[k]->name, whole_s > 0 ? 100 * order[k]->seconds / whole_s : 0.0, axes);
  }
  if (order.size() > shown) text += fmt::format(", {} more", order.size() - shown);
  return text;
}

}  // namespace rackcast
