#include "sim/base/schema_yaml_tree.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "sim/base/text.hpp"

namespace rackcast::yaml {

const char* describe(Node::Kind kind) {
  constexpr const char* names[] = {"nothing", "a single value", "a list", "a mapping"};
  return names[static_cast<int>(kind)];
}

Problem problem_at(const Place& place, std::string_view key, std::string rule) {
  return {place.file ? *place.file : "", place.line, place.column, std::string(key), std::move(rule)};
}

Node::Entry* Node::find(std::string_view key) {
  const auto found = std::ranges::find(entries, key, &Entry::key);
  return found == entries.end() ? nullptr : &*found;
}
const Node::Entry* Node::find(std::string_view key) const { return const_cast<Node*>(this)->find(key); }

namespace {

// Thrown through yaml-cpp to stop at once: the input is over a bound.
struct Stop {};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const std::string> file, Diagnostics& problems)
      : file_(std::move(file)), problems_(problems) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(mark, Node::Kind::null), anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      problem(mark, "an alias may not stand inside its own anchor");
      return add(make(mark, Node::Kind::null), 0);
    }
    Node copy = found->second;
    if (static_cast<int>(open_.size()) + depth_of(copy) > max_depth) stop(mark, fmt::format("is nested more than {} deep", max_depth));
    count(mark, size_of(copy));
    add(std::move(copy), 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text) override {
    check_tag(mark, tag);
    if (text.size() > max_scalar) stop(mark, fmt::format("is a value of more than {} bytes", max_scalar));
    const bool plain = tag == "?" || tag.empty();
    Node node = make(mark, plain && (text == "~" || text == "null") ? Node::Kind::null : Node::Kind::scalar);
    node.text = text;
    add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

  Node take() { return std::move(root_); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
    bool has_key = false, skip = false;  // skip: the value of a key that was refused
    std::string key;
    Place key_place;
    std::map<std::string, int> seen;  // key -> line
  };

  Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }
  void problem(const YAML::Mark& mark, const std::string& rule) { problems_.add(problem_at(place(mark), "", rule)); }
  [[noreturn]] void stop(const YAML::Mark& mark, const std::string& rule) {
    problem(mark, rule);
    throw Stop{};
  }
  void count_at(const Place& where, std::size_t more) {
    nodes_ += more;
    if (nodes_ <= max_nodes) return;
    problems_.add(problem_at(where, "", fmt::format("the file has more than {} values (aliases counted as copies)", max_nodes)));
    throw Stop{};
  }
  void count(const YAML::Mark& mark, std::size_t more) { count_at(place(mark), more); }
  Node make(const YAML::Mark& mark, Node::Kind kind) {
    count(mark, 1);
    Node node;
    node.kind = kind;
    node.place = place(mark);
    return node;
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") problem(mark, fmt::format("tags are not used here: drop {}", quote_input(tag)));
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    check_tag(mark, tag);
    if (static_cast<int>(open_.size()) >= max_depth) stop(mark, fmt::format("is nested more than {} deep", max_depth));
    open_.push_back({make(mark, kind), anchor, false, false, {}, {}, {}});
  }
  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor);
  }
  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      count_at(node.place, size_of(node));
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::sequence)
      parent.node.items.push_back(std::move(node));
    else if (!parent.has_key)
      set_key(parent, node);
    else {
      parent.has_key = false;
      if (!parent.skip) parent.node.entries.push_back({parent.key, parent.key_place, std::move(node)});
    }
  }
  void set_key(Open& parent, const Node& node) {
    parent.has_key = true;
    parent.key = node.text;
    parent.key_place = node.place;
    parent.skip = true;
    if (node.kind != Node::Kind::scalar)
      problems_.add(problem_at(node.place, "", fmt::format("a key must be a word, not {}", describe(node.kind))));
    else if (node.text == "<<")
      problems_.add(problem_at(node.place, "<<", "merge keys are not supported: write the keys out, or use base: NAME"));
    else if (const auto [first, fresh] = parent.seen.try_emplace(node.text, node.place.line); !fresh)
      problems_.add(problem_at(node.place, node.text, fmt::format("is given twice (first on line {}): keep one", first->second)));
    else
      parent.skip = false;
  }
  static std::size_t size_of(const Node& node) {
    std::size_t total = 1;
    for (const Node& item : node.items) total += size_of(item);
    for (const auto& entry : node.entries) total += 1 + size_of(entry.value);
    return total;
  }
  static int depth_of(const Node& node) {
    int deepest = 0;
    for (const Node& item : node.items) deepest = std::max(deepest, depth_of(item));
    for (const auto& entry : node.entries) deepest = std::max(deepest, depth_of(entry.value));
    return deepest + (node.kind == Node::Kind::sequence || node.kind == Node::Kind::mapping ? 1 : 0);
  }

  std::shared_ptr<const std::string> file_;
  Diagnostics& problems_;
  Node root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0;
};

