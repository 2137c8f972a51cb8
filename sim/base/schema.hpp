// One fields() function per struct says everything about its YAML: key, member, documentation, rule.
// A reader, a writer and a documenter walk it. Example:
//
//   inline constexpr Choice router_policies[] = {{"round_robin", "engines in turn"}, {"least_loaded", "shortest queue"}};
//   struct RouterSpec { int max_queue = 256; Seconds refresh = 5_ms; RouterPolicy policy = RouterPolicy::round_robin; };
//   inline void fields(Visitor& v, RouterSpec& r) {
//     v.field("max_queue", r.max_queue, "requests held before rejecting").require(r.max_queue > 0, "must be > 0");
//     v.field("refresh", r.refresh, "age of the load view").require(r.refresh > 0_s, "must be > 0 s");
//     v.choice("policy", r.policy, router_policies, "how an engine is picked");
//   }
//
// Default = member initialiser; an absent key leaves the member alone. Quantities need a unit in YAML ("5 ms",
// "64 GiB", "900 GB/s", "2.31 USD/h"); a bare number is an error there, except 0. Token counts (Tokens) take K and M
// suffixes, 1024-based. A rule is checked once its key has been read without a problem; one key has one problem.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"

namespace rackcast {

class Visitor;

// A count of tokens: an integer in code, "16K" or "128K" (1024-based) allowed in YAML.
struct Tokens {
  std::int64_t count = 0;
  constexpr Tokens() = default;
  constexpr explicit Tokens(std::int64_t n) : count(n) {}
  constexpr auto operator<=>(const Tokens&) const = default;
};

// One spelling of a choice and what it means, in enumerator order.
struct Choice {
  std::string_view name;
  std::string_view meaning;
};

struct Dimension {
  int time = 0, bytes = 0, flops = 0, dollars = 0, energy = 0;
  constexpr bool operator==(const Dimension&) const = default;
};

// How a quantity is spelled besides its number and unit.
struct QuantityForm {
  Dimension dimension;
  std::string_view per;    // not empty: the text ends in " per <per>", as in "840 GiB per node"
  bool automatic = false;  // "auto" is allowed and reads as -1; other negative values are refused
};

// Returned by Visitor's calls, so that a rule stands beside its field. rule is the text that the user sees.
class FieldRule {
 public:
  FieldRule(Visitor& visitor, std::string_view key) : visitor_(visitor), key_(key) {}
  const FieldRule& require(bool holds, std::string_view rule) const;
  const FieldRule& required() const;  // the key has no default: its absence is an error

 private:
  Visitor& visitor_;
  std::string key_;
};

class Visitor {
 public:
  virtual ~Visitor() = default;

  virtual FieldRule field(std::string_view key, bool& member, std::string_view doc) = 0;
  virtual FieldRule field(std::string_view key, int& member, std::string_view doc) = 0;
  virtual FieldRule field(std::string_view key, std::int64_t& member, std::string_view doc) = 0;
  virtual FieldRule field(std::string_view key, std::uint64_t& member, std::string_view doc) = 0;
  virtual FieldRule field(std::string_view key, double& member, std::string_view doc) = 0;  // dimensionless
  virtual FieldRule field(std::string_view key, std::string& member, std::string_view doc) = 0;
  virtual FieldRule field(std::string_view key, Tokens& member, std::string_view doc) = 0;
  virtual FieldRule field(std::string_view key, std::vector<double>& member, std::string_view doc) = 0;
  virtual FieldRule field(std::string_view key, std::vector<int>& member, std::string_view doc) = 0;
  virtual FieldRule field(std::string_view key, std::vector<std::string>& member, std::string_view doc) = 0;

  template <int T, int B, int F, int D, int E>
  FieldRule field(std::string_view key, Quantity<T, B, F, D, E>& member, std::string_view doc) {
    return quantity_as(key, member, QuantityForm{Dimension{T, B, F, D, E}, "", false}, doc);
  }

  // A quantity that may be left to another source: "auto" in YAML is -1 in the member.
  template <int T, int B, int F, int D, int E>
  FieldRule automatic(std::string_view key, Quantity<T, B, F, D, E>& member, std::string_view doc,
                      std::string_view per = "") {
    return quantity_as(key, member, QuantityForm{Dimension{T, B, F, D, E}, per, true}, doc);
  }

  // An enum spelled as choices[i].name (index = enumerator value); a near match is offered on error.
  template <class Enum>
  FieldRule choice(std::string_view key, Enum& member, std::span<const Choice> choices, std::string_view doc) {
    int index = static_cast<int>(member);
    FieldRule rule = choice_index(key, index, choices, doc);
    member = static_cast<Enum>(index);
    return rule;
  }
  template <class Enum>
  FieldRule choice(std::string_view key, Enum& member, std::span<const std::string_view> names, std::string_view doc) {
    std::vector<Choice> choices;
    for (const std::string_view name : names) choices.push_back({name, {}});
    return choice(key, member, std::span<const Choice>(choices), doc);
  }

