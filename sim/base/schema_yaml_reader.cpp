// The reading half: walks fields() over the tree of a file and gathers every problem.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "sim/base/schema_yaml_tree.hpp"
#include "sim/base/text.hpp"
#include "sim/base/units_text.hpp"

namespace rackcast {

namespace {

using yaml::Node;

constexpr int max_bases = 8;  // files that name each other as base

class Reader : public Visitor {
 public:
  Reader(const YamlSource& source, const ReadOptions& options) : options_(options) {
    if (std::optional<Node> tree = yaml::parse(source, problems_)) root_ = std::move(*tree);
    else problems_.throw_if_any();
    for (const std::string& set : options.sets) yaml::apply_set(root_, set, problems_, !options.root_kind.empty());
    push(root_, "", "");
    if (root_.kind != Node::Kind::mapping)
      complain("", root_.place, fmt::format("must be a mapping (key: value), not {}", describe(root_.kind)));
    else if (root_.find("base") != nullptr && !options.root_kind.empty())
      resolve(root_, options.root_kind, "");
    if (muted("")) problems_.throw_if_any();
  }

  void finish() {
    leave();
    problems_.throw_if_any();
  }

  bool reading() const override { return true; }
  bool clean() const override { return problems_.empty(); }

  FieldRule field(std::string_view key, bool& member, std::string_view) override {
    if (const Node* node = scalar(key)) {
      if (node->text == "true" || node->text == "false") member = node->text == "true";
      else bad(key, *node, "must be true or false");
    }
    return {*this, key};
  }
  FieldRule field(std::string_view key, int& member, std::string_view) override {
    std::int64_t wide = member;
    const Node* node = number(key, wide, parse_int64);
    if (node != nullptr && wide != static_cast<int>(wide)) bad(key, *node, "is out of range");
    else member = static_cast<int>(wide);
    return {*this, key};
  }
  FieldRule field(std::string_view key, std::int64_t& member, std::string_view) override {
    number(key, member, parse_int64);
    return {*this, key};
  }
  FieldRule field(std::string_view key, std::uint64_t& member, std::string_view) override {
    number(key, member, parse_uint64);
    return {*this, key};
  }
  FieldRule field(std::string_view key, double& member, std::string_view) override {
    number(key, member, parse_double);
    return {*this, key};
  }
  FieldRule field(std::string_view key, Tokens& member, std::string_view) override {
    number(key, member, parse_tokens);
    return {*this, key};
  }
  FieldRule field(std::string_view key, std::string& member, std::string_view) override {
    if (const Node* node = scalar(key)) member = node->text;
    return {*this, key};
  }
  FieldRule field(std::string_view key, std::vector<double>& member, std::string_view) override {
    numbers(key, member, parse_double);
    return {*this, key};
  }
  FieldRule field(std::string_view key, std::vector<int>& member, std::string_view) override {
    numbers(key, member, [](std::string_view text) -> Parsed<int> {
      const Parsed<std::int64_t> wide = parse_int64(text);
      const int narrow = static_cast<int>(wide.value);
      return {narrow, wide && narrow != wide.value ? "is out of range" : wide.error};
    });
    return {*this, key};
  }
  FieldRule field(std::string_view key, std::vector<std::string>& member, std::string_view) override {
    numbers(key, member, [](std::string_view text) -> Parsed<std::string> { return {std::string(text), {}}; });
    return {*this, key};
  }

  void rule(std::string_view key, bool holds, std::string_view text) override {
    if (holds || muted(key)) return;
    const Node* value = key.empty() ? nullptr : present(key);
    std::string message(text);
    if (value != nullptr && value->kind == Node::Kind::scalar) message += fmt::format(" (it is {})", quote_input(value->text));
    complain(key, value == nullptr ? frames_.back().node->place : value->place, std::move(message));
  }
  void missing_if_absent(std::string_view key) override {
    if (present(key) == nullptr && !muted(key)) complain(key, frames_.back().node->place, "is missing and has no default");
  }

 protected:
  FieldRule quantity(std::string_view key, double& base_units, const QuantityForm& form, std::string_view) override {
    const Node* node = scalar(key);
    if (node == nullptr) return {*this, key};
    std::string_view text = trim(node->text);
    if (form.automatic && text == "auto") {
      base_units = -1;
      return {*this, key};
    }
    if (!form.per.empty() && text != "0") {
      const std::string ending = fmt::format(" per {}", form.per);
      if (!text.ends_with(ending)) {
        bad(key, *node, fmt::format("must say{}, as in '840 GiB{}'{}", ending, ending, form.automatic ? ", or auto" : ""));
        return {*this, key};
      }
      text.remove_suffix(ending.size());
    }
    const Parsed<double> parsed = parse_quantity(text, form.dimension);
    if (!parsed) bad(key, *node, parsed.error);
    else if (form.automatic && parsed.value < 0) bad(key, *node, "must be >= 0, or auto");
    else base_units = parsed.value;
    return {*this, key};
  }
  FieldRule choice_index(std::string_view key, int& index, std::span<const Choice> choices, std::string_view) override {
    const Node* node = scalar(key);
    if (node == nullptr) return {*this, key};
    const auto found = std::ranges::find(choices, std::string_view(node->text), &Choice::name);
    if (found != choices.end()) {
      index = static_cast<int>(found - choices.begin());
      return {*this, key};
    }
    std::vector<std::string> names;
    std::string list;
    for (const Choice& choice : choices) {
      names.emplace_back(choice.name);
      list += (list.empty() ? "" : ", ") + names.back();
    }
    bad(key, *node, with_hint(fmt::format("must be one of {}", list), near_match(node->text, names)));
    return {*this, key};
  }

