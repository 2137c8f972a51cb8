#include "analysis/published_rows.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <tuple>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

constexpr double milli = 1e-3;
constexpr int widest_tensor_parallel = 8;
constexpr double inferencex_range_ratio = 0.8;  // InferenceX fixed-length runs: lengths uniform in [0.8, 1] x nominal

std::string system_gpu(std::string system) {
  const auto cut = system.find("_sxm");
  if (cut != std::string::npos) system.resize(cut);
  return system;
}

// "dynamo-trt", "trt", "sglang 0.5.6" -> the engine's own name.
std::string engine_name(const std::string& framework) {
  for (const char* name : {"trt", "sglang", "vllm"})
    if (framework.find(name) != std::string::npos) return std::string(name) == "trt" ? "trtllm" : name;
  return framework;
}

std::string match_or(const std::string& text, const char* pattern, const std::string& otherwise) {
  std::smatch m;
  return std::regex_search(text, m, std::regex(pattern)) ? m[1].str() : otherwise;
}

int product(const CsvTable& t, std::size_t row, const std::string& a, const std::string& b) {
  return std::max(1, t.integer(row, a).value_or(1)) * std::max(1, t.integer(row, b).value_or(1));
}

// The older export writes attention_dp 1 everywhere and, for expert-parallel rows, tensor x expert in tp.
PublishedEngines silicon_engines(const CsvTable& t, std::size_t row, const std::string& prefix) {
  PublishedEngines e;
  e.workers = prefix.empty() ? 1 : t.integer(row, prefix + "num_workers").value_or(0);
  const int tp = std::max(1, t.integer(row, prefix + "tp_size").value_or(1));
  const int dp = std::max(1, t.integer(row, prefix + "attention_dp_size").value_or(1));
  e.gpus_each = tp * dp;
  e.expert_parallel = std::max(1, t.integer(row, prefix + "moe_ep_size").value_or(1));
  const int experts_over = product(t, row, prefix + "moe_tp_size", prefix + "moe_ep_size");
  e.experts_cut = dp > 1 && e.expert_parallel == 1 && t.integer(row, prefix + "moe_tp_size").value_or(1) == e.gpus_each;
  if (dp > 1) e.attention_dp = true;
  else if (e.workers > 0 && !prefix.empty()) e.attention_dp = false;
  // tp 4, dp 4, experts over 16 on a machine of 8: the width was multiplied into the experts and repeated as dp. The launch
  // script of such rows (vLLM, TP4 with experts sharded) has no data-parallel attention.
  if (prefix.empty() && tp > 1 && tp == dp && e.gpus_each > widest_tensor_parallel && e.expert_parallel == tp * dp) {
    e.gpus_each = e.expert_parallel = tp;
    e.attention_dp = false;
    return e;
  }
  if (prefix.empty()) {
    // tp 64 with experts over 8 x 8: tensor x expert was stored; the engine has moe_ep GPUs.
    if (e.gpus_each > 8 && experts_over == e.gpus_each && e.expert_parallel > 1) {
      e.gpus_each = std::max(t.integer(row, "moe_tp_size").value_or(1), e.expert_parallel);
      e.attention_dp.reset();
      if (dp > 1) e.attention_dp = true;
    }
    if (!e.attention_dp && e.expert_parallel == 1) e.attention_dp = false;
  }
  return e;
}

