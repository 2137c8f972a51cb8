// Scenarios drawn from a seed, as YAML: every rack, model, policy and kind of load, sizes from one lane and one GPU to DEP72
// and a million tokens of context. Most of them can run; the others must be refused in words. Compilers may order the draws
// differently: a failure prints the text.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace rackcast::test {

class ScenarioDraw {
 public:
  explicit ScenarioDraw(std::uint64_t seed) : state_(seed) { state_ = next(); }

  std::string yaml() {
    const std::string rack = pick({"gb300-nvl72", "gb300-nvl72", "gb200-nvl72", "hgx-b300", "hgx-b200", "hgx-h200", "hgx-h100"});
    rack_gpus_ = rack.starts_with("gb") ? 72 : 8;
    std::string text = fmt::format("name: drawn\nprices: {{list: deepseek-2026-09, period: {}, gpu: {}}}\nseed: {}\n", pick({"off_peak", "peak"}),
                                   pick({"owning", "rental"}), below(1'000'000));
    text += fmt::format("rack: {{base: {}, racks: {}}}\n", rack, chance(0.15) ? 2 : 1);
    text += fmt::format("model: {}\n", pick({"deepseek-v4.1-flash", "deepseek-v4.1-flash", "deepseek-v4-flash", "deepseek-v4-flash", "deepseek-v4-pro",
                                             "deepseek-r1-nvfp4", "deepseek-v3", "kimi-k2.5"}));
    text += fmt::format("network: {}\nfidelity: {}\n", pick({"fluid", "fluid", "simgrid"}),
                        chance(0.85) ? "collapsed" : pick({"layered", "flow"}));
    flow_ = text.ends_with("flow\n");
    text += deployment();
    text += workload();
    text += failures();
    return text;
  }