  bool enter(std::string_view key, std::string_view) override {
    Node* node = container(key, Node::Kind::mapping);
    if (node == nullptr) return false;
    push(*node, path(key), key);
    return true;
  }
  bool enter_optional(std::string_view key, bool& engaged, std::string_view doc) override {
    const Node* node = present(key);
    if (node != nullptr && node->kind == Node::Kind::null) {
      know(key);
      engaged = false;
      return false;
    }
    return enter(key, doc);
  }
  bool enter_list(std::string_view key, std::size_t& size, std::string_view) override {
    Node* node = container(key, Node::Kind::sequence);
    if (node == nullptr) return false;
    size = node->items.size();
    push(*node, path(key), key);
    return true;
  }
  bool enter_element(std::size_t index) override {
    Node& item = frames_.back().node->items[index];
    const std::string where = fmt::format("{}[{}]", frames_.back().path, index);
    if (item.kind != Node::Kind::mapping) {
      problems_.add(yaml::problem_at(item.place, where, fmt::format("must be a mapping, not {}", describe(item.kind))));
      return false;
    }
    push(item, where, "");
    return true;
  }
  void leave_list() override { pop(); }
  bool enter_map(std::string_view key, std::vector<std::string>& names, std::string_view) override {
    Node* node = container(key, Node::Kind::mapping);
    if (node == nullptr) return false;
    names.clear();
    for (const Node::Entry& entry : node->entries) names.push_back(entry.key);
    push(*node, path(key), key);
    return true;
  }
  bool enter_entry(const std::string& name) override {
    Node& value = frames_.back().node->find(name)->value;
    if (value.kind != Node::Kind::mapping) {
      problems_.add(yaml::problem_at(value.place, path(name), fmt::format("must be a mapping, not {}", describe(value.kind))));
      return false;
    }
    push(value, path(name), name);
    return true;
  }
  void leave_map() override { pop(); }
  bool enter_reference(std::string_view key, std::string_view kind, std::string_view doc) override {
    know(key);
    Node* node = present(key);
    if (node != nullptr && (node->kind == Node::Kind::scalar || node->find("base") != nullptr) &&
        !resolve(*node, kind, key))
      return false;
    return enter(key, doc);
  }
  void leave() override {
    const Frame& frame = frames_.back();
    for (const Node::Entry& entry : frame.node->entries) {
      if (std::ranges::find(frame.known, entry.key) != frame.known.end()) continue;
      problems_.add(yaml::problem_at(entry.place, path(entry.key), unknown_key(entry.key, frame.known)));
    }
    pop();
  }

 private:
  struct Frame {
    Node* node;
    std::string path;
    std::vector<std::string> known;
    std::set<std::string, std::less<>> failed;  // keys that have a problem already, in them or below
    std::string key;                            // in the frame above
    std::size_t problems_before = 0;
  };

  static std::string with_hint(const std::string& text, const std::string& hint) {
    return hint.empty() ? text : text + "; " + hint;
  }
  static std::string unknown_key(const std::string& key, const std::vector<std::string>& known) {
    const std::string hint = near_match(key, known);
    if (!hint.empty()) return "is not a key here; " + hint;
    std::set<std::string> sorted(known.begin(), known.end());
    std::string list;
    for (const std::string& name : sorted) list += (list.empty() ? "" : ", ") + name;
    return list.empty() ? "is not a key here: none is known" : "is not a key here; the keys are " + list;
  }
  void push(Node& node, std::string where, std::string_view key) {
    frames_.push_back({&node, std::move(where), {}, {}, std::string(key), problems_.problems().size()});
  }
  void pop() {
    const Frame done = std::move(frames_.back());
    frames_.pop_back();
    if (!frames_.empty() && problems_.problems().size() > done.problems_before) frames_.back().failed.insert(done.key);
  }
  std::string path(std::string_view key) const {
    const std::string& parent = frames_.back().path;
    return parent.empty() ? std::string(key) : key.empty() ? parent : fmt::format("{}.{}", parent, key);
  }
  void know(std::string_view key) { frames_.back().known.emplace_back(key); }
  bool muted(std::string_view key) const { return frames_.back().failed.contains(key); }
  Node* present(std::string_view key) const {
    Node& node = *frames_.back().node;
    Node::Entry* entry = node.kind == Node::Kind::mapping ? node.find(key) : nullptr;
    return entry == nullptr ? nullptr : &entry->value;
  }
  void complain(std::string_view key, const yaml::Place& place, std::string text) {
    frames_.back().failed.emplace(key);
    problems_.add(yaml::problem_at(place, path(key), std::move(text)));
  }
  void bad(std::string_view key, const Node& node, const std::string& rule) {
    complain(key, node.place, node.kind == Node::Kind::scalar ? fmt::format("{} {}", quote_input(node.text), rule) : rule);
  }

