#include "analysis/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>

namespace rackcast {

namespace {

// "3xTP8/EP8", "DEP32", "TP1/EP8/dpa".
bool parse_engines(const std::string& text, PublishedEngines& e) {
  std::smatch m;
  if (std::regex_match(text, m, std::regex("(?:(\\d+)x)?DEP(\\d+)(?:\\+.*)?"))) {
    e.workers = m[1].matched ? std::atoi(m[1].str().c_str()) : 1;
    e.gpus_each = e.expert_parallel = std::atoi(m[2].str().c_str());
    e.attention_dp = true;
    return true;
  }
  if (!std::regex_match(text, m, std::regex("(?:(\\d+)x)?TP(\\d+)(?:/EP(\\d+))?(/dpa)?"))) return false;
  e.workers = m[1].matched ? std::atoi(m[1].str().c_str()) : 1;
  e.gpus_each = std::atoi(m[2].str().c_str());
  e.expert_parallel = m[3].matched ? std::atoi(m[3].str().c_str()) : 1;
  e.attention_dp = m[4].matched;
  if (m[4].matched) e.gpus_each = std::max(e.gpus_each, e.expert_parallel);
  return e.gpus_each > 0;
}

std::string model_key_of(const std::string& model) {
  if (model.find("R1") != std::string::npos || model.find("DeepSeek-V3") != std::string::npos) return "dsr1";
  if (model.find("V4.1") != std::string::npos) return "dsv41";
  if (model.find("V4") != std::string::npos) return "dsv4";
  if (model.find("Kimi-K2") != std::string::npos) return "kimik2";
  return model;
}

bool same_shape(const std::optional<PublishedEngines>& row, const PublishedEngines& recipe) {
  if (!row || row->gpus_each == 0) return true;  // the row does not say
  if (row->gpus_each != recipe.gpus_each) return false;
  if (row->workers > 0 && row->workers != recipe.workers) return false;
  return !row->attention_dp || !recipe.attention_dp || *row->attention_dp == *recipe.attention_dp;
}

bool fits(const PublishedRow& row, const Recipe& recipe) {
  if (recipe.gpu != row.gpu || recipe.framework != row.framework || recipe.precision != row.precision) return false;
  if (recipe.model_key != model_key_of(row.model)) return false;
  if (recipe.agentx != (row.workload == "agentx")) return false;
  if (!recipe.agentx && (recipe.input_tokens != row.input_tokens || recipe.output_tokens != row.output_tokens)) return false;
  if (std::find(recipe.concurrencies.begin(), recipe.concurrencies.end(), row.concurrency) == recipe.concurrencies.end()) return false;
  if ((recipe.prefill.workers > 0) != row.disaggregated) return false;
  const int gpus = recipe.prefill.workers * recipe.prefill.gpus_each + recipe.decode.workers * recipe.decode.gpus_each;
  if (row.total_gpus > 0 && row.total_gpus != gpus) return false;
  return same_shape(row.decode, recipe.decode) && (!row.disaggregated || same_shape(row.prefill, recipe.prefill));
}

void fill(PublishedEngines& unknown, const PublishedEngines& known) {
  if (unknown.workers == 0) unknown.workers = known.workers;
  if (unknown.gpus_each == 0) {
    unknown.gpus_each = known.gpus_each;
    unknown.expert_parallel = known.expert_parallel;
  }
  if (!unknown.attention_dp) unknown.attention_dp = known.attention_dp;
}

bool incomplete(const PublishedRow& row) {
  const auto open = [](const std::optional<PublishedEngines>& e) { return !e || e->workers == 0 || e->gpus_each == 0 || !e->attention_dp; };
  return open(row.decode) || (row.disaggregated && open(row.prefill)) || !row.draft_tokens;
}

}  // namespace

bool parse_topology(const std::string& text, PublishedEngines& prefill, PublishedEngines& decode) {
  prefill = decode = PublishedEngines{};
  std::string rest = std::regex_replace(text, std::regex("^agg\\s+"), "");
  const bool aggregated = rest != text || text.find('+') == std::string::npos;
  rest = std::regex_replace(rest, std::regex("\\+(hicache|vllm-simple|native)$"), "");
  if (aggregated) return parse_engines(rest, decode);
  const auto plus = rest.find('+');
  return plus != std::string::npos && parse_engines(rest.substr(0, plus), prefill) && parse_engines(rest.substr(plus + 1), decode);
}

std::vector<Recipe> read_recipes(const CsvTable& t) {
  t.require({"config_key", "framework", "precision", "seq", "topology", "conc_list"});
  std::vector<Recipe> recipes;
  for (std::size_t i = 0; i < t.rows(); ++i) {
    Recipe r;
    r.name = fmt::format("{}:{}", t.file(), t.line(i));
    const std::string& key = t.text(i, "config_key");
    std::smatch m;
    if (!std::regex_search(key, m, std::regex("^([a-z0-9.]+)-[a-z0-9]+-(gb200|gb300|b200|b300|h100|h200)"))) continue;
    r.model_key = m[1];
    r.gpu = m[2];
    const std::string& framework = t.text(i, "framework");
    for (const char* name : {"trt", "sglang", "vllm"})
      if (framework.find(name) != std::string::npos) r.framework = std::string(name) == "trt" ? "trtllm" : name;
    r.precision = t.text(i, "precision");
    const std::string& seq = t.text(i, "seq");
    if (std::regex_match(seq, m, std::regex("(\\d+)/(\\d+)"))) {
      r.input_tokens = std::atoi(m[1].str().c_str());
      r.output_tokens = std::atoi(m[2].str().c_str());
    } else {
      r.agentx = true;
    }
    if (!parse_topology(t.text(i, "topology"), r.prefill, r.decode)) continue;
    const std::string& file = t.text(i, "recipe_file");
    const std::string& spec = t.text(i, "spec");
    if (std::regex_search(file, m, std::regex("mtp(\\d+)"))) r.draft_tokens = std::atoi(m[1].str().c_str());
    else if (spec.find("mtp") != std::string::npos) r.draft_tokens = 3;
    std::istringstream list(t.text(i, "conc_list"));
    for (int c = 0; list >> c;) r.concurrencies.push_back(c);
    recipes.push_back(std::move(r));
  }
  return recipes;
}

std::string complete_row(PublishedRow& row, const std::vector<Recipe>& recipes, const std::vector<PublishedRow>& others) {
  if (!incomplete(row)) return "";
  const Recipe* best = nullptr;
  int fitting = 0;
  for (const Recipe& recipe : recipes) {
    if (!fits(row, recipe) || (row.draft_tokens && *row.draft_tokens != 0 && recipe.draft_tokens == 0)) continue;
    if (row.draft_tokens && *row.draft_tokens == 0 && recipe.draft_tokens != 0) continue;
    ++fitting;
    if (!best || (best->draft_tokens != 0 && recipe.draft_tokens == 0)) best = &recipe;
  }
  if (best) {
    if (!row.decode) row.decode.emplace();
    fill(*row.decode, best->decode);
    if (row.disaggregated) {
      if (!row.prefill) row.prefill.emplace();
      fill(*row.prefill, best->prefill);
    }
    if (!row.draft_tokens) row.draft_tokens = best->draft_tokens;
    return fmt::format("deployment from recipe {}{}", best->name, fitting > 1 ? fmt::format(" ({} fit)", fitting) : "");
  }
  for (const PublishedRow& other : others) {
    if (other.id == row.id || incomplete(other) || other.gpu != row.gpu || other.framework != row.framework || other.precision != row.precision) continue;
    if (model_key_of(other.model) != model_key_of(row.model) || other.input_tokens != row.input_tokens || other.output_tokens != row.output_tokens) continue;
    if (other.concurrency != row.concurrency || other.disaggregated != row.disaggregated) continue;
    if (!same_shape(row.decode, *other.decode) || (row.disaggregated && !same_shape(row.prefill, *other.prefill))) continue;
    if (!row.decode) row.decode.emplace();
    fill(*row.decode, *other.decode);
    if (row.disaggregated) {
      if (!row.prefill) row.prefill.emplace();
      fill(*row.prefill, *other.prefill);
    }
    if (!row.draft_tokens) row.draft_tokens = other.draft_tokens;
    return fmt::format("deployment as published row {}", other.id);
  }
  // Nothing published fits: one decode engine, wide expert parallelism means data-parallel attention, no speculation.
  constexpr int widest_tensor_parallel = 8;
  for (std::optional<PublishedEngines>* role : {&row.prefill, &row.decode}) {
    if (!role->has_value()) continue;
    PublishedEngines& e = **role;
    if (!e.attention_dp && e.gpus_each > 0) e.attention_dp = e.gpus_each > widest_tensor_parallel;
  }
  if (row.decode && row.decode->workers == 0) row.decode->workers = 1;
  if (!row.draft_tokens) row.draft_tokens = 0;
  return "no recipe fits: one decode engine, no speculation assumed";
}

}  // namespace rackcast
