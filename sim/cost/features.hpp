// What a rank's batch amounts to, as the numbers that operators are linear in. Computed once a rank and step.
// The first ones are row counts (each matrix works on one of them); behind them, for every pattern of attention in the
// model (window, ratio, selection), the query-key pairs and the KV bytes of its decode and its prefill queries.
#pragma once
#include <array>
#include <vector>

#include "sim/cost/shapes.hpp"
#include "sim/cost/step_model.hpp"
#include "sim/spec/model.hpp"

namespace rackcast {

constexpr int row_features = 7;  // enum Rows without none, in its order
constexpr int max_patterns = 6;
constexpr int max_index_patterns = 4;
enum PatternFeature { decode_pairs, decode_bytes, decode_queries, prefill_pairs, prefill_bytes, prefill_queries, pattern_width };
enum IndexFeature { score_pairs, score_bytes, logit_bytes, index_width };
constexpr int decode_context_feature = row_features + max_patterns * pattern_width + max_index_patterns * index_width;  // sum over decode requests
constexpr int feature_count = decode_context_feature + 1;
using Features = std::array<double, feature_count>;

constexpr int pattern_feature(int pattern, PatternFeature f) { return row_features + pattern * pattern_width + f; }
constexpr int index_feature(int pattern, IndexFeature f) {
  return row_features + max_patterns * pattern_width + pattern * index_width + f;
}

struct AttentionPattern {
  Attends attends = Attends::all;
  int ratio = 1;
  Rows rows = Rows::tokens;  // tokens, tail_tokens; draft_tokens or draft_requests for draft layers
  double passes = 1;         // of the draft
  bool operator==(const AttentionPattern&) const = default;
};

struct IndexPattern {
  IndexRole role = IndexRole::full;
  int ratio = 1;
  Rows rows = Rows::tokens;
  bool operator==(const IndexPattern&) const = default;
};

class FeatureMap {
 public:
  FeatureMap(const ModelSpec& model, KvFormat format, int draft_tokens, int kv_parts);
  int pattern(const AttentionPattern& wanted);  // its number; added when new
  int index_pattern(const IndexPattern& wanted);
  // The row counts alone, then all features.
  void compute_rows(const RankBatch& b, double* x) const {
    x[static_cast<int>(Rows::tokens)] = b.decode_tokens + b.prefill_tokens;
    x[static_cast<int>(Rows::tail_tokens)] = b.decode_tokens + b.prefill_tail_tokens;
    x[static_cast<int>(Rows::head_rows)] = b.decode_tokens + b.prefill_requests;
    x[static_cast<int>(Rows::decode_tokens)] = b.decode_tokens;
    x[static_cast<int>(Rows::prefill_context)] = b.prefill_context;
    x[static_cast<int>(Rows::draft_requests)] = b.draft_requests;
    x[static_cast<int>(Rows::draft_tokens)] = b.draft_requests * draft_tokens_;
  }
  void compute(const RankBatch& batch, Features& x) const;
  double keys(const AttentionPattern& p, double context) const;  // rows that one query attends

 private:
  struct Queries {
    double count, context, requests, request_context;  // context: mean of the queries; request_context: sum
  };
  double kv_bytes(const AttentionPattern& p, const Queries& q) const;

  double window_, selected_, candidates_;
  double row_bytes_, window_row_bytes_, index_key_bytes_;
  bool rows_per_query_;  // latent: each query gathers its own rows; else a request's rows are read once
  double draft_tokens_;
  std::vector<AttentionPattern> patterns_;
  std::vector<IndexPattern> index_patterns_;
};

}  // namespace rackcast
