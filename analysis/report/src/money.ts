// Revenue and cost at prices chosen on the page, from token rates that do not depend on them.
import type { GpuPrice, PriceChoice, Table } from "./data.ts";

export const moneyKeys = ["revenue_usd_gpu_hour", "margin_usd_gpu_hour", "revenue_usd_per_mtok", "cost_usd_gpu_hour", "cost_usd_per_mtok"];

// USD per GPU-hour = 3600/1e6 x (cached rate x cached price + computed rate x input price + output rate x output price).
export function revenue(cached: number, computed: number, output: number, price: PriceChoice["price"]): number {
  return (3600 / 1e6) * (cached * price.cached_input + computed * price.input + output * price.output);
}

// tokens and gpu: null leaves what the run was priced with.
export function priced(table: Table, key: string, row: number, tokens: PriceChoice | null, gpu: GpuPrice | null): number | null {
  const stored = (k: string) => (table.has(k) ? table.number(k, row) : null);
  const cached = stored("cached_tok_s_gpu"), computed = stored("uncached_tok_s_gpu"), output = stored("output_tok_s_gpu");
  const cost = gpu ? gpu.usd_gpu_hour : stored("cost_usd_gpu_hour");
  if (key === "cost_usd_gpu_hour") return cost;
  if (cached === null || computed === null || output === null) return null;
  const mtokPerHour = (3600 / 1e6) * (cached + computed + output);
  if (key === "cost_usd_per_mtok") return gpu ? (mtokPerHour > 0 ? gpu.usd_gpu_hour / mtokPerHour : null) : stored(key);
  const perHour = tokens ? revenue(cached, computed, output, tokens.price) : stored("revenue_usd_gpu_hour");
  if (key === "revenue_usd_gpu_hour" || perHour === null) return perHour;
  if (key === "margin_usd_gpu_hour") return cost === null ? null : perHour - cost;
  return tokens ? (mtokPerHour > 0 ? perHour / mtokPerHour : null) : stored(key);
}
