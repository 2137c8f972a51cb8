#include "sim/cost/step_case.hpp"

#include <algorithm>
#include <charconv>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

[[noreturn]] void refuse(std::string_view item, const std::string& rule) {
  throw UserError("--case: item '" + std::string(item) + "': " + rule + "; the form is [N*]Q[@K][c][:D], as in 16*6@128K:5");
}

constexpr double most_tokens = 1 << 30;  // no engine comes near: a slip of the keyboard

// Digits and an optional K or M, taken from the front of `rest`.
double take_size(std::string_view item, std::string_view& rest, const char* what) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
  if (error != std::errc() || count <= 0) refuse(item, std::string(what) + " must be a positive whole number");
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  double size = static_cast<double>(count);
  if (!rest.empty() && (rest.front() == 'K' || rest.front() == 'M')) {
    size *= rest.front() == 'K' ? 1024 : 1024 * 1024;
    rest.remove_prefix(1);
  }
  if (size > 1e12) refuse(item, std::string(what) + " is too large");
  return size;
}

bool take(std::string_view& rest, char wanted) {
  if (rest.empty() || rest.front() != wanted) return false;
  rest.remove_prefix(1);
  return true;
}

CaseItem parse_item(std::string_view item) {
  std::string_view rest = item;
  CaseItem parsed;
  double first = take_size(item, rest, "the number");
  if (take(rest, '*')) {
    parsed.requests = first;
    first = take_size(item, rest, "Q");
  }
  parsed.query_tokens = parsed.context = first;
  if (take(rest, '@')) parsed.context = take_size(item, rest, "K");
  parsed.chunked = take(rest, 'c');
  if (take(rest, ':')) parsed.draft_tokens = static_cast<int>(std::min(1e6, take_size(item, rest, "D")));
  if (!rest.empty()) refuse(item, "'" + std::string(rest) + "' was not expected");
  if (parsed.context < parsed.query_tokens) refuse(item, "K includes Q, so it cannot be smaller");
  if (parsed.requests * parsed.query_tokens > most_tokens) refuse(item, "more than 2^30 tokens in a step");
  return parsed;
}

}  // namespace

std::vector<CaseItem> parse_case(std::string_view text) {
  std::vector<CaseItem> items;
  while (true) {
    const std::size_t comma = text.find(',');
    items.push_back(parse_item(text.substr(0, comma)));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

int draft_tokens_of(const std::vector<CaseItem>& items) {
  int drafted = 0;
  for (const CaseItem& item : items) {
    if (item.draft_tokens == 0) continue;
    if (drafted != 0 && drafted != item.draft_tokens)
      throw UserError("--case: items draft " + std::to_string(drafted) + " and " + std::to_string(item.draft_tokens) +
                      " tokens; a step drafts one number of tokens");
    drafted = item.draft_tokens;
  }
  return drafted;
}

RankBatch batch_of(const std::vector<CaseItem>& items, const ModelSpec& model, CasePhase phase) {
  const int longest_verify = 1 + (model.draft ? model.draft->max_tokens : 0);
  RankBatch batch;
  for (const CaseItem& item : items) {
    const bool decode = phase == CasePhase::decode || (phase == CasePhase::automatic && item.query_tokens <= longest_verify);
    if (decode) add_decode(batch, item.requests, item.query_tokens, item.context, item.draft_tokens > 0);
    else add_prefill(batch, item.requests, item.query_tokens, item.context, static_cast<double>(model.tail.count));
  }
  return batch;
}

void add_decode(RankBatch& batch, double requests, double query_tokens, double context, bool drafts) {
  batch.decode_requests += requests;
  batch.decode_tokens += requests * query_tokens;
  batch.decode_context += requests * context;
  batch.decode_query_context += requests * query_tokens * context;
  if (drafts) batch.draft_requests += requests;
}

void add_prefill(RankBatch& batch, double requests, double query_tokens, double context, double tail) {
  const double last = std::min(query_tokens, tail);
  batch.prefill_requests += requests;
  batch.prefill_tokens += requests * query_tokens;
  batch.prefill_context += requests * context;
  batch.prefill_query_context += requests * query_tokens * (context - query_tokens / 2);
  batch.prefill_tail_tokens += requests * last;
  batch.prefill_tail_query_context += requests * last * (context - last / 2);
}

}  // namespace rackcast
