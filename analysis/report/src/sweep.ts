// The sweep: throughput per GPU against tokens/s per user with the Pareto front, or any two metrics; filters, colours,
// comparison of up to four points, published points beside them.
import { baseAxes, Chart, css, palette } from "./chart.ts";
import type { PriceChoice, ReportData } from "./data.ts";
import { Table } from "./data.ts";
import { h, select } from "./dom.ts";
import { Filters } from "./filters.ts";
import { axisName, metric, shown } from "./format.ts";
import { moneyKeys, priced } from "./money.ts";
import { paretoFront } from "./pareto.ts";
import { comparison } from "./compare.ts";
import { legend } from "./legend.ts";
import type { State } from "./state.ts";

const maxCompared = 4;

export function sweepView(data: ReportData, state: State): { element: HTMLElement; draw: () => void } {
  const sweep = data.sweep!;
  const table = new Table(sweep.columns);
  const metrics = table.keys("metric").filter((k) => !/_(lo|hi)$/.test(k));
  const offered = [...metrics, ...moneyKeys.filter((k) => !metrics.includes(k) && table.has("cached_tok_s_gpu"))];
  const axes = table.keys("axis");
  const prices = data.prices ?? [];
  const pick = (key: string, wanted: string, list: string[]) => {
    const value = state.get(key, wanted);
    return list.includes(value) ? value : (list[0] ?? wanted);
  };
  const first = (wanted: string) => (offered.includes(wanted) ? wanted : (offered[0] ?? wanted));
  const xDefault = first("p90_tok_s_user"), yDefault = first("total_tok_s_gpu");
  const x = () => pick("x", xDefault, offered), y = () => pick("y", yDefault, offered);
  const colour = () => state.get("colour", axes[0] ?? "");
  const price = (): PriceChoice | null => prices[Number(state.get("price", "-1"))] ?? null;
  const chosen = (): number[] => state.get("pick", "").split(".").filter(Boolean).map(Number).filter((n) => n >= 0 && n < table.length);
  const value = (key: string) => (moneyKeys.includes(key) ? Array.from({ length: table.length }, (_, r) => priced(table, key, r, price())) : (table.column(key) as (number | null)[]));

  const filters = new Filters(table, axes, state, () => draw());
  const note = h("p", { class: "about", "aria-live": "polite" });
  const key = h("div", { class: "legend" });
  const compareBox = h("section", { class: "compare", "aria-label": "Comparison" });
  const toggle = (row: number) => {
    const now = chosen();
    const next = now.includes(row) ? now.filter((r) => r !== row) : [...now, row].slice(-maxCompared);
    state.set("pick", next.join("."));
    draw();
  };
  const describe = (row: number) => axes.map((a) => `${a} = ${table.text(a, row)}`);
  const hover = (row: number): HTMLElement => h("div", { class: "tip" },
    h("strong", {}, shown(y(), value(y())[row] ?? null), " at ", shown(x(), value(x())[row] ?? null)),
    ...table.keys("axis").concat(table.keys("scenario")).map((k) => h("div", {}, `${k}: ${table.text(k, row)}`)));

  let visible: number[] = [];
  let front: number[] = [];
  const option = () => {
    const xs = value(x()), ys = value(y());
    const classes = legend(table, colour(), palette());
    key.replaceChildren(...classes.entries.map((e) => h("span", { class: "key" }, h("i", { style: `background:${e.colour}` }), e.text)));
    const points = visible.filter((r) => xs[r] !== null && ys[r] !== null).map((r) => ({ value: [xs[r], ys[r], r], itemStyle: { color: classes.of(r) } }));
    const picked = chosen();
    const bands = (table.has(`${y()}_lo`) ? [...new Set([...front, ...picked])] : []).map((r) => [xs[r], table.number(`${y()}_lo`, r), table.number(`${y()}_hi`, r), r]);
    const published = (data.published ?? []).filter((p) => x() in p.metrics && y() in p.metrics);
    return { ...baseAxes(axisName(x()), axisName(y())),
      tooltip: { ...(baseAxes("", "").tooltip as object), trigger: "item", formatter: (p: { seriesName: string; value: number[]; dataIndex: number }) => {
        if (p.seriesName === "published") { const d = published[p.dataIndex]!; return h("div", { class: "tip" }, h("strong", {}, d.label), h("div", {}, d.citation)); }
        return hover(p.value[p.value.length - 1]!); } },
      series: [
        { name: "bands", type: "custom", silent: true, data: bands, encode: { x: 0, y: [1, 2] }, renderItem: errorBar },
        { name: "front", type: "line", data: front.map((r) => [xs[r], ys[r], r]), step: false, showSymbol: false, silent: true, lineStyle: { color: css("--ink"), width: 1.5 } },
        { name: "scenarios", type: "scatter", data: points, symbolSize: points.length > 3000 ? 4 : points.length > 300 ? 6 : 10, itemStyle: { opacity: 0.85 }, emphasis: { scale: 1.6 } },
        { name: "picked", type: "scatter", data: picked.map((r) => [xs[r], ys[r], r]), symbolSize: 18, silent: true, itemStyle: { color: "transparent", borderColor: css("--ink"), borderWidth: 2 } },
        { name: "published", type: "scatter", symbol: "diamond", symbolSize: 14, data: published.map((p) => [p.metrics[x()], p.metrics[y()]]), itemStyle: { color: css("--panel"), borderColor: css("--accent"), borderWidth: 2 } },
      ] };
  };
  const numbers = () => ({ head: [...axes, x(), y(), "on the front"], rows: visible.map((r) => [...axes.map((a) => table.column(a)[r] ?? null), value(x())[r] ?? null, value(y())[r] ?? null, front.includes(r) ? "yes" : ""]) });
  const chart = new Chart("Scenarios", "Each point is one simulated deployment; the line joins those that no other beats in both. Select a point to compare it.", 460, option, numbers);
  chart.on("click", (event) => {
    const e = event as { seriesName?: string; value?: number[] };
    if (e.seriesName === "scenarios" && e.value) toggle(e.value[2]!);
  });

  const frontList = h("div", { class: "front-list" });
  function draw(): void {
    visible = filters.rows();
    const xs = value(x()), ys = value(y());
    front = paretoFront(xs, ys, visible, metric(x()).better !== "less", metric(y()).better !== "less");
    note.textContent = `${visible.length} of ${table.length} scenarios shown, ${front.length} on the front.` + (sweep.failed.length ? ` ${sweep.failed.length} did not run.` : "");
    frontList.replaceChildren(h("h2", {}, "On the front"), h("ul", {}, ...front.slice(0, 40).map((r) => h("li", {},
      h("button", { type: "button", class: "small", "aria-pressed": String(chosen().includes(r)), onclick: () => toggle(r) },
        `${shown(y(), ys[r] ?? null)} at ${shown(x(), xs[r] ?? null)}`), " ", describe(r).join(", ")))));
    compareBox.replaceChildren(comparison(table, chosen(), offered, (k, r) => value(k)[r] ?? null, () => { state.set("pick", ""); draw(); }));
    chart.draw();
  }
  const change = (name: string, fallback: string) => (v: string) => { state.set(name, v, fallback); draw(); };
  const metricOptions = offered.map((k) => ({ value: k, text: metric(k).label }));
  const controls = h("div", { class: "controls" },
    select("Across", metricOptions, x(), change("x", xDefault)),
    select("Up", metricOptions, y(), change("y", yDefault)),
    select("Colour by", axes.concat(table.keys("scenario")).map((a) => ({ value: a, text: a })), colour(), change("colour", axes[0] ?? "")),
    prices.length ? select("Price list", [{ value: "-1", text: "as simulated" }, ...prices.map((p, i) => ({ value: String(i), text: `${p.list}: ${p.model}, ${p.period}` }))], state.get("price", "-1"), change("price", "-1")) : null);
  const failed = sweep.failed.length ? h("details", {}, h("summary", {}, `${sweep.failed.length} scenarios did not run`), h("ul", {}, ...sweep.failed.slice(0, 200).map((f) => h("li", {}, `${f.deployment}: ${f.reason}`)))) : null;
  const constants = h("details", {}, h("summary", {}, "What is equal in every scenario"), h("dl", { class: "constants" },
    ...Object.entries(sweep.constants).flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])));
  const element = h("section", { class: "view" }, controls, filters.element, note, key, chart.element, compareBox, frontList, failed, constants);
  return { element, draw };
}

type Api = { value: (i: number) => number; coord: (p: number[]) => number[] };
function errorBar(_: unknown, api: Api): unknown {
  const low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
  const line = (x1: number, y1: number, x2: number, y2: number) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: css("--ink-soft"), lineWidth: 1 } });
  const [lx, ly] = low as [number, number], [hx, hy] = high as [number, number];
  return { type: "group", children: [line(lx, ly, hx, hy), line(lx - 4, ly, lx + 4, ly), line(hx - 4, hy, hx + 4, hy)] };
}
