// The headline numbers of a run, from its request records. Formulas: analysis/README.md. Names, units and definitions
// stand in one table, which the program, the report and the tests share.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/records.hpp"
#include "analysis/samples.hpp"

namespace rackcast {

struct MetricDefinition {
  std::string_view name, unit, definition;
  bool headline;
};
const std::vector<MetricDefinition>& metric_definitions();

// Sums and percentiles over measured requests, in bounded memory.
class RequestStatistics {
 public:
  void add(const RequestRecord& record);

  std::uint64_t requests = 0;
  double input_tokens = 0, output_tokens = 0;
  double block_tokens = 0;                          // input in full blocks, the most that a cache can hold
  double hit_gpu = 0, hit_host = 0, hit_ideal = 0;  // tokens
  double first_arrival_s = 0, last_finish_s = 0;
  Samples ttft, itl, e2e, e2e_per_token, input, output;
  double window_s() const { return last_finish_s - first_arrival_s; }
};

// What the metrics need besides the requests.
struct MetricContext {
  double gpus = 0, rack_gpus = 0, racks = 1;
  double lanes = 0;                         // 0: open loop
  double gpu_usd_per_s = 0;                 // price of one GPU
  double gpu_watts = 0;                     // all-in power of one GPU
  double cached_usd = 0, input_usd = 0, output_usd = 0;  // per token
  double lane_demand_tok_s = 0;             // of all lanes; 0: not lanes; infinite: lanes that never pause
  double sim_seconds = 0;
  double outside_range = 0;                 // share of the engines' time
};

using Metrics = std::vector<std::pair<std::string, double>>;
// NaN (null in JSON, "none" in tables) where the load has no such thing: inter-token times of one-token answers,
// the demand of lanes that never pause.
Metrics metrics_of(const RequestStatistics& statistics, const MetricContext& context);
double metric(const Metrics& metrics, std::string_view name);  // InternalError when it is not there

}  // namespace rackcast
