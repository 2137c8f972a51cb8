// Published serving results as rows: what was deployed, what was asked, what was measured. Two public table layouts are
// read (columns of silicon_sample.csv and of published_points.csv, told apart by their header); see analysis/README.md.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/base/csv.hpp"

namespace rackcast {

// Engines of one role. workers 0 = the table does not say; attention_dp nullopt = not said (DEP or TP with experts sharded).
struct PublishedEngines {
  int workers = 0;
  int gpus_each = 0;
  int expert_parallel = 1;
  bool experts_cut = false;         // the row says data-parallel attention over slices of every expert (moe_tp)
  std::optional<bool> attention_dp;
  int most_requests = 0;            // running requests of a DP rank (of a TP engine); 0 = not said
};

struct PublishedRow {
  std::string id;
  std::string file;
  int line = 0;
  std::string citation;
  std::string date;                 // YYYY-MM-DD, may be empty
  std::string model;                // as published
  std::string gpu;                  // h200, gb300, ...
  std::string framework;            // trtllm, sglang, vllm
  std::string precision;            // fp4, fp8, int4
  std::string workload;             // fixed, or agentx
  int input_tokens = 0, output_tokens = 0;
  double range_ratio = 1.0;         // lengths are uniform in [ratio, 1] x nominal
  int concurrency = 0;
  bool disaggregated = false;
  int total_gpus = 0;               // 0 = not said
  std::optional<PublishedEngines> prefill, decode;  // aggregated rows: decode only
  std::optional<int> draft_tokens;  // 0 = none; nullopt = not said
  bool draft_depth_said = true;     // false: the row says that it drafts, not how deep; the depth is the benchmark's usual one
  bool draft_known_twice = false;   // recipes run this deployment at this concurrency both with and without speculation
  std::string config;               // the export's number of the configuration; rows of one share a launch
  int launch_concurrency = 0;       // the largest concurrency that the row's launch was made for; 0 = its own
  double acceptance_length = 0;     // 0 = not said
  int prefill_chunk = 0, request_cap = 0;  // 0 = not said
  std::optional<bool> experts_balanced;    // does the launch move experts to even their load; nullopt = not known
  // Measured. Means unless the name says otherwise.
  std::optional<double> ttft_s, tpot_s, total_tok_s_gpu, p50_tok_s_user, p90_tok_s_user, hit_gpu, hit_host;
};

// Rows in file order. UserError for a header that is neither layout, or a cell that cannot be read.
std::vector<PublishedRow> read_published(const CsvTable& table);

// Rows with equal system, lengths, concurrency, TTFT and TPOT are one run published twice: keeps the one that says most.
std::vector<PublishedRow> without_duplicates(std::vector<PublishedRow> rows);

}  // namespace rackcast
