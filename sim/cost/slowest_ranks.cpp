#include "sim/cost/slowest_ranks.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

// A prompt is not compared: its queries' mean context may fall as it grows.
bool contains(const RankBatch& a, const RankBatch& b) {
  return b.prefill_tokens <= 0 && a.decode_context >= b.decode_context && a.decode_requests >= b.decode_requests &&
         a.decode_tokens >= b.decode_tokens && a.decode_query_context >= b.decode_query_context && a.draft_requests >= b.draft_requests;
}

void keep_slower(double seconds, double& slowest_s, const RankBatch& batch, const RankBatch*& kept) {
  if (seconds <= slowest_s) return;
  slowest_s = seconds;
  kept = &batch;
}

}  // namespace

SlowestRanks::SlowestRanks(const StepContext& context)
    : map_(context.model, context.kv_format, context.draft_tokens,
           context.tensor_parallel && context.model.attention.form == AttentionForm::grouped
               ? std::min(context.ranks, context.model.attention.kv_heads) : 1),
      operators_(build_operators(context, map_)) {
  for (const Operator& op : operators_)
    if (op.by_rows()) curves_[static_cast<std::size_t>(op.gate)].add(&op);
    else direct_.emplace_back(op);
  for (const DirectOperator& op : direct_)
    if (!op.norm.cheap()) costly_[key_of(static_cast<Group>(op.group))] = true;
}

RankTime SlowestRanks::rank_time(const Features& x) const {
  RankTime t = curve_time(x);
  for (const DirectOperator& op : direct_) t.groups[static_cast<std::size_t>(op.group)] += op.seconds(x);
  return t;
}

RankTime SlowestRanks::curve_time(const Features& x) const {
  RankTime t;
  GroupSeconds scratch;
  for (std::size_t f = 0; f < row_features; ++f) {
    if (x[f] <= 0) continue;
    const GroupSeconds& add = curves_[f].at(x[f], f, scratch);
    for (std::size_t g = 0; g < group_count; ++g) t.groups[g] += add[g];
  }
  return t;
}

// Ranks that can be the slowest by anything: those whose batch no other one's contains. Time grows with requests and
// with context, since what a query attends is concave in its context.
void SlowestRanks::find_candidates(std::span<const RankBatch> ranks) const {
  candidates_.clear();
  std::size_t most_context = 0, most_requests = 0;
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    if (ranks[r].decode_context + ranks[r].prefill_context > ranks[most_context].decode_context + ranks[most_context].prefill_context) most_context = r;
    if (ranks[r].decode_tokens + ranks[r].prefill_tokens > ranks[most_requests].decode_tokens + ranks[most_requests].prefill_tokens) most_requests = r;
  }
  candidates_.push_back(most_context);
  if (most_requests != most_context) candidates_.push_back(most_requests);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (r == most_context || r == most_requests) continue;
    const bool contained = std::any_of(candidates_.begin(), candidates_.end(), [&](std::size_t c) { return contains(ranks[c], ranks[r]); });
    if (!contained) candidates_.push_back(r);
  }
  std::sort(candidates_.begin(), candidates_.end());
}

// Of the candidates, those whose time must be known exactly. An upper bound of each costs no powers; the one with the
// largest bound is computed, and whoever cannot reach it is left out.
void SlowestRanks::keep_possible() const {
  const std::size_t count = candidates_.size();
  chosen_.assign(count, 0);
  above_.resize(count);
  std::array<std::size_t, key_count> most{};
  for (std::size_t c = 0; c < count; ++c) {
    RankTime t = curve_time(features_[c]);
    for (const DirectOperator& op : direct_) t.groups[static_cast<std::size_t>(op.group)] += op.seconds_above(features_[c]);
    above_[c] = keys_of(t);
    for (std::size_t k = 0; k < key_count; ++k)
      if (above_[c][k] > above_[most[k]][k]) most[k] = c;
  }
  for (std::size_t k = 0; k < key_count; ++k) {
    chosen_[most[k]] = 1;
    if (!costly_[k]) continue;  // the bound is the time
    const double reached = keys_of(rank_time(features_[most[k]]))[k];
    for (std::size_t c = 0; c < count; ++c)
      if (above_[c][k] > reached) chosen_[c] = 1;
  }
}

Slowest SlowestRanks::find(std::span<const RankBatch> ranks, const HostTime& host, double padded_tokens) const {
  static constexpr RankBatch idle{};
  Slowest s;
  s.batch.fill(&idle);
  std::array<double, row_features> rows;
  for (const RankBatch& batch : ranks) {
    map_.compute_rows(batch, rows.data());
    s.requests = std::max(s.requests, batch.decode_requests + batch.prefill_requests);
    s.host_s = std::max(s.host_s, host.work_s(batch));
    s.prompts = s.prompts || batch.prefill_tokens > 0;
    s.host_behind_s = std::max(s.host_behind_s, batch.host_behind_s);
    for (std::size_t f = 0; f < row_features; ++f) {
      s.largest[f] = std::max(s.largest[f], rows[f]);
      s.total[f] += rows[f];
    }
  }
  // A graph has one size on all ranks: rows that pad a rank go through its experts like any other.
  if (const double most = s.largest[static_cast<std::size_t>(Rows::tokens)]; most > 0 && most <= padded_tokens)
    for (std::size_t f = 0; f < row_features; ++f) s.total[f] = s.largest[f] * static_cast<double>(ranks.size());
  find_candidates(ranks);
  features_.resize(std::max(features_.size(), candidates_.size()));
  for (std::size_t c = 0; c < candidates_.size(); ++c) map_.compute(ranks[candidates_[c]], features_[c]);
  const bool choose = candidates_.size() > 2 && std::find(costly_.begin(), costly_.end(), true) != costly_.end();
  if (choose) keep_possible();
  double layers_s = 0;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    if (choose && !chosen_[c]) continue;
    const RankBatch& batch = ranks[candidates_[c]];
    const RankTime t = rank_time(features_[c]);
    if (t.layers_s() > layers_s) {
      layers_s = t.layers_s();
      s.layers = t;
      s.batch[0] = &batch;
    }
    keep_slower(t.groups[index_of(Group::moe)], s.moe_s, batch, s.batch[1]);
    keep_slower(t.groups[index_of(Group::head)], s.head_s, batch, s.batch[2]);
    keep_slower(t.groups[index_of(Group::draft)], s.draft_s, batch, s.batch[3]);
  }
#ifdef RACKCAST_CHECKS
  if (++steps_ % check_every == 0) check_slowest(ranks, {layers_s, s.moe_s, s.head_s, s.draft_s});
#endif
  return s;
}

// Whoever was left out is indeed no slower.
void SlowestRanks::check_slowest(std::span<const RankBatch> ranks, const Keys& found) const {
  Features x{};
  for (const RankBatch& batch : ranks) {
    map_.compute(batch, x);
    const Keys keys = keys_of(rank_time(x));
    for (std::size_t k = 0; k < key_count; ++k)
      RACKCAST_CHECK(keys[k] <= found[k] * (1 + 1e-12), "a rank that was left out is the slowest");
  }
}

}  // namespace rackcast
