// The case grammar of `step`, the one of vLLM's `bench forward`: a comma list of [N*]Q[@K][c][:D].
// N requests (1), Q query tokens each, K total KV length with Q in it (Q), c: chunked prefill (else the prefix counts as
// a cache hit; both cost the same here), D draft tokens. Sizes take K and M (1024-based). "16*6@128K:5" is a decode step of
// 16 requests with 6 query tokens each at 128K.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/step_model.hpp"

namespace rackcast {

struct CaseItem {
  double requests = 1;
  double query_tokens = 1;
  double context = 1;
  bool chunked = false;
  int draft_tokens = 0;
};

std::vector<CaseItem> parse_case(std::string_view text);  // UserError says which item and what is wrong

enum class CasePhase { automatic, prefill, decode };

// automatic: an item with up to 1 + the model's largest draft of query tokens is decode or verify, longer is prefill.
RankBatch batch_of(const std::vector<CaseItem>& items, const ModelSpec& model, CasePhase phase);
int draft_tokens_of(const std::vector<CaseItem>& items);  // of the items that draft; UserError if they differ

// Adds requests to a batch as the engine does.
void add_decode(RankBatch& batch, double requests, double query_tokens, double context, bool drafts);
void add_prefill(RankBatch& batch, double requests, double query_tokens, double context, double tail);

}  // namespace rackcast