PublishedRow silicon_row(const CsvTable& t, std::size_t row) {
  PublishedRow r;
  r.id = t.text(row, "id");
  const std::string& source = t.text(row, "silicon_data_source");
  r.citation = source;
  r.date = match_or(source, "measured=(\\d{4}-\\d{2}-\\d{2})", "");
  r.model = t.text(row, "model_path");
  r.gpu = system_gpu(t.text(row, "system"));
  r.framework = engine_name(t.text(row, "backend"));
  r.precision = t.text(row, "precision");
  r.workload = "fixed";
  r.input_tokens = t.integer(row, "isl").value_or(0);
  r.output_tokens = t.integer(row, "osl").value_or(0);
  r.range_ratio = inferencex_range_ratio;
  r.concurrency = std::atoi(match_or(source, "silicon_concurrency=(\\d+)", "0").c_str());
  r.config = match_or(source, "config_id=(\\d+)", "");
  // The dump with configuration numbers holds runs without speculation only: all 75 of its rows that a table with a
  // speculation column also lists say none, and none of its concurrencies occurs in recipes with speculation alone.
  if (!r.config.empty()) r.draft_tokens = 0;
  r.disaggregated = t.text(row, "mode") == "disagg";
  if (r.disaggregated) {
    r.prefill = silicon_engines(t, row, "prefill_");
    r.decode = silicon_engines(t, row, "decode_");
    // One figure in both roles above the size of any engine that ships: all GPUs of the run.
    if (r.prefill->workers == 0 && r.prefill->gpus_each == r.decode->gpus_each && r.prefill->expert_parallel == 1 &&
        r.decode->gpus_each > 8) {
      r.total_gpus = r.decode->gpus_each;
      r.prefill->gpus_each = r.decode->gpus_each = 0;
    }
  } else {
    r.decode = silicon_engines(t, row, "");
    r.total_gpus = r.decode->gpus_each;
    if (!r.config.empty() && !r.decode->attention_dp) r.decode->attention_dp = false;  // the dump says where it is data-parallel
    // Tensor parallelism beyond a node without expert parallelism is no engine that ships: all GPUs of a disaggregated run.
    if (r.decode->gpus_each > widest_tensor_parallel && r.decode->expert_parallel == 1 && !r.decode->attention_dp.value_or(false)) {
      r.disaggregated = true;
      r.decode->gpus_each = 0;
      r.decode->workers = 0;
      r.decode->attention_dp.reset();
      r.prefill = r.decode;
    }
  }
  if (const auto v = t.number(row, "silicon_ttft_ms"); v && *v > 0) r.ttft_s = *v * milli;
  if (const auto v = t.number(row, "silicon_tpot_ms"); v && *v > 0) r.tpot_s = *v * milli;
  return r;
}

// "4w TP8 EP8 dpa=0", "6xTP4", "1xDEP8", "agg TP2/EP2 chunk8192 cap64".
std::optional<PublishedEngines> configured(const std::string& text, int gpus) {
  if (text.empty() && gpus <= 0) return std::nullopt;
  PublishedEngines e;
  const std::string dep = match_or(text, "DEP(\\d+)", match_or(text, "DPA(\\d+)", ""));
  e.workers = std::atoi(match_or(text, "(\\d+)w ", match_or(text, "(\\d+)x", text.empty() ? "0" : "1")).c_str());
  if (!dep.empty()) {
    e.gpus_each = e.expert_parallel = std::atoi(dep.c_str());
    e.attention_dp = true;
    return e;
  }
  e.gpus_each = std::atoi(match_or(text, "TP(\\d+)", "0").c_str());
  e.expert_parallel = std::max(1, std::atoi(match_or(text, "EP(\\d+)", "1").c_str()));
  const std::string dpa = match_or(text, "dpa=(\\d)", "");
  if (!dpa.empty()) e.attention_dp = dpa == "1";
  else if (e.gpus_each > 0) e.attention_dp = false;
  e.experts_cut = dpa == "1" && e.gpus_each > 1 && e.expert_parallel == 1 && text.find(" EP1 ") != std::string::npos;
  // "6w TP1 EP1 dpa=1" rows lost the width: with GPUs and workers stated it is their quotient.
  if (e.gpus_each <= 1 && gpus > 0 && e.workers > 0) {
    e.gpus_each = std::max(1, gpus / e.workers);
    if (e.attention_dp.value_or(false)) e.expert_parallel = e.gpus_each;
  }
  return e;
}

