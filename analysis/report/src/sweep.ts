// The sweep: throughput per GPU against tokens/s per user with the Pareto front, or any two metrics; filters, colours,
// comparison of up to four points, published points beside them.
import { baseAxes, Chart, css, palette } from "./chart.ts";
import type { GpuPrice, PriceChoice, ReportData } from "./data.ts";
import { Table } from "./data.ts";
import { h, select } from "./dom.ts";
import { Filters } from "./filters.ts";
import { axisName, metric, shown } from "./format.ts";
import { moneyKeys, priced } from "./money.ts";
import { paretoFront } from "./pareto.ts";
import { comparison } from "./compare.ts";
import { legend } from "./legend.ts";
import { pointList, publishedList } from "./lists.ts";
import { errorBar, symbolKey } from "./marks.ts";
import type { State } from "./state.ts";

const maxCompared = 4;
const many = 1500; // points from which drawing goes for speed

// Pictures that people ask for by name: [across, up].
const pictures: [string, string, string][] = [
  ["Throughput against speed", "p90_tok_s_user", "total_tok_s_gpu"],
  ["Revenue against speed", "p90_tok_s_user", "revenue_usd_gpu_hour"],
  ["Margin against speed", "p90_tok_s_user", "margin_usd_gpu_hour"],
  ["Cost of tokens against speed", "p90_tok_s_user", "cost_usd_per_mtok"],
  ["Throughput against first token", "ttft_p90_s", "total_tok_s_gpu"],
  ["Throughput against end-to-end speed", "e2e_norm_p90_tok_s_user", "total_tok_s_gpu"],
];

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
  const gpuPrices = data.gpu_prices ?? [];
  const price = (): PriceChoice | null => prices[Number(state.get("price", "-1"))] ?? null;
  const gpuPrice = (): GpuPrice | null => gpuPrices[Number(state.get("gpu", "-1"))] ?? null;
  const chosen = (): number[] => state.get("pick", "").split(".").filter(Boolean).map(Number).filter((n) => n >= 0 && n < table.length);
  const value = (key: string) => (moneyKeys.includes(key) ? Array.from({ length: table.length }, (_, r) => priced(table, key, r, price(), gpuPrice())) : (table.column(key) as (number | null)[]));
  const bandOf = (key: string) => (table.has(`${key}_lo`) && !(moneyKeys.includes(key) && (price() || gpuPrice())) ? key : null);

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
    const groups = new Map<string, (number | null | undefined)[][]>(classes.entries.map((e) => [e.colour, []]));
    for (const r of visible) if (typeof xs[r] === "number" && typeof ys[r] === "number") groups.get(classes.of(r))!.push([xs[r], ys[r], r]);
    const picked = chosen();
    const band = bandOf(y());
    const bands = (band ? [...new Set([...front, ...picked])] : []).map((r) => [xs[r], table.number(`${band}_lo`, r), table.number(`${band}_hi`, r), r]);
    const size = visible.length > many ? 5 : visible.length > 300 ? 6 : 10;
    const published = (data.published ?? []).filter((p) => x() in p.metrics && y() in p.metrics);
    return { ...baseAxes(axisName(x()), axisName(y())),
      tooltip: { ...(baseAxes("", "").tooltip as object), trigger: "item", formatter: (p: { seriesName: string; value: number[]; dataIndex: number }) => {
        if (p.seriesName === "published") { const d = published[p.dataIndex]!; return h("div", { class: "tip" }, h("strong", {}, d.label), h("div", {}, d.citation)); }
        return hover(p.value[p.value.length - 1]!); } },
      series: [
        { name: "bands", type: "custom", z: 5, silent: true, data: bands, encode: { x: 0, y: [1, 2] }, renderItem: errorBar },
        { name: "front", type: "line", z: 5, data: front.map((r) => [xs[r], ys[r], r]), step: false, showSymbol: false, silent: true, lineStyle: { color: css("--ink"), width: 1.5 } },
        ...[...groups].map(([colour, points]) => ({ name: "scenarios", type: "scatter", data: points, large: true, largeThreshold: many, progressive: 0, symbolSize: size, itemStyle: { color: colour, opacity: visible.length > many ? 0.6 : 0.85 }, emphasis: { scale: 1.6 } })),
        { name: "picked", type: "scatter", z: 5, data: picked.map((r) => [xs[r], ys[r], r]), symbolSize: 18, silent: true, itemStyle: { color: "transparent", borderColor: css("--ink"), borderWidth: 2 } },
        { name: "published", type: "scatter", z: 5, symbol: "diamond", symbolSize: 14, data: published.map((p) => [p.metrics[x()], p.metrics[y()]]), itemStyle: { color: css("--panel"), borderColor: css("--accent"), borderWidth: 2 } },
      ] };
  };
  const numbers = () => {
    const xs = value(x()), ys = value(y()), onFront = new Set(front);
    return { head: [...axes, x(), y(), "on the front"], rows: visible.map((r) => [...axes.map((a) => table.column(a)[r] ?? null), xs[r] ?? null, ys[r] ?? null, onFront.has(r) ? "yes" : ""]) };
  };
  const chart = new Chart("Scenarios", "Each point is one simulated deployment; the line joins those that no other beats in both. Select a point, here or in the lists below, to compare up to four.", 460, option, numbers);
  chart.on("click", (event) => {
    const e = event as { seriesName?: string; value?: number[] };
    if (e.seriesName === "scenarios" && e.value) toggle(e.value[2]!);
  });

  const lists = h("div", { class: "front-list" });
  function draw(): void {
    visible = filters.rows();
    const xs = value(x()), ys = value(y()), moreY = metric(y()).better !== "less";
    front = paretoFront(xs, ys, visible, metric(x()).better !== "less", moreY);
    note.textContent = `${visible.length} of ${table.length} scenarios shown, ${front.length} on the front.` + (failures ? ` ${failures} did not run.` : "");
    const item = (r: number) => ({ row: r, text: `${shown(y(), ys[r] ?? null)} at ${shown(x(), xs[r] ?? null)}`, about: describe(r).join(", ") });
    const others = () => {
      const onFront = new Set(front);
      return visible.filter((r) => !onFront.has(r)).sort((a, b) => (moreY ? 1 : -1) * ((ys[b] ?? 0) - (ys[a] ?? 0))).map(item);
    };
    lists.replaceChildren(pointList("On the front", front.map(item), chosen(), toggle), pointList("The others", others, chosen(), toggle, state));
    const rows = chosen().map((r) => ({ row: r, values: new Map(offered.map((k) => [k, value(k)[r] ?? null])) }));
    compareBox.replaceChildren(comparison(table, rows.map((r) => r.row), offered, (k, r) => rows.find((one) => one.row === r)!.values.get(k) ?? null, () => { state.set("pick", ""); draw(); }));
    picture.value = String(pictures.findIndex(([, px, py]) => px === x() && py === y()));
    chart.draw();
  }
  const change = (name: string, fallback: string) => (v: string) => { state.set(name, v, fallback); draw(); };
  const failures = sweep.failed_count ?? sweep.failed.length;
  const known = pictures.map(([text, px, py], i) => ({ value: String(i), text, usable: offered.includes(px) && offered.includes(py) })).filter((p) => p.usable);
  const pictureControl = select("Picture", [...known, { value: "-1", text: "own choice of axes" }], "-1", (v) => {
    const chosenPicture = pictures[Number(v)];
    if (!chosenPicture) return;
    state.set("x", chosenPicture[1], xDefault);
    state.set("y", chosenPicture[2], yDefault);
    axisBox("Across").value = chosenPicture[1];
    axisBox("Up").value = chosenPicture[2];
    draw();
  });
  const picture = pictureControl.querySelector("select")!;
  const metricOptions = offered.map((k) => ({ value: k, text: metric(k).label }));
  const axisControls = new Map([["Across", select("Across", metricOptions, x(), change("x", xDefault))], ["Up", select("Up", metricOptions, y(), change("y", yDefault))]]);
  const axisBox = (name: string) => axisControls.get(name)!.querySelector("select")!;
  const controls = h("div", { class: "controls" }, pictureControl, ...axisControls.values(),
    select("Colour by", axes.concat(table.keys("scenario")).map((a) => ({ value: a, text: a })), colour(), change("colour", axes[0] ?? "")),
    prices.length ? select("Price list", [{ value: "-1", text: "as simulated" }, ...prices.map((p, i) => ({ value: String(i), text: `${p.list}: ${p.model}, ${p.period}` }))], state.get("price", "-1"), change("price", "-1")) : null,
    gpuPrices.length ? select("GPU price", [{ value: "-1", text: "as simulated" }, ...gpuPrices.map((p, i) => ({ value: String(i), text: `${p.name}: ${p.usd_gpu_hour} USD/h` }))], state.get("gpu", "-1"), change("gpu", "-1")) : null);
  const failed = failures ? h("details", {}, h("summary", {}, `${failures} scenarios did not run`), h("ul", {}, ...sweep.failed.slice(0, 200).map((f) => h("li", {}, `${f.deployment}: ${f.reason}`)))) : null;
  const constants = h("details", {}, h("summary", {}, "What is equal in every scenario"), h("dl", { class: "constants" },
    ...Object.entries(sweep.constants).flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])));
  const element = h("section", { class: "view" }, controls, filters.element, note, key, symbolKey(Boolean(bandOf(yDefault)), Boolean(data.published?.length)), chart.element, compareBox, lists, publishedList(data.published ?? []), failed, constants);
  return { element, draw };
}
