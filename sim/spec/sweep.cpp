#include "sim/spec/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/text.hpp"

namespace rackcast {
namespace {

constexpr std::size_t max_axis_values = 100'000;

std::vector<std::string> values_of(const AxisRange& range) {
  std::vector<std::string> values;
  // A last value that misses `to` by rounding only still counts.
  const double end = range.to * (1 + 1e-12);
  for (std::size_t i = 0; i < max_axis_values; ++i) {
    double value = range.step > 0 ? range.from + static_cast<double>(i) * range.step
                                  : range.from * std::pow(range.factor, static_cast<double>(i));
    if (value > end) break;
    if (std::abs(value - std::round(value)) < 1e-9 * std::abs(value)) value = std::round(value);
    values.push_back(shortest(value) + (range.unit.empty() ? "" : " " + range.unit));
  }
  return values;
}

// Does setting `key` change the value under `name`?
bool touches(std::string_view key, std::string_view name) {
  return name == key || (name.size() > key.size() && name.starts_with(key) && (name[key.size()] == '.' || name[key.size()] == '['));
}

}  // namespace

void fields(Visitor& v, AxisRange& r) {
  v.field("from", r.from, "first value").required();
  v.field("to", r.to, "last value at most").required().require(r.to >= r.from, "must be >= from");
  v.field("step", r.step, "added to go on").require(r.step >= 0, "must be >= 0");
  v.field("factor", r.factor, "multiplied to go on").require(r.factor == 0 || (r.factor > 1 && r.from > 0), "must be > 1, with from > 0");
  v.rule("step", (r.step > 0) != (r.factor > 0), "give one of step and factor");
  v.field("unit", r.unit, "written behind each value, such as min");
}

void fields(Visitor& v, AxisKey& k) {
  v.field("key", k.key, "scenario key, as for --set").required();
  v.field("values", k.values, "its values").required().require(!k.values.empty(), "must not be empty");
}

void fields(Visitor& v, AxisSpec& a) {
  v.field("key", a.key, "scenario key, as for --set");
  v.field("values", a.values, "its values");
  v.optional_group("range", a.range, "its values as a range");
  v.list("paired", a.paired, "keys whose values go together, instead of key and values");
  const int ways = (a.values.empty() ? 0 : 1) + (a.range ? 1 : 0) + (a.paired.empty() ? 0 : 1);
  v.rule("", ways == 1, "give one of values, range and paired");
  v.rule("key", a.paired.empty() != a.key.empty(), "values and range need a key; paired has its own");
  bool equal = true;
  for (const AxisKey& key : a.paired) equal = equal && key.values.size() == a.paired[0].values.size();
  v.rule("paired", equal, "each key needs as many values as the first");
}

void fields(Visitor& v, SweepLimits& l) {
  v.field("time", l.time, "wall time of one scenario; 0: no limit").require(l.time.value() >= 0, "must be >= 0 s");
  v.field("memory", l.memory, "memory of one scenario on top of what all share; 0: no limit").require(l.memory.value() >= 0, "must be >= 0 B");
}

void space_fields(Visitor& v, SpaceSpec& s) {
  v.field("base", s.base, "scenario that the axes change: a name or a path").required();
  v.field("set", s.set, "key=value, applied to the base");
  v.list("axes", s.axes, "what varies; the first varies slowest");
  v.field("conditions", s.conditions, "expressions that a combination must satisfy, such as prefill.engines * prefill.dep + decode.dep <= rack.gpus");
  v.group("limits", s.limits, "what one scenario may use");
}

void fields(Visitor& v, SweepSpec& s) {
  v.field("name", s.name, "shown in results").required();
  space_fields(v, s.space);
}

Space::Space(SpaceSpec spec, std::string from, const Catalog& catalog, std::vector<std::string> extra_sets)
    : spec_(std::move(spec)), from_(std::move(from)), catalog_(catalog), source_(catalog.find(".", spec_.base, from_)), sets_(spec_.set) {
  sets_.insert(sets_.end(), extra_sets.begin(), extra_sets.end());
  for (const AxisSpec& axis : spec_.axes) {
    if (!axis.paired.empty()) axes_.push_back(axis.paired);
    else axes_.push_back({{axis.key, axis.range ? values_of(*axis.range) : axis.values}});
  }
  base_ = read_scenario(source_, catalog_, sets_);
  base_flat_ = flatten_of(base_);
  Diagnostics problems;
  check_axes(problems);
  check_conditions(problems);
  problems.throw_if_any();
}

// Each key once, and known: the base with the key's first value must at least be readable up to the rules between keys.
void Space::check_axes(Diagnostics& problems) const {
  std::vector<std::string> known;
  std::vector<std::pair<std::string, std::size_t>> seen;  // key, axis
  for (const FlatValue& value : base_flat_) {
    known.push_back(value.key);
    for (std::size_t dot = value.key.find('.'); dot != std::string::npos; dot = value.key.find('.', dot + 1)) known.push_back(value.key.substr(0, dot));
  }
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i][0].values.size() >= max_axis_values)
      problems.add({from_, 0, 0, fmt::format("axes[{}]", i), fmt::format("has more than {} values", max_axis_values - 1)});
    for (const AxisKey& key : axes_[i]) {
      const auto complain = [&](const std::string& rule) { problems.add({from_, 0, 0, fmt::format("axes[{}]", i), rule}); };
      if (std::find(known.begin(), known.end(), key.key) == known.end()) {
        const std::string near = near_match(key.key, known);
        complain(fmt::format("{} is no key of a scenario{}", quote_input(key.key), near.empty() ? "" : "; " + near));
      }
      for (const auto& [other, axis] : seen) {
        // Keys that go together are set in their order: a rack, then what differs from its file.
        const bool refines = axis == i && other != key.key && touches(other, key.key);
        if (!refines && (touches(other, key.key) || touches(key.key, other))) complain(fmt::format("{} is also set by another axis", quote_input(key.key)));
      }
      seen.emplace_back(key.key, i);
    }
  }
}

