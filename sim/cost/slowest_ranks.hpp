// The ranks that decide how long a step lasts: by their attention side, and by each group of operators that every rank runs
// for itself. Time grows with a batch, so few ranks need their time known exactly.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/cost/host_time.hpp"
#include "sim/cost/rank_time.hpp"
#include "sim/cost/step_model.hpp"

namespace rackcast {

struct Slowest {
  RankTime layers;                       // of the rank with most attention-side time
  double moe_s = 0, head_s = 0, draft_s = 0;  // rank-level operators of these groups, each of its own slowest rank
  double requests = 0;                   // most on one rank
  double host_s = 0, host_behind_s = 0;  // most work of one host
  bool prompts = false;
  std::array<double, row_features> largest{}, total{};
  std::array<const RankBatch*, 4> batch{};  // of the slowest rank by layers, moe, head, draft
};

class SlowestRanks {
 public:
  explicit SlowestRanks(const StepContext& context);
  SlowestRanks(const SlowestRanks&) = delete;  // curves point to the operators
  SlowestRanks& operator=(const SlowestRanks&) = delete;
  // Graphs of up to `padded_tokens` rows have one size on all ranks.
  Slowest find(std::span<const RankBatch> ranks, const HostTime& host, double padded_tokens) const;
  RankTime rank_time(const Features& x) const;

  const FeatureMap& map() const { return map_; }
  const std::vector<Operator>& operators() const { return operators_; }

 private:
  // The maxima over ranks that a step is made of: attention side, and the rank-level operators of three groups.
  static constexpr std::size_t key_count = 4;
  using Keys = std::array<double, key_count>;
  static std::size_t key_of(Group g) { return g == Group::moe ? 1 : g == Group::head ? 2 : g == Group::draft ? 3 : 0; }
  static Keys keys_of(const RankTime& t) {
    return {t.layers_s(), t.groups[index_of(Group::moe)], t.groups[index_of(Group::head)], t.groups[index_of(Group::draft)]};
  }

  RankTime curve_time(const Features& x) const;
  void find_candidates(std::span<const RankBatch> ranks) const;
  void keep_possible() const;
  void check_slowest(std::span<const RankBatch> ranks, const Keys& found) const;

  FeatureMap map_;
  std::vector<Operator> operators_;
  std::array<RowCurve, row_features> curves_;
  std::vector<DirectOperator> direct_;
  std::array<bool, key_count> costly_{};  // some time of this key takes powers
  // Of the step that is being computed; a model serves one thread.
  mutable std::vector<std::size_t> candidates_;
  mutable std::vector<Features> features_;  // of the candidates, as the two below
  mutable std::vector<Keys> above_;
  mutable std::vector<char> chosen_;
  static constexpr std::uint64_t check_every = 64;
  mutable std::uint64_t steps_ = 0;
};

}  // namespace rackcast
