// A sweep: a base scenario and axes, every combination of whose values is one scenario. Combinations are made one by
// one as they are asked for; those that break a condition or a rule of the scenario are counted with the reason.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/expression.hpp"
#include "sim/base/flatten.hpp"
#include "sim/spec/scenario.hpp"

namespace rackcast {

// from, from + step, ... up to `to`; or from, from * factor, ...
struct AxisRange {
  double from = 0, to = 0, step = 0, factor = 0;
  std::string unit;  // written behind each value: "min"
};
void fields(Visitor& v, AxisRange& r);

struct AxisKey {
  std::string key;                  // as for --set
  std::vector<std::string> values;  // as for --set
};
void fields(Visitor& v, AxisKey& k);

// One axis: a key with values or a range, or several keys whose values go together (`paired`).
struct AxisSpec {
  std::string key;
  std::vector<std::string> values;
  std::optional<AxisRange> range;
  std::vector<AxisKey> paired;
};
void fields(Visitor& v, AxisSpec& a);

struct SweepLimits {
  Seconds time{0};   // wall time of one scenario; 0: none
  Bytes memory{0};   // of one scenario on top of what all share; 0: none
};
void fields(Visitor& v, SweepLimits& l);

// What sweep files and plan files share.
struct SpaceSpec {
  std::string base;                     // scenario: name or path
  std::vector<std::string> set;         // key=value, on the base
  std::vector<AxisSpec> axes;
  std::vector<std::string> conditions;  // expressions over a scenario's keys
  SweepLimits limits;
};
void space_fields(Visitor& v, SpaceSpec& s);

struct SweepSpec {
  std::string name;
  SpaceSpec space;
};
void fields(Visitor& v, SweepSpec& s);

struct SweepPoint {
  std::uint64_t position = 0;  // in the full product, first axis slowest
  std::vector<std::pair<std::string, std::string>> values;  // key, value
  Scenario scenario;
};

// The axes of a space over its base scenario.
class Space {
 public:
  // `from`: the file that says it, for relative paths and messages. extra_sets: after those of the spec. Reads the base
  // once and checks every axis key and condition against it; UserError with all that is wrong.
  Space(SpaceSpec spec, std::string from, const Catalog& catalog, std::vector<std::string> extra_sets);

  const SpaceSpec& spec() const { return spec_; }
  const Scenario& base() const { return base_; }
  std::uint64_t combinations() const;
  // Key and value of every axis at `position`.
  std::vector<std::pair<std::string, std::string>> values_at(std::uint64_t position) const;
  // The scenario there, or why it is none (the first condition or rule that it breaks).
  std::optional<SweepPoint> at(std::uint64_t position, std::string& reason) const;

 private:
  struct Condition {
    Expression expression;
    bool early = false;  // decided by axis values and the base alone, without reading the scenario
  };
  void check_axes(Diagnostics& problems) const;
  void check_conditions(Diagnostics& problems);
  bool holds(const Condition& condition, const std::vector<FlatValue>& flat,
             const std::vector<std::pair<std::string, std::string>>& values) const;
  std::vector<FlatValue> flat_of(const Scenario& scenario) const { return flatten_of(scenario); }

  SpaceSpec spec_;
  std::string from_;
  const Catalog& catalog_;
  YamlSource source_;               // of the base
  std::vector<std::string> sets_;   // the spec's, then the extra ones
  std::vector<std::vector<AxisKey>> axes_;  // an axis: keys with as many values each
  std::vector<Condition> conditions_;
  Scenario base_;
  std::vector<FlatValue> base_flat_;
};

// Divides --set arguments: those whose first key belongs to the file itself, and those for its base scenario.
std::pair<std::vector<std::string>, std::vector<std::string>> split_sets(const std::vector<std::string>& sets,
                                                                         const std::vector<std::string>& own_keys);

// A scenario's place in results: short axis names, as in "prefill.engines=8 decode.dep=32".
std::string label_of(const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace rackcast