Place place_of(const std::shared_ptr<const std::string>& file, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = static_cast<int>(std::ranges::count(before, '\n')) + 1;
  const std::size_t start = before.rfind('\n');
  return {file, line, static_cast<int>(offset - (start == std::string_view::npos ? 0 : start + 1)) + 1};
}

// Bytes that no text file holds; yaml-cpp would stop reading at a NUL and guess at other encodings.
bool is_text(const std::shared_ptr<const std::string>& file, std::string_view text, Diagnostics& problems) {
  if (text.size() > max_bytes) {
    problems.add(problem_at({file, 1, 1}, "", fmt::format("is larger than {} MiB", max_bytes >> 20U)));
    return false;
  }
  const std::size_t bad = first_invalid_utf8(text);
  const auto control = [](char c) { return (c >= 0 && c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F; };
  const auto found = std::ranges::find_if(text, control);
  const auto offset = static_cast<std::size_t>(found - text.begin());
  if (bad != std::string_view::npos)
    problems.add(problem_at(place_of(file, text, bad), "", fmt::format("byte 0x{:02x} is not UTF-8 text", static_cast<unsigned char>(text[bad]))));
  else if (found != text.end())
    problems.add(problem_at(place_of(file, text, offset), "", fmt::format("byte 0x{:02x} is a control character", static_cast<unsigned char>(*found))));
  return bad == std::string_view::npos && found == text.end();
}

}  // namespace

std::optional<Node> parse(const YamlSource& source, Diagnostics& problems) {
  const auto file = std::make_shared<const std::string>(source.name);
  if (!is_text(file, source.text, problems)) return std::nullopt;
  Node empty;
  empty.kind = Node::Kind::mapping;
  empty.place = {file, 1, 1};
  TreeBuilder builder(file, problems);
  try {
    // yaml-cpp takes an unclosed quote at the end of a file for a value; it refuses one that runs into an end marker.
    std::istringstream stream(source.text + (source.text.ends_with('\n') ? "...\n" : "\n...\n"));
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return empty;
    Node root = builder.take();
    TreeBuilder rest(file, problems);
    if (parser.HandleNextDocument(rest)) {
      const Place place = rest.take().place;
      problems.add(problem_at(place, "", "a second document starts here: one file holds one document"));
    }
    if (root.kind == Node::Kind::null) return empty;
    return root;
  } catch (const Stop&) {  // its problem is in the list
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    problems.add(problem_at({file, error.mark.line + 1, error.mark.column + 1}, "", "is not YAML: " + error.msg));
  }
  return std::nullopt;
}

void merge(Node& base, const Node& overlay) {
  if (base.kind != Node::Kind::mapping || overlay.kind != Node::Kind::mapping || overlay.find("base") != nullptr) {
    // A mapping laid over the name of a file means that file with some keys replaced.
    if (base.kind == Node::Kind::scalar && overlay.kind == Node::Kind::mapping && overlay.find("base") == nullptr) {
      Node named = overlay;
      named.entries.push_back({"base", base.place, base});
      base = std::move(named);
      return;
    }
    base = overlay;
    return;
  }
  for (const Node::Entry& entry : overlay.entries) {
    if (Node::Entry* old = base.find(entry.key)) {
      old->place = entry.place;
      merge(old->value, entry.value);
    } else {
      base.entries.push_back(entry);
    }
  }
  base.pending.insert(base.pending.end(), overlay.pending.begin(), overlay.pending.end());
}

}  // namespace rackcast::yaml