  // The scalar at key, or null when the key is absent or something else stands there.
  const Node* scalar(std::string_view key) {
    know(key);
    const Node* node = present(key);
    if (node == nullptr) return nullptr;
    if (node->kind != Node::Kind::scalar) {
      bad(key, *node, fmt::format("must be a single value, not {}", describe(node->kind)));
      return nullptr;
    }
    return inside(key, *node) ? nullptr : node;
  }
  // Sets that wanted to go inside something that is not a reference.
  bool inside(std::string_view key, const Node& node) {
    for (const yaml::PendingSet& set : node.pending)
      complain(key, set.value->place, fmt::format("is a single value, {}: nothing can be set inside it", quote_input(node.text)));
    return !node.pending.empty();
  }
  Node* container(std::string_view key, Node::Kind kind) {
    know(key);
    Node* node = present(key);
    if (node == nullptr) return nullptr;
    if (node->kind == kind) return node;
    if (!inside(key, *node)) bad(key, *node, fmt::format("must be {}, not {}", describe(kind), describe(node->kind)));
    return nullptr;
  }
  template <class T, class Parse>
  const Node* number(std::string_view key, T& member, Parse parse) {
    const Node* node = scalar(key);
    if (node == nullptr) return nullptr;
    const Parsed<T> parsed = parse(node->text);
    if (parsed) member = parsed.value;
    else bad(key, *node, parsed.error);
    return parsed ? node : nullptr;
  }
  template <class T, class Parse>
  void numbers(std::string_view key, std::vector<T>& member, Parse parse) {
    const Node* node = container(key, Node::Kind::sequence);
    if (node == nullptr) return;
    std::vector<T> values;
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const Node& item = node->items[i];
      const Parsed<T> parsed = item.kind == Node::Kind::scalar ? parse(item.text) : Parsed<T>{{}, "must be a single value"};
      if (parsed) values.push_back(parsed.value);
      else problems_.add(yaml::problem_at(item.place, fmt::format("{}[{}]", path(key), i), quote_input(item.text) + " " + parsed.error));
      if (!parsed) frames_.back().failed.emplace(key);
    }
    if (values.size() == node->items.size()) member = std::move(values);
  }

  // Puts the named file's tree in place of a name or of {base: name, ...}; false after a problem.
  bool resolve(Node& node, std::string_view kind, std::string_view key) {
    for (int depth = 0; node.kind == Node::Kind::scalar || node.find("base") != nullptr; ++depth) {
      const Node::Entry* base = node.kind == Node::Kind::mapping ? node.find("base") : nullptr;
      const Node name = base == nullptr ? node : base->value;
      const std::vector<yaml::PendingSet> pending = node.pending;
      if (depth == max_bases) return refuse(key, name, fmt::format("files name each other as base more than {} times: is it a circle?", max_bases));
      if (name.kind != Node::Kind::scalar) return refuse(key, name, fmt::format("base must be the name of a file, not {}", describe(name.kind)));
      if (!options_.resolve) return refuse(key, name, "must be written inline here: names of files are not resolved");
      Node tree;
      try {
        const YamlSource source = options_.resolve(kind, name.text, name.place.line > 0 ? *name.place.file : "");
        Diagnostics inner;
        std::optional<Node> parsed = yaml::parse(source, inner);
        for (const Problem& problem : inner.problems()) problems_.add(problem);
        if (!parsed) return fail(key);
        tree = std::move(*parsed);
      } catch (const UserError& error) {
        complain(key, name.place, error.problems().front().rule);
        return false;
      }
      if (tree.kind != Node::Kind::mapping) return refuse(key, tree, "must be a mapping");
      Node overlay = node;
      if (base != nullptr) {
        std::erase_if(overlay.entries, [](const Node::Entry& entry) { return entry.key == "base"; });
        overlay.pending.clear();
        yaml::merge(tree, overlay);
      }
      node = std::move(tree);
      yaml::apply_pending(node, pending, problems_);
    }
    return true;
  }
  bool refuse(std::string_view key, const Node& node, const std::string& rule) {
    bad(key, node, rule);
    return false;
  }
  bool fail(std::string_view key) {
    frames_.back().failed.emplace(key);
    return false;
  }

  const ReadOptions& options_;
  Diagnostics problems_;
  Node root_;
  std::vector<Frame> frames_;
};

}  // namespace

void read_yaml(const YamlSource& source, const ReadOptions& options, const std::function<void(Visitor&)>& walk) {
  Reader reader(source, options);
  walk(reader);
  reader.finish();
}

}  // namespace rackcast
