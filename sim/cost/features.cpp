#include "sim/cost/features.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace rackcast {

FeatureMap::FeatureMap(const ModelSpec& model, KvFormat format, int draft_tokens, int kv_parts)
    : window_(model.attention.window),
      selected_(model.indexer.selected),
      candidates_(model.indexer.candidates),
      row_bytes_(model.kv_format(format).row.value() / kv_parts),
      window_row_bytes_(model.kv_format(format).window_row.value() / kv_parts),
      index_key_bytes_(model.kv_format(format).index_key.value()),
      rows_per_query_(model.attention.form == AttentionForm::latent),
      draft_tokens_(draft_tokens) {}

namespace {

template <class Pattern>
int number_of(std::vector<Pattern>& known, const Pattern& wanted, int limit) {
  const auto found = std::find(known.begin(), known.end(), wanted);
  if (found != known.end()) return static_cast<int>(found - known.begin());
  if (static_cast<int>(known.size()) == limit)
    throw UserError("the model has more than " + std::to_string(limit) + " different kinds of attention; merge some");
  known.push_back(wanted);
  return static_cast<int>(known.size()) - 1;
}

}  // namespace

int FeatureMap::pattern(const AttentionPattern& wanted) { return number_of(patterns_, wanted, max_patterns); }
int FeatureMap::index_pattern(const IndexPattern& wanted) {
  return number_of(index_patterns_, wanted, max_index_patterns);
}

double FeatureMap::keys(const AttentionPattern& p, double context) const {
  const double rows = context / p.ratio;
  switch (p.attends) {
    case Attends::window: return window_ > 0 ? std::min(window_, context) : context;
    case Attends::selected: return std::min(window_, context) + (selected_ > 0 ? std::min(selected_, rows) : rows);
    case Attends::all: return std::min(window_, context) + rows;
  }
  return 0;
}

// Window rows once a request and its new tokens; other rows once a query (latent gathers) or once a request.
double FeatureMap::kv_bytes(const AttentionPattern& p, const Queries& q) const {
  if (q.count <= 0) return 0;
  const double window = std::min(window_, q.context);
  double bytes = (q.requests * window + q.count) * window_row_bytes_;
  if (p.attends == Attends::window) return bytes;
  if (rows_per_query_ || p.attends == Attends::selected)
    return bytes + q.count * (keys(p, q.context) - window) * row_bytes_;
  return bytes + q.request_context / p.ratio * row_bytes_;
}

void FeatureMap::compute(const RankBatch& b, Features& x) const {
  const double draft_rows = b.draft_requests * draft_tokens_;
  compute_rows(b, x.data());
  x[decode_context_feature] = b.decode_context;

  const double decode_mean = b.decode_tokens > 0 ? b.decode_query_context / b.decode_tokens : 0;
  const Queries decode{b.decode_tokens, decode_mean, b.decode_requests, b.decode_context};
  const Queries all{b.prefill_tokens, b.prefill_tokens > 0 ? b.prefill_query_context / b.prefill_tokens : 0,
                    b.prefill_requests, b.prefill_context};
  const Queries tail{b.prefill_tail_tokens,
                     b.prefill_tail_tokens > 0 ? b.prefill_tail_query_context / b.prefill_tail_tokens : 0,
                     b.prefill_requests, b.prefill_context};
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    const AttentionPattern& p = patterns_[i];
    double* f = &x[static_cast<std::size_t>(pattern_feature(static_cast<int>(i), decode_pairs))];
    const bool draft = p.rows == Rows::draft_tokens || p.rows == Rows::draft_requests;
    const double draft_count = p.rows == Rows::draft_tokens ? draft_rows : b.draft_requests;
    const Queries d = draft ? Queries{draft_count, decode_mean, b.draft_requests, b.draft_requests * decode_mean} : decode;
    f[decode_pairs] = d.count * keys(p, d.context) * p.passes;
    f[decode_bytes] = kv_bytes(p, d) * p.passes;
    f[decode_queries] = d.count * p.passes;
    f[prefill_pairs] = f[prefill_bytes] = f[prefill_queries] = 0;
    if (draft || b.prefill_tokens <= 0) continue;
    const Queries& q = p.rows == Rows::tail_tokens ? tail : all;
    f[prefill_pairs] = q.count * keys(p, q.context);
    f[prefill_bytes] = kv_bytes(p, q);
    f[prefill_queries] = q.count;
  }
  for (std::size_t i = 0; i < index_patterns_.size(); ++i) {
    const IndexPattern& p = index_patterns_[i];
    double* f = &x[static_cast<std::size_t>(index_feature(static_cast<int>(i), score_pairs))];
    const Queries& q = p.rows == Rows::tail_tokens ? tail : all;
    if (p.role == IndexRole::candidates) {
      f[score_pairs] = decode.count * std::min(candidates_, decode.context / p.ratio) +
                       q.count * std::min(candidates_, q.context / p.ratio);
      f[score_bytes] = f[score_pairs] * index_key_bytes_;  // each query has candidates of its own
    } else {
      f[score_pairs] = (b.decode_query_context + q.count * q.context) / p.ratio;
      f[score_bytes] = (b.decode_context + (q.count > 0 ? b.prefill_context : 0)) / p.ratio * index_key_bytes_;
    }
    f[logit_bytes] = 4 * f[score_pairs];
  }
}

}  // namespace rackcast
