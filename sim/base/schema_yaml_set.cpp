// `--set a.b[0].c=value` on a tree. A path that runs into the name of a file ("rack: gb300-nvl72", "rack.gpus=36")
// waits there, because only the walk knows that it is a reference.
#include <fmt/format.h>

#include "sim/base/schema_yaml_tree.hpp"
#include "sim/base/text.hpp"

namespace rackcast::yaml {

namespace {

// "a.b[0].\"x.y\"" -> steps; an error text when it is no path.
Parsed<std::vector<Step>> parse_path(std::string_view text) {
  std::vector<Step> steps;
  const std::string bad = "is not a key path such as deployment.decode.dep or pools[0].count";
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '[') {
      const std::size_t end = text.find(']', at);
      if (steps.empty() || end == std::string_view::npos) return {{}, bad};
      const Parsed<std::uint64_t> index = parse_uint64(text.substr(at + 1, end - at - 1));
      if (!index || index.value > max_nodes) return {{}, bad};
      steps.push_back({{}, static_cast<std::size_t>(index.value), true});
      at = end + 1;
    } else {
      if (!steps.empty() && text[at++] != '.') return {{}, bad};
      const bool quote = at < text.size() && text[at] == '"';
      const std::size_t end = quote ? text.find('"', at + 1) : std::min(text.find_first_of(".[\"", at), text.size());
      if (end == std::string_view::npos) return {{}, bad};
      const std::string_view key = quote ? text.substr(at + 1, end - at - 1) : text.substr(at, end - at);
      if (key.empty()) return {{}, bad};
      steps.push_back({std::string(key), 0, false});
      at = quote ? end + 1 : end;
    }
  }
  if (steps.empty() || steps.size() > static_cast<std::size_t>(max_depth)) return {{}, bad};
  return {steps, {}};
}

// Everything inside takes the place of the --set: there are no lines to cite.
void cite(Node& node, const Place& place) {
  node.place = place;
  for (Node& item : node.items) cite(item, place);
  for (Node::Entry& entry : node.entries) {
    entry.place = place;
    cite(entry.value, place);
  }
}

std::string show(const std::vector<Step>& path, std::size_t length) {
  std::string text;
  for (std::size_t i = 0; i < length; ++i)
    text += path[i].is_index ? fmt::format("[{}]", path[i].index) : (text.empty() ? "" : ".") + path[i].key;
  return text;
}

// root_has_base false: a key "base" at the root is a key like any other.
void apply(Node& root, const std::vector<Step>& path, const std::shared_ptr<const Node>& value, Diagnostics& problems, bool root_has_base) {
  Node* node = &root;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const Step& step = path[i];
    const bool names_a_file = node->kind == Node::Kind::scalar ||
                              (node->kind == Node::Kind::mapping && (i > 0 || root_has_base) && node->find("base") != nullptr &&
                               (step.is_index || node->find(step.key) == nullptr));
    if (names_a_file) {
      node->pending.push_back({{path.begin() + static_cast<std::ptrdiff_t>(i), path.end()}, value});
      return;
    }
    if (node->kind == Node::Kind::null) {
      node->kind = step.is_index ? Node::Kind::sequence : Node::Kind::mapping;
      node->place = value->place;
    }
    if (step.is_index != (node->kind == Node::Kind::sequence))
      return problems.add(problem_at(value->place, show(path, i), fmt::format("is {}", describe(node->kind))));
    if (step.is_index) {
      if (step.index > node->items.size())
        return problems.add(problem_at(value->place, show(path, i + 1),
                                       fmt::format("is past the end: the list has {} elements", node->items.size())));
      if (step.index == node->items.size()) node->items.emplace_back();
      node = &node->items[step.index];
    } else {
      if (node->find(step.key) == nullptr) node->entries.push_back({step.key, value->place, Node{}});
      Node::Entry* entry = node->find(step.key);
      if (i + 1 == path.size()) entry->place = value->place;
      node = &entry->value;
    }
  }
  *node = *value;
}

}  // namespace

void apply_set(Node& root, const std::string& set, Diagnostics& problems, bool root_has_base) {
  const auto file = std::make_shared<const std::string>("--set " + set);
  const Place place{file, 0, 0};
  const std::size_t equals = set.find('=');
  if (equals == std::string::npos) return problems.add(problem_at(place, "", "has no '=': write --set key.path=value"));
  const Parsed<std::vector<Step>> path = parse_path(trim(std::string_view(set).substr(0, equals)));
  if (!path) return problems.add(problem_at(place, "", path.error));
  const std::string text = set.substr(equals + 1);
  Diagnostics inner;
  Node value = parse({*file, text}, inner).value_or(Node{});
  // An empty value and an empty mapping parse alike; only the latter is written with braces.
  if (value.kind == Node::Kind::mapping && value.entries.empty() && trim(text) != "{}") value.kind = Node::Kind::null;
  cite(value, place);
  for (Problem problem : inner.problems()) {
    problem.line = problem.column = 0;
    problems.add(std::move(problem));
  }
  if (inner.empty()) apply(root, path.value, std::make_shared<const Node>(std::move(value)), problems, root_has_base);
}

void apply_pending(Node& root, const std::vector<PendingSet>& pending, Diagnostics& problems) {
  for (const PendingSet& set : pending) apply(root, set.path, set.value, problems, true);
}

}  // namespace rackcast::yaml
