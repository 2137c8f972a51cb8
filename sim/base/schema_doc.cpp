#include "sim/base/schema_doc.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/units_text.hpp"

namespace rackcast {

namespace {

using Kind = DocNode::Kind;

class Documenter : public Visitor {
 public:
  DocNode root;

  FieldRule field(std::string_view key, bool& m, std::string_view doc) override { return add(key, Kind::boolean, doc, m ? "true" : "false"); }
  FieldRule field(std::string_view key, int& m, std::string_view doc) override { return add(key, Kind::integer, doc, fmt::format("{}", m)); }
  FieldRule field(std::string_view key, std::int64_t& m, std::string_view doc) override { return add(key, Kind::integer, doc, fmt::format("{}", m)); }
  FieldRule field(std::string_view key, std::uint64_t& m, std::string_view doc) override { return add(key, Kind::integer, doc, fmt::format("{}", m)); }
  FieldRule field(std::string_view key, double& m, std::string_view doc) override { return add(key, Kind::number, doc, shortest(m)); }
  FieldRule field(std::string_view key, Tokens& m, std::string_view doc) override { return add(key, Kind::tokens, doc, format_tokens(m)); }
  FieldRule field(std::string_view key, std::string& m, std::string_view doc) override { return add(key, Kind::text, doc, m); }
  FieldRule field(std::string_view key, std::vector<double>& m, std::string_view doc) override {
    return add(key, Kind::number_list, doc, fmt::format("[{}]", fmt::join(m, ", ")));
  }
  FieldRule field(std::string_view key, std::vector<int>& m, std::string_view doc) override {
    return add(key, Kind::integer_list, doc, fmt::format("[{}]", fmt::join(m, ", ")));
  }
  FieldRule field(std::string_view key, std::vector<std::string>& m, std::string_view doc) override {
    return add(key, Kind::text_list, doc, fmt::format("[{}]", fmt::join(m, ", ")));
  }
  void rule(std::string_view key, bool, std::string_view text) override {
    std::vector<std::string>& rules = node_of(key).rules;
    if (std::ranges::find(rules, text) == rules.end()) rules.emplace_back(text);
  }
  void missing_if_absent(std::string_view key) override { node_of(key).required = true; }

 protected:
  FieldRule quantity(std::string_view key, double& value, const QuantityForm& form, std::string_view doc) override {
    const std::string text = form.automatic && value < 0 ? "auto" : format_quantity(value, form.dimension);
    const FieldRule rule = add(key, Kind::quantity, doc, text);
    DocNode& node = node_of(key);
    node.dimension = form.dimension;
    node.per = form.per;
    node.automatic = form.automatic;
    return rule;
  }
  FieldRule choice_index(std::string_view key, int& index, std::span<const Choice> choices, std::string_view doc) override {
    const FieldRule rule = add(key, Kind::choice, doc, std::string(choices[static_cast<std::size_t>(index)].name));
    node_of(key).choices.assign(choices.begin(), choices.end());
    return rule;
  }
  bool enter(std::string_view key, std::string_view doc) override { return open(key, Kind::group, doc); }
  bool enter_optional(std::string_view key, bool& engaged, std::string_view doc) override {
    engaged = true;
    open(key, Kind::group, doc);
    return open_.back()->optional = true;
  }
  bool enter_list(std::string_view key, std::size_t& size, std::string_view doc) override {
    size = 1;
    return open(key, Kind::list, doc);
  }
  bool enter_element(std::size_t) override {
    open_.push_back(open_.back());
    return true;
  }
  void leave_list() override { leave(); }
  bool enter_map(std::string_view key, std::vector<std::string>& names, std::string_view doc) override {
    names = {"NAME"};
    return open(key, Kind::map, doc);
  }
  bool enter_entry(const std::string&) override { return enter_element(0); }
  void leave_map() override { leave(); }
  bool enter_reference(std::string_view key, std::string_view kind, std::string_view doc) override {
    open(key, Kind::group, doc);
    open_.back()->reference = kind;
    return true;
  }
  void leave() override { open_.pop_back(); }

 private:
  DocNode& current() { return open_.empty() ? root : *open_.back(); }
  DocNode& node_of(std::string_view key) {
    if (key.empty()) return current();
    const auto found = std::ranges::find(current().children, key, &DocNode::key);
    return found == current().children.end() ? current() : *found;
  }
  FieldRule add(std::string_view key, Kind kind, std::string_view doc, std::string value) {
    DocNode node;
    node.key = key;
    node.kind = kind;
    node.doc = doc;
    node.default_text = std::move(value);
    current().children.push_back(std::move(node));
    return {*this, key};
  }
  bool open(std::string_view key, Kind kind, std::string_view doc) {
    add(key, kind, doc, "");
    open_.push_back(&current().children.back());  // stays put: siblings are added only after this one is left
    return true;
  }

  std::vector<DocNode*> open_;
};

std::string type_text(const DocNode& node) {
  switch (node.kind) {
    case Kind::boolean: return "true or false";
    case Kind::integer: return "whole number";
    case Kind::tokens: return "tokens (K, M: 1024-based)";
    case Kind::number: return "number";
    case Kind::text: return "text";
    case Kind::quantity: {
      std::string text = "quantity, as in " + unit_example(node.dimension);
      if (!node.per.empty()) text = fmt::format("quantity, as in '840 GiB per {}'", node.per);
      return node.automatic ? text + ", or auto" : text;
    }
    case Kind::choice: return "choice";
    case Kind::number_list: return "list of numbers";
    case Kind::integer_list: return "list of whole numbers";
    case Kind::text_list: return "list of texts";
    case Kind::group: return node.reference.empty() ? "mapping" : fmt::format("name of a file in {0}/, or its keys", node.reference);
    case Kind::list: return "list of mappings";
    case Kind::map: return "mapping from names";
  }
  return "";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

void rows(const DocNode& parent, const std::string& prefix, std::string& out) {
  for (const DocNode& node : parent.children) {
    const std::string path = prefix + node.key;
    std::string value = node.required ? "required" : node.optional ? "absent" : node.default_text;
    if (!value.empty() && !node.required && !node.optional) value = "`" + value + "`";
    std::string text = node.doc;
    for (const Choice& choice : node.choices)
      text += fmt::format("; `{}`{}{}", choice.name, choice.meaning.empty() ? "" : ": ", choice.meaning);
    for (const std::string& rule : node.rules) text += "; " + rule;
    out += fmt::format("| `{}` | {} | {} | {} |\n", path, type_text(node), escaped(value), escaped(text));
    if (!node.reference.empty()) continue;  // its kind of file has a table of its own
    const char* inner = node.kind == Kind::list ? "[]." : node.kind == Kind::map ? ".NAME." : ".";
    rows(node, path + inner, out);
  }
}

}  // namespace

DocNode document(const std::function<void(Visitor&)>& walk) {
  Documenter documenter;
  walk(documenter);
  return std::move(documenter.root);
}

std::string to_markdown(const DocNode& root) {
  std::string out = "| key | type | default | meaning |\n|---|---|---|---|\n";
  rows(root, "", out);
  for (const std::string& rule : root.rules) out += fmt::format("\nRule: {}\n", rule);
  return out;
}

}  // namespace rackcast
