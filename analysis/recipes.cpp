#include "analysis/recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>
#include <string_view>
#include <tuple>

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

std::string plain(const std::string& precision) { return precision == "nvfp4" ? "fp4" : precision; }

// Draft depths of launches whose name says only "mtp" and that are not 3: speculative-num-draft-tokens less one, and
// num_speculative_tokens, in the files themselves (SemiAnalysisAI/InferenceX, multi_node/srt-slurm-recipes, 2026-08).
struct DraftDepth {
  std::string_view file;
  int tokens;
};
constexpr DraftDepth draft_depths[] = {{"disagg-high-conc-6p1d-dep4-dep8-mtp", 2},
                                       {"disagg-high-conc-8p1d-dep4-dep8-mtp", 1},
                                       {"disagg-b300-6p1d-dep4-dep8-mtp", 2},
                                       {"disagg-b300-8p1d-dep4-dep8-mtp", 1},
                                       {"disagg-b200-3p1d-dep8-dep8-mtp", 1}};

int draft_depth(const std::string& file, const std::string& spec) {
  std::smatch m;
  if (std::regex_search(file, m, std::regex("mtp(\\d+)"))) return std::atoi(m[1].str().c_str());
  if (spec.find("mtp") == std::string::npos) return 0;
  for (const DraftDepth& d : draft_depths)
    if (file.find(d.file) != std::string::npos) return d.tokens;
  return 3;
}

// Same system and a shape that the row does not contradict, whatever the lengths and the concurrency.
bool fits(const PublishedRow& row, const std::string& model_key, const Recipe& recipe) {
  if (recipe.gpu != row.gpu || recipe.framework != row.framework || recipe.model_key != model_key) return false;
  if (plain(recipe.precision) != plain(row.precision) || recipe.agentx != (row.workload == "agentx")) return false;
  if ((recipe.prefill.workers > 0) != row.disaggregated) return false;
  if (row.draft_tokens && (*row.draft_tokens == 0) != (recipe.draft_tokens == 0)) return false;
  if (row.total_gpus > 0 && row.total_gpus != recipe.total_gpus()) return false;
  return same_shape(row.decode, recipe.decode) && (!row.disaggregated || same_shape(row.prefill, recipe.prefill));
}

// How far apart two concurrencies are; 0: the recipe lists the row's.
double distance(const PublishedRow& row, const Recipe& recipe) {
  double least = 1e9;
  for (const int c : recipe.concurrencies) least = std::min(least, std::abs(std::log(double(c) / std::max(1, row.concurrency))));
  return least;
}

// Lower is closer: lengths and concurrency, concurrency alone, lengths alone by nearness, neither.
double rank_of(const PublishedRow& row, const Recipe& recipe) {
  const bool lengths = recipe.agentx || (recipe.input_tokens == row.input_tokens && recipe.output_tokens == row.output_tokens);
  const double far = distance(row, recipe);
  const double order = lengths && far == 0 ? 0 : far == 0 ? 100 : lengths ? 200 + far : 300 + far;
  return order + (recipe.draft_tokens != 0 ? 0.01 : 0);
}

void fill(PublishedEngines& unknown, const PublishedEngines& known, bool with_workers) {
  if (with_workers && unknown.workers == 0) unknown.workers = known.workers;
  if (unknown.gpus_each == 0) {
    unknown.gpus_each = known.gpus_each;
    unknown.expert_parallel = known.expert_parallel;
  }
  if (!unknown.attention_dp) unknown.attention_dp = known.attention_dp;
}

bool open(const std::optional<PublishedEngines>& e) { return !e || e->workers == 0 || e->gpus_each == 0 || !e->attention_dp; }

bool incomplete(const PublishedRow& row) {
  return open(row.decode) || (row.disaggregated && open(row.prefill)) || !row.draft_tokens || row.decode->most_requests == 0;
}

const Recipe* closest(const PublishedRow& row, const std::vector<Recipe>& recipes, bool same_lengths, double within, bool with_limit = false) {
  const Recipe* best = nullptr;
  const std::string key = model_key_of(row.model);
  for (const Recipe& recipe : recipes) {
    if (!fits(row, key, recipe)) continue;
    if (same_lengths && !recipe.agentx && (recipe.input_tokens != row.input_tokens || recipe.output_tokens != row.output_tokens)) continue;
    if (distance(row, recipe) > within || (with_limit && recipe.decode.most_requests == 0)) continue;
    if (!best || rank_of(row, recipe) < rank_of(row, *best)) best = &recipe;
  }
  return best;
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
    r.name = fmt::format("recipe {}:{}", t.file().substr(t.file().find_last_of('/') + 1), t.line(i));
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
    if (std::regex_search(file, m, std::regex("batch(\\d+)"))) r.decode.most_requests = std::atoi(m[1].str().c_str());
    r.draft_tokens = draft_depth(file, t.text(i, "spec"));
    if (std::regex_search(file, m, std::regex("eplb(\\d+)"))) r.experts_balanced = std::atoi(m[1].str().c_str()) > 0;
    std::istringstream list(t.text(i, "conc_list"));
    for (int c = 0; list >> c;) r.concurrencies.push_back(c);
    recipes.push_back(std::move(r));
  }
  return recipes;
}

