#include "sim/policy/expert_moves.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

using Pairs = std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint32_t>;

std::vector<ExpertMove> list_of(const Pairs& pairs) {
  std::vector<ExpertMove> moves;
  for (const auto& [pair, experts] : pairs) moves.push_back({pair.first, pair.second, experts});
  return moves;
}

}  // namespace

std::vector<ExpertMove> expert_moves(const ExpertPlacement& from, const ExpertPlacement& to) {
  RACKCAST_CHECK(from.ranks == to.ranks && from.experts == to.experts, "placements of different engines");
  std::vector<std::vector<std::uint16_t>> holders(static_cast<std::size_t>(from.experts));
  for (int r = 0; r < from.ranks; ++r)
    for (const std::uint16_t expert : from.rank(r))
      if (holders[expert].empty() || holders[expert].back() != r) holders[expert].push_back(static_cast<std::uint16_t>(r));
  std::vector<std::uint32_t> sent(static_cast<std::size_t>(from.ranks), 0);
  Pairs pairs;
  for (int r = 0; r < to.ranks; ++r) {
    const auto had = from.rank(r);
    std::vector<std::uint16_t> fresh;
    for (const std::uint16_t expert : to.rank(r))
      if (std::find(had.begin(), had.end(), expert) == had.end() && std::find(fresh.begin(), fresh.end(), expert) == fresh.end())
        fresh.push_back(expert);
    for (const std::uint16_t expert : fresh) {
      const auto source = *std::min_element(holders[expert].begin(), holders[expert].end(),
                                            [&](std::uint16_t a, std::uint16_t b) { return sent[a] < sent[b]; });
      ++sent[source];
      ++pairs[{source, static_cast<std::uint16_t>(r)}];
    }
  }
  return list_of(pairs);
}

std::vector<ExpertMove> merge_moves(const std::vector<std::vector<ExpertMove>>& layers) {
  Pairs pairs;
  for (const auto& layer : layers)
    for (const ExpertMove& move : layer) pairs[{move.from, move.to}] += move.experts;
  return list_of(pairs);
}

}  // namespace rackcast
