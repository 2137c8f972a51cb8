#include "sim/spec/expert_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "sim/base/csv.hpp"
#include "sim/base/error.hpp"

namespace rackcast {

namespace {

constexpr int most_layers = 1024, most_ranks = 4096;
constexpr int most_experts = 1 << 15;  // a placement keeps them in 16 bits

int bounded(const CsvTable& table, std::size_t row, const char* column, int most) {
  const std::optional<int> value = table.integer(row, column);
  if (!value || *value < 0 || *value >= most)
    throw UserError(fmt::format("{}:{}: {}: must be 0 to {}", table.file(), table.line(row), column, most - 1));
  return *value;
}

}  // namespace

std::vector<std::vector<double>> read_expert_counts(const std::string& path) {
  const CsvTable table = CsvTable::read(path);
  table.require({"layer", "expert", "tokens"});
  std::vector<std::vector<double>> counts;
  std::set<std::pair<int, int>> seen;
  int experts = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const int layer = bounded(table, row, "layer", most_layers), expert = bounded(table, row, "expert", most_experts);
    const std::optional<double> tokens = table.number(row, "tokens");
    if (!tokens || *tokens < 0) throw UserError(fmt::format("{}:{}: tokens: must be a number >= 0", path, table.line(row)));
    if (!seen.insert({layer, expert}).second)
      throw UserError(fmt::format("{}:{}: layer {} has expert {} twice", path, table.line(row), layer, expert));
    experts = std::max(experts, expert + 1);
    if (static_cast<std::size_t>(layer) >= counts.size()) counts.resize(static_cast<std::size_t>(layer) + 1);
    auto& of_layer = counts[static_cast<std::size_t>(layer)];
    if (static_cast<std::size_t>(expert) >= of_layer.size()) of_layer.resize(static_cast<std::size_t>(expert) + 1, 0.0);
    of_layer[static_cast<std::size_t>(expert)] = *tokens;
  }
  if (counts.empty()) throw UserError(path + ": no counts");
  for (std::size_t l = 0; l < counts.size(); ++l) {
    counts[l].resize(static_cast<std::size_t>(experts), 0.0);
    if (std::accumulate(counts[l].begin(), counts[l].end(), 0.0) <= 0) throw UserError(fmt::format("{}: layer {} has no tokens", path, l));
  }
  return counts;
}

std::vector<ExpertPlacement> read_placement_table(const std::string& path) {
  const CsvTable table = CsvTable::read(path);
  table.require({"layer", "rank", "slot", "expert"});
  int layers = 0, ranks = 0, slots = 0, experts = 0;
  std::vector<std::tuple<int, int, int, int>> rows;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    rows.emplace_back(bounded(table, row, "layer", most_layers), bounded(table, row, "rank", most_ranks),
                      bounded(table, row, "slot", most_experts), bounded(table, row, "expert", most_experts));
    const auto& [layer, rank, slot, expert] = rows.back();
    layers = std::max(layers, layer + 1);
    ranks = std::max(ranks, rank + 1);
    slots = std::max(slots, slot + 1);
    experts = std::max(experts, expert + 1);
  }
  if (rows.size() != static_cast<std::size_t>(layers) * static_cast<std::size_t>(ranks) * static_cast<std::size_t>(slots))
    throw UserError(fmt::format("{}: {} rows, but {} layers x {} ranks x {} slots are {}", path, rows.size(), layers, ranks, slots, layers * ranks * slots));
  std::sort(rows.begin(), rows.end());
  std::vector<ExpertPlacement> placements(static_cast<std::size_t>(layers), {experts, ranks, slots, {}});
  std::tuple<int, int, int> last{-1, -1, -1};
  for (const auto& [layer, rank, slot, expert] : rows) {
    if (last == std::tuple{layer, rank, slot}) throw UserError(fmt::format("{}: layer {} has slot {} of rank {} twice", path, layer, slot, rank));
    last = {layer, rank, slot};
    placements[static_cast<std::size_t>(layer)].slot_expert.push_back(static_cast<std::uint16_t>(expert));
  }
  for (int l = 0; l < layers; ++l) {
    const std::vector<int> replicas = replica_counts(placements[static_cast<std::size_t>(l)]);
    const auto missing = std::find(replicas.begin(), replicas.end(), 0);
    if (missing != replicas.end()) throw UserError(fmt::format("{}: layer {} has no slot for expert {}", path, l, missing - replicas.begin()));
  }
  return placements;
}

std::string placement_table_text(const std::vector<ExpertPlacement>& layers) {
  std::string text = "layer,rank,slot,expert\n";
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (int r = 0; r < layers[l].ranks; ++r)
      for (int s = 0; s < layers[l].slots_per_rank; ++s)
        text += fmt::format("{},{},{},{}\n", l, r, s, layers[l].rank(r)[static_cast<std::size_t>(s)]);
  return text;
}

}  // namespace rackcast