std::vector<Recipe> recipes_of(const std::vector<PublishedRow>& rows) {
  std::vector<Recipe> recipes;
  for (const PublishedRow& row : rows) {
    if (open(row.decode) || (row.disaggregated && open(row.prefill)) || !row.draft_tokens || row.concurrency <= 0) continue;
    Recipe r;
    r.name = "published row " + row.id;
    r.model_key = model_key_of(row.model);
    r.gpu = row.gpu;
    r.framework = row.framework;
    r.precision = row.precision;
    r.input_tokens = row.input_tokens;
    r.output_tokens = row.output_tokens;
    r.agentx = row.workload == "agentx";
    if (row.disaggregated) r.prefill = *row.prefill;
    r.decode = *row.decode;
    r.draft_tokens = *row.draft_tokens;
    r.concurrencies = {row.concurrency};
    recipes.push_back(std::move(r));
  }
  return recipes;
}

std::string complete_row(PublishedRow& row, const std::vector<Recipe>& recipes) {
  if (!incomplete(row)) return "";
  constexpr double any = 1e8;
  const double twice = std::log(2.0);
  const Recipe* best = closest(row, recipes, false, any);
  if (!best) {
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
  std::string note = "deployment of " + best->name;
  if (const Recipe* own = closest(row, recipes, true, 0)) {
    row.experts_balanced = own->experts_balanced;
    if (!row.draft_depth_said && row.draft_tokens.value_or(0) > 0) row.draft_tokens = own->draft_tokens;
  }
  if (!row.decode) row.decode.emplace();
  const bool said_all = !open(row.decode);
  fill(*row.decode, best->decode, true);
  if (row.decode->most_requests == 0) {
    const Recipe* limit = closest(row, recipes, false, 0, true);
    if (limit) row.decode->most_requests = limit->decode.most_requests;
    if (limit && limit != best) note += ", request limit of " + limit->name;
  }
  if (row.disaggregated) {
    if (!row.prefill) row.prefill.emplace();
    const Recipe* beside = closest(row, recipes, true, twice);
    fill(*row.prefill, beside ? beside->prefill : best->prefill, beside != nullptr);
    if (beside && beside != best) note += ", prefill of " + beside->name;
  }
  if (!row.draft_tokens) {
    row.draft_tokens = best->draft_tokens;
    if (best->draft_tokens == 0) {
      PublishedRow drafting = row;
      drafting.draft_tokens = 1;
      const Recipe* other = closest(drafting, recipes, true, 0);
      row.draft_known_twice = other != nullptr;
    }
  } else if (said_all) {
    return row.decode->most_requests > 0 ? "request limit of " + best->name : "";
  }
  return note;
}

void share_launches(std::vector<PublishedRow>& rows) {
  std::map<std::tuple<std::string, int, int>, int> largest;
  for (const PublishedRow& row : rows)
    if (!row.config.empty()) {
      int& most = largest[{row.config, row.input_tokens, row.output_tokens}];
      most = std::max(most, row.concurrency);
    }
  for (PublishedRow& row : rows)
    if (!row.config.empty()) row.launch_concurrency = largest[{row.config, row.input_tokens, row.output_tokens}];
}

void settle_speculation(std::vector<PublishedRow>& rows, const std::vector<Recipe>& recipes) {
  const auto same = [](const PublishedRow& a, const PublishedRow& b) {
    return a.gpu == b.gpu && a.framework == b.framework && plain(a.precision) == plain(b.precision) && a.concurrency == b.concurrency &&
           model_key_of(a.model) == model_key_of(b.model) && a.input_tokens == b.input_tokens && a.output_tokens == b.output_tokens &&
           a.disaggregated == b.disaggregated && a.decode && b.decode && a.decode->gpus_each == b.decode->gpus_each && a.decode->workers == b.decode->workers;
  };
  for (PublishedRow& row : rows) {
    if (!row.draft_known_twice) continue;
    const bool without = std::any_of(rows.begin(), rows.end(), [&](const PublishedRow& other) { return &other != &row && !other.draft_known_twice && other.draft_tokens == 0 && same(row, other); });
    if (!without) continue;
    PublishedRow drafting = row;
    drafting.draft_tokens = 1;
    if (const Recipe* recipe = closest(drafting, recipes, true, 0)) {
      row.draft_tokens = recipe->draft_tokens;
      row.decode->most_requests = recipe->decode.most_requests;
    }
  }
}

}  // namespace rackcast
