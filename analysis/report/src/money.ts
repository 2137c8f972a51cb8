// Revenue at a price list chosen on the page, from token rates that do not depend on it.
import type { PriceChoice, Table } from "./data.ts";

export const moneyKeys = ["revenue_usd_gpu_hour", "margin_usd_gpu_hour", "revenue_usd_per_mtok"];

// USD per GPU-hour = 3600/1e6 x (cached rate x cached price + computed rate x input price + output rate x output price).
export function revenue(cached: number, computed: number, output: number, price: PriceChoice["price"]): number {
  return (3600 / 1e6) * (cached * price.cached_input + computed * price.input + output * price.output);
}

export function priced(table: Table, key: string, row: number, choice: PriceChoice | null): number | null {
  if (!choice) return table.has(key) ? table.number(key, row) : null;
  const cached = table.number("cached_tok_s_gpu", row), computed = table.number("uncached_tok_s_gpu", row);
  const output = table.number("output_tok_s_gpu", row);
  if (cached === null || computed === null || output === null) return null;
  const perHour = revenue(cached, computed, output, choice.price);
  if (key === "revenue_usd_gpu_hour") return perHour;
  const cost = table.number("cost_usd_gpu_hour", row);
  if (key === "margin_usd_gpu_hour") return cost === null ? null : perHour - cost;
  const all = cached + computed + output;
  return all > 0 ? perHour / ((3600 * all) / 1e6) : null;
}
