// A YAML file as a tree that remembers where each node stood. Built from yaml-cpp's events, because its own node API
// keeps duplicate keys silently; bounded in size, depth and alias expansion, so that hostile input fails early.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/schema_yaml.hpp"

namespace rackcast::yaml {

inline constexpr std::size_t max_bytes = 2U << 20U;     // of one file; yaml-cpp takes up to 200 times that in memory
inline constexpr std::size_t max_scalar = 64U << 10U;   // bytes of one value
inline constexpr int max_depth = 32;
inline constexpr std::size_t max_nodes = 200'000;       // after alias expansion

struct Place {
  std::shared_ptr<const std::string> file;  // shared by all nodes of a file
  int line = 0, column = 0;                 // 1-based; 0: a --set
};

struct Node;

// One step of a --set path: a key, or an index into a sequence.
struct Step {
  std::string key;
  std::size_t index = 0;
  bool is_index = false;
};

// The rest of a --set whose path goes on inside a referenced file.
struct PendingSet {
  std::vector<Step> path;
  std::shared_ptr<const Node> value;
};

struct Node {
  enum class Kind { null, scalar, sequence, mapping };
  struct Entry;
  Kind kind = Kind::null;
  Place place;
  std::string text;             // of a scalar
  std::vector<Node> items;      // of a sequence
  std::vector<Entry> entries;   // of a mapping, in file order, keys unique
  std::vector<PendingSet> pending;

  Entry* find(std::string_view key);
  const Entry* find(std::string_view key) const;
};

struct Node::Entry {
  std::string key;
  Place place;  // of the key
  Node value;
};

const char* describe(Node::Kind kind);  // "a mapping", ...
Problem problem_at(const Place& place, std::string_view key, std::string rule);

// Adds every problem. Nothing when the text is no YAML or over a bound; a tree, though with problems (duplicate keys),
// otherwise. An empty file is an empty mapping.
std::optional<Node> parse(const YamlSource& source, Diagnostics& problems);

// Applies "a.b[0].c=value" to a tree; paths that enter a reference wait there until it is resolved.
void apply_set(Node& root, const std::string& set, Diagnostics& problems, bool root_has_base = true);

// The sets that waited at a reference, applied to the tree of its file.
void apply_pending(Node& root, const std::vector<PendingSet>& pending, Diagnostics& problems);

// Replaces keys of `base` by those of `overlay`: mapping by mapping, everything else as a whole.
void merge(Node& base, const Node& overlay);

}  // namespace rackcast::yaml