 private:
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }
  std::string pick(std::initializer_list<const char*> names) { return *(names.begin() + below(names.size())); }
  // Log-uniform between 2^a and 2^b.
  std::uint64_t power(unsigned a, unsigned b) {
    const unsigned bits = a + static_cast<unsigned>(below(b - a + 1));
    return (std::uint64_t{1} << bits) + (bits > a ? below(std::uint64_t{1} << (bits - 1)) : 0);
  }

  std::string engine(const char* role, int most_gpus) {
    const int widths[] = {1, 2, 4, 4, 8, 8, 8, 16, 16, 32, 64, 72};
    int width = widths[below(12)];
    // A step of flows is some 80 activities for each pair of ranks.
    if (flow_) most_gpus = std::min(most_gpus, 8);
    while (width > most_gpus) width = widths[below(12)];
    const bool tensor = chance(0.2) && width <= 8;
    const int engines = 1 + static_cast<int>(below(static_cast<std::uint64_t>(std::min(4, most_gpus / width))));
    used_ += engines * width;
    std::string text = fmt::format("  {}: {{engines: {}, {}: {}", role, engines, tensor ? "tp" : "dep", width);
    text += fmt::format(", max_batched_tokens: {}", power(9, 14));
    text += fmt::format(", max_requests_per_rank: {}", power(0, 8));
    if (tensor && chance(0.4)) text += ", path: low_latency";
    return text + "}\n";
  }

  std::string deployment() {
    std::string text = "deployment:\n";
    split_ = chance(0.5) && rack_gpus_ >= 2;
    if (split_) {
      text += engine("prefill", rack_gpus_ / 2);
      text += engine("decode", rack_gpus_ - used_ > 0 ? std::min(rack_gpus_ - used_, rack_gpus_) : 1);
    } else {
      text += engine("aggregated", rack_gpus_);
    }
    text += fmt::format("  router: {{policy: {}, balance: {}", pick({"round_robin", "least_loaded", "session_affinity", "prefix_affinity"}),
                        pick({"count", "tokens"}));
    if (chance(0.2)) text += fmt::format(", admission: {{requests: {}, queued_tokens: {}}}", power(0, 10), chance(0.5) ? 0 : power(12, 18));
    text += "}\n  kv_cache: {";
    text += fmt::format("format: {}, when_full: {}, prefix_cache: {}", pick({"nvfp4", "fp8_layout"}), pick({"wait", "preempt"}),
                        chance(0.8) ? "true" : "false");
    if (chance(0.3)) text += fmt::format(", memory_fraction: {}", pick({"0.001", "0.02", "0.5", "1"}));
    if (chance(0.3)) text += fmt::format(", host_tier: {}", pick({"0 B per node", "1 GiB per node", "200 GiB per node"}));
    text += "}\n";
    if (split_) {
      const std::string mode = pick({"pull", "push", "push_layerwise"});
      text += fmt::format("  kv_transfer: {{mode: {}, posting: {}, block: {}, packed: {}, pieces: {}, first_token: {}}}\n", mode,
                          mode == "pull" ? pick({"auto", "step", "behind_launch", "thread"}) : pick({"auto", "thread"}), power(5, 9),
                          chance(0.5) ? "true" : "false", pick({"block", "run"}), pick({"seeded", "recomputed"}));
    }
    text += fmt::format("  engram: {}\n", pick({"host", "peer", "hbm"}));
    if (chance(0.35)) {
      const std::string policy = pick({"static", "periodic_sync", "periodic_async", "oracle", "random_replicas"});
      text += fmt::format("  eplb: {{policy: {}, redundant_experts: {}, window: {}, interval: {}, replica_choice: {}}}\n", policy, 8 * below(10), power(4, 9),
                          power(6, 10), pick({"round_robin", "load_aware"}));
    }
    if (chance(0.5)) {
      const std::uint64_t drafted = 1 + below(6);
      text += fmt::format("  speculation: {{draft_tokens: {}, acceptance_length: {:.2f}, verify: {}}}\n", drafted,
                          1 + static_cast<double>(drafted) * static_cast<double>(below(100)) / 100, pick({"all", "all", "adaptive"}));
    }
    if (chance(0.4)) text += fmt::format("  host: {{mode: {}, jitter: {}}}\n", pick({"sync", "async"}), pick({"0 s", "auto", "0.2 ms"}));
    return text;
  }

  std::string experts() {
    if (chance(0.55)) return "";
    return fmt::format(", experts: {{skew: {}, topics: {}, drift: {}}}", pick({"zipf", "dirichlet", "power_law"}), 1 + below(6), pick({"0", "0.1", "1"}));
  }

  std::string workload() {
    const std::uint64_t kind = below(10);
    const unsigned most_lanes = flow_ ? 4 : 8;
    if (kind < 5) {
      const unsigned input = static_cast<unsigned>(below(4)) * 5 + 2;  // 4, 128, 4K, 128K tokens and up to the next
      return fmt::format("workload: {{kind: closed_loop, concurrency: {}, input: {}, output: {}, range_ratio: {}, turns: {}, shared_prefix: {}, "
                         "prefix_groups: {}, requests: {}, warmup_count: {}{}}}\n",
                         power(0, most_lanes), power(input, std::min(input + 4, 20u)), power(0, flow_ ? 3 : 9), pick({"1", "0.5", "0.01"}), 1 + below(5),
                         pick({"0", "0.5", "0.97"}), 1 + below(16), 20 + below(flow_ ? 20 : 200), below(10), experts());
    }
    if (kind < 7)
      return fmt::format("workload: {{kind: open_loop, arrivals: poisson, rate: {} /s, input: {}, output: {}, range_ratio: {}, requests: {}{}}}\n", power(0, 8),
                         power(2, 15), power(0, flow_ ? 3 : 9), pick({"1", "0.3"}), 20 + below(flow_ ? 20 : 200), experts());
    if (kind < 9)
      return fmt::format("workload: {{kind: agentx, trace: generated-v1.0, concurrency: {}, duration: {} s, warmup: {}, think_time: {}, output_limit: {}{}}}\n",
                         power(0, flow_ ? 1 : 6), flow_ ? 2 : 5 + below(60), chance(0.7) ? "preload" : "replay", chance(0.9) ? "true" : "false",
                         chance(0.8) ? 0 : 1, experts());
    return fmt::format("workload: {{kind: mix, concurrency: {}, duration: {} s, warmup: preload, mix: [{{share: {}, kind: agentx}}, "
                       "{{share: 1, kind: closed_loop, input: {}, output: {}}}]{}}}\n",
                       power(2, 6), flow_ ? 2 : 5 + below(30), 1 + below(4), power(5, 14), power(2, 8), experts());
  }

  std::string failures() {
    if (chance(0.75)) return "";
    std::string text = fmt::format("failures:\n  in_flight: {}\n  detection: {} s\n  restart: {} s\n  reload: {}\n  events:\n", pick({"retry", "lose"}), below(4),
                                   1 + below(20), pick({"peer", "host", "disk", "network"}));
    for (std::uint64_t i = 0, n = 1 + below(3); i < n; ++i) {
      const std::string kind = pick({"engine", "gpu", "straggler", "nic", "nvlink"});
      const bool slows = kind == "straggler" || kind == "nic" || kind == "nvlink";
      text += fmt::format("    - {{kind: {}, pool: {}, {}{}}}\n", kind, split_ ? pick({"prefill", "decode"}) : "aggregated",
                          chance(0.8) ? fmt::format("at: {} s", below(30)) : "every: 20 s",
                          slows ? fmt::format(", lasts: {} s, share: {}", 1 + below(20), pick({"0.1", "0.5", "0.9"})) : "");
    }
    return text;
  }

  std::uint64_t state_;
  int rack_gpus_ = 8, used_ = 0;
  bool split_ = false, flow_ = false;
};

}  // namespace rackcast::test
