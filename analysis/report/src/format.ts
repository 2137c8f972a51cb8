// Metric names, units and definitions as they appear on the page; numbers for people.
interface Metric { label: string; unit: string; about: string; better?: "more" | "less"; share?: boolean }

const known: Record<string, Metric> = {
  total_tok_s_gpu: { label: "Throughput per GPU", unit: "tok/s/GPU", about: "cached + uncached input + output tokens of counted requests, over the window, over the GPUs of the deployed engines", better: "more" },
  cached_tok_s_gpu: { label: "Cached input per GPU", unit: "tok/s/GPU", about: "input tokens found in a prefix cache", better: "more" },
  uncached_tok_s_gpu: { label: "Computed input per GPU", unit: "tok/s/GPU", about: "input tokens that a prefill really computed", better: "more" },
  output_tok_s_gpu: { label: "Output per GPU", unit: "tok/s/GPU", about: "generated tokens", better: "more" },
  total_tok_s_rack: { label: "Throughput of the rack", unit: "tok/s", about: "all tokens of the rack", better: "more" },
  p50_tok_s_user: { label: "Median tokens/s per user", unit: "tok/s/user", about: "1 / median of per-request inter-token latency", better: "more" },
  p90_tok_s_user: { label: "P90 tokens/s per user", unit: "tok/s/user", about: "1 / 90th percentile of per-request inter-token latency: the slow tail", better: "more" },
  p99_tok_s_user: { label: "P99 tokens/s per user", unit: "tok/s/user", about: "1 / 99th percentile of per-request inter-token latency", better: "more" },
  e2e_norm_p90_tok_s_user: { label: "P90 end-to-end tokens/s per user", unit: "tok/s/user", about: "1 / 90th percentile of end-to-end latency over output tokens; folds TTFT in", better: "more" },
  ttft_p50_s: { label: "TTFT median", unit: "s", about: "arrival to first token, median", better: "less" },
  ttft_p90_s: { label: "TTFT P90", unit: "s", about: "arrival to first token, 90th percentile", better: "less" },
  ttft_p99_s: { label: "TTFT P99", unit: "s", about: "arrival to first token, 99th percentile", better: "less" },
  ttft_mean_s: { label: "TTFT mean", unit: "s", about: "arrival to first token, mean", better: "less" },
  tpot_p50_s: { label: "TPOT median", unit: "s", about: "(end-to-end - TTFT) / (output - 1), median over requests", better: "less" },
  tpot_p90_s: { label: "TPOT P90", unit: "s", about: "(end-to-end - TTFT) / (output - 1), 90th percentile", better: "less" },
  tpot_mean_s: { label: "TPOT mean", unit: "s", about: "(end-to-end - TTFT) / (output - 1), mean", better: "less" },
  cache_hit_gpu: { label: "Cache hit, GPU tier", unit: "", about: "share of input tokens found in GPU memory", share: true, better: "more" },
  cache_hit_host: { label: "Cache hit, host tier", unit: "", about: "share of input tokens loaded from host memory", share: true },
  cache_hit_total: { label: "Cache hit, total", unit: "", about: "GPU and host tier together", share: true, better: "more" },
  cache_hit_ideal: { label: "Cache hit, ideal", unit: "", about: "what an infinite cache would have found", share: true },
  requests_completed: { label: "Requests completed", unit: "", about: "counted requests of the window" },
  requests_per_lane_hour: { label: "Requests per lane-hour", unit: "/h", about: "counted requests per lane and hour", better: "more" },
  revenue_usd_gpu_hour: { label: "Revenue per GPU-hour", unit: "USD/GPU/h", about: "tokens sold at the price list, cached, uncached and output apart", better: "more" },
  cost_usd_gpu_hour: { label: "Cost per GPU-hour", unit: "USD/GPU/h", about: "price of a GPU-hour", better: "less" },
  cost_usd_per_mtok: { label: "Cost per million tokens", unit: "USD/Mtok", about: "GPU-hours over all tokens", better: "less" },
  revenue_usd_per_mtok: { label: "Revenue per million tokens", unit: "USD/Mtok", about: "revenue over all tokens", better: "more" },
  gpus: { label: "GPUs deployed", unit: "", about: "of the deployed engines" },
  rack_gpus: { label: "GPUs in the racks", unit: "", about: "all GPUs of the racks" },
  lane_demand_tok_s_gpu: { label: "Lane demand per GPU", unit: "tok/s/GPU", about: "what the lanes would ask of an instant server" },
  achieved_of_demand: { label: "Achieved of the lane demand", unit: "", about: "throughput over lane demand", share: true, better: "more" },
  e2e_mean_s: { label: "End to end, mean", unit: "s", about: "arrival to last token, mean", better: "less" },
  sim_seconds: { label: "Simulated time", unit: "s", about: "from the first arrival of the warm-up to the last token" },
  outside_range: { label: "Outside the measured range", unit: "", about: "share of the engines' time in launches outside the range of their cost files' points", share: true, better: "less" },
  margin_usd_gpu_hour: { label: "Margin per GPU-hour", unit: "USD/GPU/h", about: "revenue minus cost, at the chosen price list", better: "more" },
};

// What people look at first, in this order.
export const headline = ["total_tok_s_gpu", "p90_tok_s_user", "ttft_p90_s", "cache_hit_total", "revenue_usd_gpu_hour", "cost_usd_per_mtok"];

export function metric(key: string): Metric {
  const found = known[key];
  if (found) return found;
  const unit = /_s$/.test(key) ? "s" : /usd/.test(key) ? "USD" : "";
  return { label: key.replace(/_/g, " "), unit, about: key };
}

export function axisName(key: string): string {
  const m = metric(key);
  return m.unit ? `${m.label} (${m.unit})` : m.label;
}

export function number(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "n/a";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6) return `${trim(value / 1e6, digits)}M`;
  if (size >= 1e4) return `${trim(value / 1e3, digits)}K`;
  if (size >= 1) return trim(value, Math.max(digits, Math.ceil(Math.log10(size + 1))));
  return Number(value.toPrecision(digits)).toString();
}
function trim(value: number, digits: number): string { return Number(value.toPrecision(digits)).toString(); }

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "n/a";
  const size = Math.abs(value);
  if (size >= 1) return `${number(value)} s`;
  if (size >= 1e-3) return `${number(value * 1e3)} ms`;
  return value === 0 ? "0 s" : `${number(value * 1e6)} µs`;
}

export function shown(key: string, value: number | null): string {
  const m = metric(key);
  if (value === null) return "n/a";
  if (m.share) return `${(100 * value).toFixed(1)} %`;
  if (m.unit === "s") return seconds(value);
  return m.unit ? `${number(value)} ${m.unit}` : number(value);
}