  // A nested mapping with its own fields().
  template <class Struct>
  FieldRule group(std::string_view key, Struct& member, std::string_view doc) {
    if (enter(key, doc)) {
      fields(*this, member);
      leave();
    }
    return FieldRule(*this, key);
  }

  // A nested mapping that may be absent; present means engaged, "key: null" disengages.
  template <class Struct>
  FieldRule optional_group(std::string_view key, std::optional<Struct>& member, std::string_view doc) {
    bool engaged = member.has_value();
    if (enter_optional(key, engaged, doc)) {
      Struct scratch{};
      if (reading() && !member) member.emplace();
      fields(*this, member ? *member : scratch);
      leave();
    } else if (!engaged) {
      member.reset();
    }
    return FieldRule(*this, key);
  }

  // A sequence of mappings. An absent key leaves the member as it is.
  template <class Struct>
  FieldRule list(std::string_view key, std::vector<Struct>& member, std::string_view doc) {
    std::size_t count = member.size();
    if (enter_list(key, count, doc)) {
      if (reading()) member.assign(count, Struct{});
      for (std::size_t i = 0; i < count; ++i) {
        Struct scratch{};
        Struct& element = i < member.size() ? member[i] : scratch;  // the documenter walks one element of an empty list
        if (enter_element(i)) {
          fields(*this, element);
          leave();
        }
      }
      leave_list();
    }
    return FieldRule(*this, key);
  }

  // The same, left out by the writer while it is empty.
  template <class Struct>
  FieldRule list_if_any(std::string_view key, std::vector<Struct>& member, std::string_view doc) {
    return writing() && member.empty() ? FieldRule(*this, key) : list(key, member, doc);
  }

  // A mapping from free names to mappings (e.g. parameters of a cost file). An absent key leaves the member as it is.
  template <class Struct>
  FieldRule map(std::string_view key, std::map<std::string, Struct>& member, std::string_view doc) {
    std::vector<std::string> names;
    for (const auto& [name, value] : member) names.push_back(name);
    if (enter_map(key, names, doc)) {
      if (reading()) member.clear();
      for (const std::string& name : names) {
        Struct scratch{};
        Struct& element = reading() || member.contains(name) ? member[name] : scratch;
        if (enter_entry(name)) {
          fields(*this, element);
          leave();
        }
      }
      leave_map();
    }
    return FieldRule(*this, key);
  }

  // A mapping given inline, or the name of a file of folder `kind` under scenarios/ ("rack: gb300-nvl72"), or
  // {base: NAME, key: value...}: the named file with some keys replaced. A name that holds '/' or ends in .yaml is a
  // path, seen from the file that says it. The writer always writes it inline.
  template <class Struct>
  FieldRule reference(std::string_view key, Struct& member, std::string_view kind, std::string_view doc) {
    if (enter_reference(key, kind, doc)) {
      fields(*this, member);
      leave();
    }
    return FieldRule(*this, key);
  }

  virtual bool reading() const { return false; }  // true in the YAML reader only
  virtual bool writing() const { return false; }  // true in the YAML writer only
  virtual bool clean() const { return true; }     // no problem so far: rules over several keys may trust what was read

  // A rule on `key` of the mapping being walked; documented always, a problem when it does not hold. An empty key
  // means the mapping itself.
  virtual void rule(std::string_view key, bool holds, std::string_view text) = 0;
  void broken_rule(std::string_view key, std::string_view text) { rule(key, false, text); }
  virtual void missing_if_absent(std::string_view key) = 0;

 protected:
  virtual FieldRule quantity(std::string_view key, double& base_units, const QuantityForm& form,
                             std::string_view doc) = 0;
  virtual FieldRule choice_index(std::string_view key, int& index, std::span<const Choice> choices,
                                 std::string_view doc) = 0;
  // Each enter returns whether to walk what is inside; leave follows only then.
  virtual bool enter(std::string_view key, std::string_view doc) = 0;
  virtual bool enter_optional(std::string_view key, bool& engaged, std::string_view doc) = 0;
  virtual bool enter_list(std::string_view key, std::size_t& size, std::string_view doc) = 0;
  virtual bool enter_element(std::size_t index) = 0;
  virtual void leave_list() = 0;
  virtual bool enter_map(std::string_view key, std::vector<std::string>& names, std::string_view doc) = 0;
  virtual bool enter_entry(const std::string& name) = 0;
  virtual void leave_map() = 0;
  virtual bool enter_reference(std::string_view key, std::string_view kind, std::string_view doc) = 0;
  virtual void leave() = 0;

 private:
  template <int T, int B, int F, int D, int E>
  FieldRule quantity_as(std::string_view key, Quantity<T, B, F, D, E>& member, const QuantityForm& form,
                        std::string_view doc) {
    double raw = member.value();
    const FieldRule rule = quantity(key, raw, form, doc);
    member = Quantity<T, B, F, D, E>(raw);
    return rule;
  }
};

inline const FieldRule& FieldRule::require(bool holds, std::string_view rule) const {
  visitor_.rule(key_, holds, rule);
  return *this;
}
inline const FieldRule& FieldRule::required() const {
  visitor_.missing_if_absent(key_);
  return *this;
}

}  // namespace rackcast
