// One run: headline numbers, where time goes, engines, cache, latency, links, the slowest requests.
import { baseAxes, Chart, css, palette, percentTick, seriesLegend, tooltip } from "./chart.ts";
import type { Option } from "./chart.ts";
import type { Histogram, RunData, TimePart } from "./data.ts";
import { h, table } from "./dom.ts";
import { headline, metric, number, seconds, shown } from "./format.ts";

const patterns: Record<string, string> = { measured: "measured", published: "published", transferred: "transferred", assumed: "assumed" };

export function runView(run: RunData): { element: HTMLElement; draw: () => void } {
  const charts: Chart[] = [];
  const add = (chart: Chart | null): HTMLElement | null => { if (!chart) return null; charts.push(chart); return chart.element; };
  const cards = h("div", { class: "cards" }, ...headline.filter((k) => run.metrics[k] !== undefined && run.metrics[k] !== null).map((k) => card(run, k)));
  const element = h("section", { class: "view" }, cards, ...notes(run),
    add(times("Where a decode step spends its time", "Mean decode step of the run by operator group; the fill says where the number comes from.", run.decode_step)),
    add(times("Where a computed prompt token spends its time", "Prefill engine time per computed prompt token.", run.prefill_token)),
    ...engineCharts(run).map(add),
    add(cacheChart(run)), add(linkLines(run)), ...expertCharts(run).map(add),
    ...Object.entries(run.histograms ?? {}).map(([key, hist]) => add(histogram(key, hist))),
    add(linkChart(run)), add(slowest(run)),
    h("details", { class: "metrics" }, h("summary", {}, "Every metric with its definition"), table("Metrics", ["Metric", "Value", "Definition"],
      Object.entries(run.metrics).map(([k, v]) => [metric(k).label, shown(k, v), metric(k).about]), [false, true, false])));
  return { element, draw: () => charts.forEach((c) => c.draw()) };
}

// What the program says of the run besides its figures: what left the fitted range, what was refused.
function notes(run: RunData): HTMLElement[] {
  const lines = run.manifest["notes"];
  if (!Array.isArray(lines) || lines.length === 0) return [];
  return [h("ul", { class: "about", "aria-label": "Notes" }, ...lines.map((line) => h("li", {}, String(line))))];
}

function card(run: RunData, key: string): HTMLElement {
  const m = metric(key), lo = run.metrics[`${key}_lo`], hi = run.metrics[`${key}_hi`];
  const band = typeof lo === "number" && typeof hi === "number" ? h("div", { class: "band" }, `P10-P90: ${shown(key, lo)} to ${shown(key, hi)}`) : null;
  return h("div", { class: "card" }, h("div", { class: "card-label" }, m.label), h("div", { class: "card-value" }, shown(key, run.metrics[key] ?? null)), band, h("div", { class: "about" }, m.about));
}

// Intervals of a value axis: its labels must not touch on a phone.
const fewer = () => (window.innerWidth < 600 ? 2 : 5);

// Kinds of layers (encoder and decoder, dense and sparse) list an operator each: those of one name and basis are added up.
function merged(parts: TimePart[]): TimePart[] {
  const sums = new Map<string, TimePart>();
  for (const p of parts) {
    const key = JSON.stringify([p.group, p.name, p.basis]), sum = sums.get(key);
    if (sum) sum.time_s += p.time_s;
    else sums.set(key, { ...p });
  }
  return [...sums.values()].filter((p) => p.time_s !== 0);
}

function times(title: string, about: string, listed: TimePart[] | undefined): Chart | null {
  if (!listed?.length) return null;
  const parts = merged(listed);
  const groups = [...new Set(parts.map((p) => p.group))];
  const colours = palette();
  const option = (): Option => ({ grid: { left: 110, right: 24, top: 48, bottom: 40 }, tooltip: { ...tooltip(), trigger: "item", valueFormatter: (v: number) => seconds(v) },
    legend: seriesLegend(4),
    xAxis: { type: "value", axisLabel: { color: css("--ink-soft"), formatter: (v: number) => seconds(v), hideOverlap: true }, splitNumber: fewer(), splitLine: { lineStyle: { color: css("--grid") } } },
    yAxis: { type: "category", data: groups, inverse: true, axisLabel: { color: css("--ink") } },
    series: parts.map((p, i) => ({ name: p.name, type: "bar", stack: "t", barMaxWidth: 30, data: groups.map((g) => (g === p.group ? p.time_s : 0)),
      itemStyle: { color: colours[i % colours.length], borderColor: css("--panel"), borderWidth: 1, decal: decal(p.basis) } })) });
  return new Chart(title, `${about} Plain: measured; dots: published; stripes: transferred; cross-hatch: assumed.${parts.some((p) => p.time_s < 0) ? " Left of zero: time that operators save by overlapping, as measurements of whole layers say." : ""}`, 90 + 44 * groups.length, option,
    () => ({ head: ["group", "operator", "basis", "seconds", "share"], rows: share(parts) }));
}
function share(parts: TimePart[]): (string | number)[][] {
  const total = parts.reduce((sum, p) => sum + p.time_s, 0) || 1;
  return parts.map((p) => [p.group, p.name, patterns[p.basis] ?? p.basis, p.time_s, p.time_s / total]);
}
function decal(basis: string): unknown {
  const colour = "rgba(255,255,255,0.32)";
  if (basis === "published") return { symbol: "circle", symbolSize: 0.8, dashArrayX: [[5, 5], [0, 5, 5, 0]], dashArrayY: [5, 0], color: colour };
  if (basis === "transferred") return { symbol: "rect", dashArrayX: [1, 0], dashArrayY: [1, 6], rotation: -Math.PI / 4, color: colour };
  if (basis === "assumed") return { symbol: "rect", dashArrayX: [[2, 4]], dashArrayY: [2, 4], rotation: Math.PI / 4, color: colour };
  return { symbol: "none" };
}