void Space::check_conditions(Diagnostics& problems) {
  for (std::size_t i = 0; i < spec_.conditions.size(); ++i) {
    const std::string at = fmt::format("conditions[{}]", i);
    try {
      Condition condition{Expression::parse(spec_.conditions[i]), true};
      for (const std::string& name : condition.expression.names()) {
        std::string why;
        const FlatValue* value = find_flat(base_flat_, name, &why);
        if (value == nullptr) throw UserError(why);
        // Early: the name is an axis itself, or no axis can change it.
        for (const auto& axis : axes_)
          for (const AxisKey& key : axis)
            if (touches(key.key, value->key) && key.key != value->key) condition.early = false;
      }
      conditions_.push_back(std::move(condition));
    } catch (const UserError& error) {
      problems.add({from_, 0, 0, at, fmt::format("{}: {}", quote_input(spec_.conditions[i]), error.problems()[0].rule)});
    }
  }
}

std::uint64_t Space::combinations() const {
  std::uint64_t product = 1;
  for (const auto& axis : axes_)
    if (__builtin_mul_overflow(product, axis[0].values.size(), &product)) throw UserError(from_, 0, 0, "axes", "more combinations than can be counted");
  return product;
}

std::vector<std::pair<std::string, std::string>> Space::values_at(std::uint64_t position) const {
  std::vector<std::pair<std::string, std::string>> values;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    const std::size_t count = axes_[i][0].values.size(), index = position % count;
    position /= count;
    for (std::size_t k = axes_[i].size(); k-- > 0;) values.emplace_back(axes_[i][k].key, axes_[i][k].values[index]);
  }
  std::reverse(values.begin(), values.end());
  return values;
}

bool Space::holds(const Condition& condition, const std::vector<FlatValue>& flat,
                  const std::vector<std::pair<std::string, std::string>>& values) const {
  return condition.expression.holds([&](std::string_view name) -> ExpressionValue {
    const FlatValue* value = find_flat(flat, name);
    RACKCAST_CHECK(value != nullptr, "a condition's names were checked");
    if (condition.early)
      for (const auto& [key, text] : values)
        if (key == value->key) {
          if (!value->number) return text;
          if (const Parsed<double> number = parse_double(text)) return number.value;
          throw std::domain_error("not a plain number");  // 16K, 5 min: let the reader say what it is
        }
    // Engines that are not there have no GPUs.
    if (value->number) return value->absent ? 0.0 : *value->number;
    return value->text;
  });
}

std::optional<SweepPoint> Space::at(std::uint64_t position, std::string& reason) const {
  SweepPoint point;
  point.position = position;
  point.values = values_at(position);
  const auto broken = [&](const Condition& condition) { reason = "condition: " + condition.expression.text(); };
  std::vector<const Condition*> late;
  for (const Condition& condition : conditions_) {
    try {
      if (condition.early && holds(condition, base_flat_, point.values)) continue;
      if (condition.early) return broken(condition), std::nullopt;
    } catch (const std::domain_error&) {
      late.push_back(&condition);  // it needs values that only the whole scenario has
      continue;
    }
    late.push_back(&condition);
  }
  std::vector<std::string> sets = sets_;
  for (const auto& [key, value] : point.values) sets.push_back(key + "=" + value);
  try {
    point.scenario = read_scenario(source_, catalog_, sets);
  } catch (const UserError& error) {
    const Problem& first = error.problems().at(0);
    reason = first.key.empty() ? first.rule : first.key + ": " + first.rule;
    return std::nullopt;
  }
  if (!late.empty()) {
    const std::vector<FlatValue> flat = flatten_of(point.scenario);
    for (const Condition* condition : late) {
      Condition read{condition->expression, false};
      if (!holds(read, flat, point.values)) return broken(*condition), std::nullopt;
    }
  }
  point.scenario.name = label_of(point.values);
  if (point.scenario.name.empty()) point.scenario.name = base_.name;
  return point;
}

std::pair<std::vector<std::string>, std::vector<std::string>> split_sets(const std::vector<std::string>& sets,
                                                                         const std::vector<std::string>& own_keys) {
  std::pair<std::vector<std::string>, std::vector<std::string>> divided;
  for (const std::string& set : sets) {
    const std::string first = set.substr(0, set.find_first_of(".[="));
    (std::find(own_keys.begin(), own_keys.end(), first) != own_keys.end() ? divided.first : divided.second).push_back(set);
  }
  return divided;
}

std::string label_of(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string label;
  for (const auto& [key, value] : values) {
    std::string_view name = key;
    for (const std::string_view prefix : {"deployment.", "workload."})
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    label += fmt::format("{}{}={}", label.empty() ? "" : " ", name, value);
  }
  return label;
}

}  // namespace rackcast
