#include "sim/base/flatten.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/text.hpp"
#include "sim/base/units_text.hpp"

namespace rackcast {
namespace {

class Flattener : public Visitor {
 public:
  std::vector<FlatValue> values;

  FieldRule field(std::string_view key, bool& m, std::string_view) override { return add(key, m ? "true" : "false", m ? 1 : 0); }
  FieldRule field(std::string_view key, int& m, std::string_view) override { return add(key, fmt::format("{}", m), m); }
  FieldRule field(std::string_view key, std::int64_t& m, std::string_view) override { return add(key, fmt::format("{}", m), static_cast<double>(m)); }
  FieldRule field(std::string_view key, std::uint64_t& m, std::string_view) override { return add(key, fmt::format("{}", m), static_cast<double>(m)); }
  FieldRule field(std::string_view key, double& m, std::string_view) override { return add(key, shortest(m), m); }
  FieldRule field(std::string_view key, Tokens& m, std::string_view) override { return add(key, format_tokens(m), static_cast<double>(m.count)); }
  FieldRule field(std::string_view key, std::string& m, std::string_view) override { return add(key, m, {}); }
  FieldRule field(std::string_view key, std::vector<double>& m, std::string_view) override {
    std::string text;
    for (const double value : m) text += (text.empty() ? "" : ", ") + shortest(value);
    return add(key, fmt::format("[{}]", text), {});
  }
  FieldRule field(std::string_view key, std::vector<int>& m, std::string_view) override { return add(key, fmt::format("[{}]", fmt::join(m, ", ")), {}); }
  FieldRule field(std::string_view key, std::vector<std::string>& m, std::string_view) override { return add(key, fmt::format("[{}]", fmt::join(m, ", ")), {}); }
  void rule(std::string_view, bool, std::string_view) override {}
  void missing_if_absent(std::string_view) override {}

 protected:
  FieldRule quantity(std::string_view key, double& value, const QuantityForm& form, std::string_view) override {
    if (form.automatic && value < 0) return add(key, "auto", {});
    std::string text = format_quantity(value, form.dimension);
    if (!form.per.empty() && value != 0) text += fmt::format(" per {}", form.per);
    return add(key, text, value);
  }
  FieldRule choice_index(std::string_view key, int& index, std::span<const Choice> choices, std::string_view) override {
    return add(key, std::string(choices[static_cast<std::size_t>(index)].name), {});
  }
  bool enter(std::string_view key, std::string_view) override { return open(std::string(key)); }
  bool enter_optional(std::string_view key, bool& engaged, std::string_view) override {
    absent_.push_back(!engaged);
    if (!engaged) ++absent_depth_;
    return push(std::string(key));
  }
  bool enter_list(std::string_view key, std::size_t& size, std::string_view) override {
    list_key_.emplace_back(key);
    return size > 0 || (list_key_.pop_back(), false);
  }
  bool enter_element(std::size_t index) override { return open(fmt::format("{}[{}]", list_key_.back(), index)); }
  void leave_list() override { list_key_.pop_back(); }
  bool enter_map(std::string_view key, std::vector<std::string>& names, std::string_view) override {
    return !names.empty() && open(std::string(key));
  }
  bool enter_entry(const std::string& name) override {
    return open(name.find('.') == std::string::npos ? name : fmt::format("\"{}\"", name));
  }
  void leave_map() override { leave(); }
  bool enter_reference(std::string_view key, std::string_view, std::string_view) override { return open(std::string(key)); }
  void leave() override {
    path_.resize(starts_.back());
    starts_.pop_back();
    if (absent_.back()) --absent_depth_;
    absent_.pop_back();
  }

 private:
  bool open(const std::string& step) {
    absent_.push_back(false);
    return push(step);
  }
  bool push(const std::string& step) {
    starts_.push_back(path_.size());
    path_ += (path_.empty() ? "" : ".") + step;
    return true;
  }
  FieldRule add(std::string_view key, std::string text, std::optional<double> number) {
    std::string full = path_;
    if (!key.empty()) {
      if (!path_.empty()) full += '.';
      full += key;
    }
    values.push_back({std::move(full), std::move(text), number, absent_depth_ > 0});
    return {*this, key};
  }

  std::string path_;
  std::vector<std::size_t> starts_;
  std::vector<bool> absent_;
  std::vector<std::string> list_key_;
  int absent_depth_ = 0;
};

}  // namespace

std::vector<FlatValue> flatten(const std::function<void(Visitor&)>& walk) {
  Flattener flattener;
  walk(flattener);
  return std::move(flattener.values);
}

const FlatValue* find_flat(const std::vector<FlatValue>& values, std::string_view name, std::string* why) {
  const FlatValue* found = nullptr;
  std::vector<std::string> matches, known;
  for (const FlatValue& value : values) {
    if (value.key == name) return &value;
    const std::string_view key = value.key;
    if (key.size() > name.size() && key.ends_with(name) && key[key.size() - name.size() - 1] == '.') {
      matches.push_back(value.key);
      found = &value;
    }
    known.push_back(value.key);
    // Also without the first step, so that a typo in a shortened name finds its match.
    if (const std::size_t dot = key.find('.'); dot != std::string_view::npos) known.emplace_back(key.substr(dot + 1));
  }
  if (matches.size() == 1) return found;
  if (why != nullptr) {
    if (matches.empty()) {
      const std::string near = near_match(name, known);
      *why = fmt::format("{} is no key of a scenario{}", quote_input(name), near.empty() ? "" : "; " + near);
    } else {
      *why = fmt::format("{} may mean {} or {}: write more of it", quote_input(name), matches[0], matches[1]);
    }
  }
  return nullptr;
}

}  // namespace rackcast