function lines(title: string, about: string, run: RunData, unit: string, named: { name: string; values: number[] }[], share100: boolean): Chart | null {
  if (!named.length || !run.times_s) return null;
  const colours = palette();
  const times_s = run.times_s;
  const axes = () => {
    const base = baseAxes("simulated time (s)", unit) as { yAxis: { axisLabel: object } };
    return share100 ? { ...base, yAxis: { ...base.yAxis, axisLabel: { ...base.yAxis.axisLabel, formatter: percentTick } } } : base;
  };
  return new Chart(title, about, 300, () => ({ ...axes(), color: colours,
    legend: seriesLegend(), tooltip: { ...tooltip(), trigger: "axis", valueFormatter: (v: number) => (share100 ? `${(100 * v).toFixed(1)} %` : number(v)) },
    grid: { left: 64, right: 20, top: 40, bottom: 52 },
    series: named.map((n, i) => ({ name: n.name, type: "line", showSymbol: false, sampling: "lttb", lineStyle: { width: 1.5, type: i < colours.length ? "solid" : "dashed" }, data: n.values.map((v, t) => [times_s[t], v]) })) }),
    () => ({ head: ["time_s", ...named.map((n) => n.name)], rows: times_s.map((t, i) => [t, ...named.map((n) => n.values[i] ?? null)]) }));
}
const seriesText: Record<string, [string, string, boolean]> = {
  utilisation: ["Engines at work", "Share of each sample interval that an engine computes.", true],
  running: ["Requests running", "Requests in the batch of each engine.", false],
  waiting: ["Requests waiting", "Requests queued at each engine: for their prompt, at engines that compute prompts.", false],
  kv_used: ["KV memory in use", "Share of each engine's KV memory that holds live or cached blocks.", true],
};
function engineCharts(run: RunData): (Chart | null)[] {
  return Object.entries(seriesText).map(([key, [title, about, share100]]) =>
    lines(title, about, run, share100 ? "share" : "requests", (run.engines ?? []).filter((e) => e.series[key]).map((e) => ({ name: e.name, values: e.series[key]! })), share100));
}
// Of many ranks: the most and the least loaded one, over the mean. Engines of one placement share their load.
function expertCharts(run: RunData): (Chart | null)[] {
  const engines = run.engines ?? [];
  const alike = new Map<string, string[]>();
  for (const e of engines) {
    const ranks = e.ranks?.["expert_load"];
    if (!ranks?.length) continue;
    const key = JSON.stringify(ranks);
    alike.set(key, [...(alike.get(key) ?? []), e.name]);
  }
  const load = [...alike].flatMap(([key, names]) => {
    const ranks = JSON.parse(key) as number[][], name = names.length > 1 ? `${names[0]} to ${names[names.length - 1]}` : names[0]!;
    const over = (how: (values: number[]) => number) => ranks[0]!.map((_, t) => how(ranks.map((r) => r[t]!)));
    return [{ name: `${name}, busiest rank`, values: over((v) => Math.max(...v)) }, { name: `${name}, idlest rank`, values: over((v) => Math.min(...v)) }];
  });
  const moved = engines.filter((e) => e.series["experts_moved"]?.some((v) => v > 0)).map((e) => ({ name: e.name, values: e.series["experts_moved"]! }));
  return [lines("Expert load by rank", "Rows that a rank's experts compute, over the mean of the ranks; the Rack view shows every rank.", run, "rows / mean", load, false),
    lines("Experts moved by EPLB", "Expert replicas that changed their place in each sample interval.", run, "experts", moved, false)];
}
function linkLines(run: RunData): Chart | null {
  const recorded = (run.links ?? []).filter((l) => l.series?.some((v) => v > 0));
  return lines("Links over time", "Mean share of the bandwidth of an engine's links in use; flows count when they have ended. The busiest ones.", run, "share",
    recorded.map((l) => ({ name: l.name, values: l.series!, peak: Math.max(...l.series!) })).sort((a, b) => b.peak - a.peak).slice(0, 8), true);
}
function cacheChart(run: RunData): Chart | null {
  return lines("Cache hits by tier", "Share of the prompt tokens admitted in each interval that were found in GPU memory and in host memory.", run, "share", Object.entries(run.cache ?? {}).map(([name, values]) => ({ name, values })), true);
}
function histogram(key: string, hist: Histogram): Chart {
  const label = metric(key).label === key.replace(/_/g, " ") ? key.toUpperCase() : metric(key).label;
  const total = hist.counts.reduce((a, b) => a + b, 0) || 1;
  const edge = (i: number) => (hist.unit === "s" ? seconds(hist.edges[i]) : number(hist.edges[i]));
  const name = (i: number) => `${edge(i)} to ${edge(i + 1)}`;
  return new Chart(`Distribution of ${label}`, `Share of requests by ${label} (${hist.unit}); the bins grow geometrically.`, 260, () => ({ ...baseAxes(`${label} (${hist.unit})`, "share of requests"),
    xAxis: { type: "category", data: hist.counts.map((_, i) => edge(i)), axisLabel: { color: css("--ink-soft"), hideOverlap: true }, name: `${label} (${hist.unit})`, nameLocation: "middle", nameGap: 32, nameTextStyle: { color: css("--ink") } },
    series: [{ type: "bar", barCategoryGap: "8%", data: hist.counts.map((c) => c / total), itemStyle: { color: palette()[0] } }] }),
    () => ({ head: [`${key} (${hist.unit})`, "requests", "share"], rows: hist.counts.map((c, i) => [name(i), c, c / total]) }));
}
function linkChart(run: RunData): Chart | null {
  const top = [...(run.links ?? [])].sort((a, b) => b.utilisation - a.utilisation).slice(0, 24);
  if (!top.length) return null;
  return new Chart("Busiest links", "Mean share of the bandwidth of an engine's links in use over the window, and of its busiest link; the 24 busiest.", 80 + 26 * top.length, () => ({
    grid: { left: 190, right: 24, top: 30, bottom: 40 }, tooltip: { ...tooltip(), trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: (v: number) => `${(100 * v).toFixed(2)} %` },
    xAxis: { type: "value", axisLabel: { color: css("--ink-soft"), formatter: percentTick, hideOverlap: true }, splitNumber: fewer(), splitLine: { lineStyle: { color: css("--grid") } } },
    yAxis: { type: "category", inverse: true, data: top.map((l) => l.name), axisLabel: { color: css("--ink"), width: 180, overflow: "truncate" } },
    legend: seriesLegend(),
    series: [{ name: "mean", type: "bar", data: top.map((l) => l.utilisation), itemStyle: { color: palette()[1] } }, { name: "busiest", type: "bar", data: top.map((l) => l.busiest ?? null), itemStyle: { color: palette()[0] } }] }),
    () => ({ head: ["link", "mean utilisation", "busiest link"], rows: (run.links ?? []).map((l) => [l.name, l.utilisation, l.busiest ?? null]) }));
}
function slowest(run: RunData): Chart | null {
  const requests = run.slowest ?? [];
  if (!requests.length) return null;
  const names = [...new Set(requests.flatMap((r) => r.parts.map((p) => p.name)))];
  const part = (r: (typeof requests)[number], name: string) => r.parts.find((p) => p.name === name)?.time_s ?? 0;
  return new Chart("The slowest requests", "Where the requests with the longest latency spent it.", 80 + 22 * requests.length, () => ({
    grid: { left: 130, right: 24, top: 40, bottom: 40 }, color: palette(), legend: seriesLegend(), tooltip: { ...tooltip(), trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: (v: number) => seconds(v) },
    xAxis: { type: "value", axisLabel: { color: css("--ink-soft"), formatter: (v: number) => seconds(v), hideOverlap: true }, splitNumber: fewer(), splitLine: { lineStyle: { color: css("--grid") } } },
    yAxis: { type: "category", inverse: true, data: requests.map((r) => r.id), axisLabel: { color: css("--ink"), width: 120, overflow: "truncate" } },
    series: names.map((name) => ({ name, type: "bar", stack: "t", data: requests.map((r) => part(r, name)) })) }),
    () => ({ head: ["request", "arrival_s", ...names], rows: requests.map((r) => [r.id, r.arrival_s, ...names.map((n) => part(r, n))]) }));
}