PublishedRow point_row(const CsvTable& t, std::size_t row) {
  PublishedRow r;
  r.id = t.text(row, "point_id");
  r.citation = t.text(row, "source");
  r.date = t.text(row, "date");
  r.model = t.text(row, "model");
  r.gpu = t.text(row, "hw");
  r.framework = engine_name(t.text(row, "framework"));
  r.precision = t.text(row, "precision");
  const std::string& workload = t.text(row, "workload");
  r.workload = workload.find("agent") != std::string::npos ? "agentx" : "fixed";
  if (r.workload == "fixed") {
    r.input_tokens = 1024 * std::atoi(match_or(workload, "(\\d+)k\\d+k", "0").c_str());
    r.output_tokens = 1024 * std::atoi(match_or(workload, "\\d+k(\\d+)k", "0").c_str());
    r.range_ratio = inferencex_range_ratio;
  }
  r.concurrency = t.integer(row, "conc").value_or(0);
  r.disaggregated = t.text(row, "disagg") == "1";
  r.total_gpus = t.integer(row, "total_gpus").value_or(0);
  if (r.disaggregated) r.prefill = configured(t.text(row, "prefill_cfg"), t.integer(row, "prefill_gpus").value_or(0));
  r.decode = configured(t.text(row, "decode_cfg"), t.integer(row, "decode_gpus").value_or(0));
  const std::string& spec = t.text(row, "spec");
  if (spec == "none") r.draft_tokens = 0;
  else if (std::regex_search(spec, std::regex("^(mtp|dspark)(\\d+)"))) r.draft_tokens = std::atoi(match_or(spec, "^[a-z]+(\\d+)", "0").c_str());
  else if (spec == "mtp") r.draft_tokens = 3;       // InferenceX's default depth; a recipe overrides it
  else if (spec == "dspark") r.draft_tokens = 5;
  r.draft_depth_said = spec != "mtp" && spec != "dspark";
  r.acceptance_length = std::atof(match_or(spec, "AL ([0-9.]+)", "0").c_str());
  r.prefill_chunk = std::atoi(match_or(t.text(row, "decode_cfg"), "chunk(\\d+)", "0").c_str());
  r.request_cap = std::atoi(match_or(t.text(row, "decode_cfg"), "cap(\\d+)", "0").c_str());
  r.ttft_s = t.number(row, "ttft_mean_s");
  if (const auto v = t.number(row, "tpot_mean_ms")) r.tpot_s = *v * milli;
  r.total_tok_s_gpu = t.number(row, "total_tok_s_gpu");
  r.p50_tok_s_user = t.number(row, "p50_tok_s_user");
  r.p90_tok_s_user = t.number(row, "p90_tok_s_user");
  r.hit_gpu = t.number(row, "hit_gpu");
  r.hit_host = t.number(row, "hit_cpu");
  return r;
}

}  // namespace

std::vector<PublishedRow> read_published(const CsvTable& table) {
  const bool silicon = table.has("silicon_tpot_ms"), points = table.has("point_id");
  if (!silicon && !points)
    throw UserError(table.file(), 1, 0, "", "neither layout of published results: needs silicon_tpot_ms, or point_id");
  table.require(silicon ? std::vector<std::string>{"id", "system", "model_path", "mode", "isl", "osl", "silicon_ttft_ms"}
                        : std::vector<std::string>{"model", "hw", "workload", "conc", "decode_cfg"});
  std::vector<PublishedRow> rows;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    rows.push_back(silicon ? silicon_row(table, i) : point_row(table, i));
    rows.back().file = table.file();
    rows.back().line = table.line(i);
  }
  return rows;
}

static int knows(const PublishedRow& row) {
  int count = row.draft_tokens.has_value() ? 1 : 0;
  for (const auto& engines : {row.prefill, row.decode})
    if (engines) count += (engines->workers > 0 ? 2 : 0) + (engines->attention_dp ? 1 : 0);
  return count;
}

std::vector<PublishedRow> without_duplicates(std::vector<PublishedRow> rows) {
  // Exports round differently: equal to five digits is equal.
  const auto digits = [](double value) { return std::lround(value * std::pow(10.0, 4 - std::floor(std::log10(value)))); };
  std::map<std::tuple<std::string, int, int, int, long, long>, std::size_t> seen;
  std::vector<PublishedRow> kept;
  for (PublishedRow& row : rows) {
    if (!row.ttft_s || !row.tpot_s) {
      kept.push_back(std::move(row));
      continue;
    }
    const auto key = std::make_tuple(row.gpu, row.input_tokens, row.output_tokens, row.concurrency, digits(*row.ttft_s), digits(*row.tpot_s));
    const auto [it, fresh] = seen.emplace(key, kept.size());
    if (fresh) kept.push_back(std::move(row));
    else if (knows(row) > knows(kept[it->second])) kept[it->second] = std::move(row);
  }
  return kept;
}

}  // namespace rackcast
