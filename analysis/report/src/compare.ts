// Up to four scenarios side by side: what differs between them, then every metric with its change against the first.
import type { Table } from "./data.ts";
import { h, table as makeTable } from "./dom.ts";
import { headline, metric, shown } from "./format.ts";

export function comparison(table: Table, rows: number[], metrics: string[], value: (key: string, row: number) => number | null, clear: () => void): HTMLElement {
  if (!rows.length) return h("p", { class: "about" }, "No point is selected. Select up to four in the chart or in the list to compare them.");
  const settings = table.keys("axis").concat(table.keys("scenario")).filter((k) => rows.length === 1 || new Set(rows.map((r) => table.text(k, r))).size > 1);
  const head = ["Setting or metric", ...rows.map((_, i) => `Point ${i + 1}`)];
  const settingRows = settings.map((k) => [k, ...rows.map((r) => table.text(k, r))]);
  const order = [...headline.filter((k) => metrics.includes(k)), ...metrics.filter((k) => !headline.includes(k))];
  const metricRows = order.filter((k) => rows.some((r) => value(k, r) !== null)).map((k) => {
    const base = value(k, rows[0]!);
    return [metric(k).label, ...rows.map((r, i) => {
      const v = value(k, r);
      const change = i && base && v !== null ? ` (${v >= base ? "+" : ""}${((100 * (v - base)) / Math.abs(base)).toFixed(1)} %)` : "";
      return shown(k, v) + change;
    })];
  });
  return h("div", {}, h("h2", {}, "Side by side"), makeTable("Selected scenarios", head, [...settingRows, ...metricRows], head.map((_, i) => i > 0)),
    h("button", { type: "button", class: "small", onclick: clear }, "Clear selection"));
}
