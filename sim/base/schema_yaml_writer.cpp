// The writing half: every value, defaults included, references inline; what it writes reads back equal.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/schema_yaml.hpp"
#include "sim/base/units_text.hpp"

namespace rackcast {

// Plain where YAML cannot mistake the text for something else, double-quoted otherwise.
std::string yaml_scalar(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view(" ._-/+()%=;<>").find(c) != std::string_view::npos;
  };
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  constexpr std::string_view words[] = {"null", "true", "false"};
  const bool safe = !text.empty() && letter(text.front()) && text.back() != ' ' && std::ranges::all_of(text, plain) &&
                    std::ranges::find(words, text) == std::end(words);
  if (safe) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += fmt::format("\\{}", c);
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else out += c;
  }
  return out + "\"";
}

namespace {

class Writer : public Visitor {
 public:
  std::string take() { return std::move(out_); }
  bool writing() const override { return true; }

  FieldRule field(std::string_view key, bool& member, std::string_view) override { return line(key, member ? "true" : "false"); }
  FieldRule field(std::string_view key, int& member, std::string_view) override { return line(key, fmt::format("{}", member)); }
  FieldRule field(std::string_view key, std::int64_t& member, std::string_view) override { return line(key, fmt::format("{}", member)); }
  FieldRule field(std::string_view key, std::uint64_t& member, std::string_view) override { return line(key, fmt::format("{}", member)); }
  FieldRule field(std::string_view key, double& member, std::string_view) override { return line(key, shortest(member)); }
  FieldRule field(std::string_view key, Tokens& member, std::string_view) override { return line(key, format_tokens(member)); }
  FieldRule field(std::string_view key, std::string& member, std::string_view) override { return line(key, yaml_scalar(member)); }
  FieldRule field(std::string_view key, std::vector<double>& member, std::string_view) override {
    return sequence(key, member, [](double value) { return shortest(value); });
  }
  FieldRule field(std::string_view key, std::vector<int>& member, std::string_view) override {
    return sequence(key, member, [](int value) { return fmt::format("{}", value); });
  }
  FieldRule field(std::string_view key, std::vector<std::string>& member, std::string_view) override {
    return sequence(key, member, [](const std::string& value) { return yaml_scalar(value); });
  }
  void rule(std::string_view, bool, std::string_view) override {}
  void missing_if_absent(std::string_view) override {}

 protected:
  FieldRule quantity(std::string_view key, double& base_units, const QuantityForm& form, std::string_view) override {
    if (form.automatic && base_units < 0) return line(key, "auto");
    std::string text = format_quantity(base_units, form.dimension);
    if (!form.per.empty() && base_units != 0) text += fmt::format(" per {}", form.per);
    return line(key, text);
  }
  FieldRule choice_index(std::string_view key, int& index, std::span<const Choice> choices, std::string_view) override {
    RACKCAST_CHECK(index >= 0 && static_cast<std::size_t>(index) < choices.size(), "an enumerator without a spelling");
    return line(key, std::string(choices[static_cast<std::size_t>(index)].name));
  }
  bool enter(std::string_view key, std::string_view) override {
    open(key);
    return true;
  }
  bool enter_optional(std::string_view key, bool& engaged, std::string_view) override {
    if (engaged) open(key);
    return engaged;
  }
  bool enter_list(std::string_view key, std::size_t& size, std::string_view) override {
    if (size == 0) line(key, "[]");
    else open(key);
    return size > 0;
  }
  bool enter_element(std::size_t) override {
    depth_ += 1;
    dash_ = true;
    open_sizes_.push_back(out_.size());
    return true;
  }
  void leave_list() override { leave(); }
  bool enter_map(std::string_view key, std::vector<std::string>& names, std::string_view) override {
    if (names.empty()) line(key, "{}");
    else open(key);
    return !names.empty();
  }
  bool enter_entry(const std::string& name) override {
    open(name);
    return true;
  }
  void leave_map() override { leave(); }
  bool enter_reference(std::string_view key, std::string_view, std::string_view doc) override { return enter(key, doc); }
  void leave() override {
    // A mapping without a key would read back as nothing.
    if (out_.size() == open_sizes_.back()) {
      if (dash_) indent();
      else out_.back() = ' ';
      out_ += "{}\n";
    }
    open_sizes_.pop_back();
    depth_ -= 1;
  }

 private:
  void indent() {
    out_.append(2 * static_cast<std::size_t>(dash_ ? depth_ - 1 : depth_), ' ');
    if (dash_) out_ += "- ";
    dash_ = false;
  }
  FieldRule line(std::string_view key, const std::string& value) {
    indent();
    out_ += fmt::format("{}: {}\n", yaml_scalar(key), value);
    return {*this, key};
  }
  void open(std::string_view key) {
    indent();
    out_ += fmt::format("{}:\n", yaml_scalar(key));
    depth_ += 1;
    open_sizes_.push_back(out_.size());
  }
  template <class T, class Text>
  FieldRule sequence(std::string_view key, const std::vector<T>& values, Text text) {
    std::string list;
    for (const T& value : values) list += (list.empty() ? "" : ", ") + text(value);
    return line(key, "[" + list + "]");
  }

  std::string out_;
  std::vector<std::size_t> open_sizes_;
  int depth_ = 0;
  bool dash_ = false;
};

}  // namespace

std::string write_yaml(const std::function<void(Visitor&)>& walk) {
  Writer writer;
  walk(writer);
  return writer.take();
}

}  // namespace rackcast
