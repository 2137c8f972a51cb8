// Predicted against published, by suite, with bands.
import { baseAxes, Chart, css, palette } from "./chart.ts";
import type { ValidationItem, ValidationSuite } from "./data.ts";
import { h, table } from "./dom.ts";
import { number, seconds } from "./format.ts";

const percent = (v: number | null | undefined) => (v === null || v === undefined ? "n/a" : `${(100 * v).toFixed(1).replace(/^-0\.0$/, "0.0")} %`);
const inSeconds = (name: string) => ["tpot", "ttft", "step"].includes(name);

export function validationView(suites: ValidationSuite[]): { element: HTMLElement; draw: () => void } {
  const charts: Chart[] = [];
  const summary = table("Suites", ["Suite", "Rows", "Predicted", "Coverage", "Inside the band", "Metric", "Mean error", "Median error", "Bias"],
    suites.flatMap((s) => Object.entries(s.metrics).map(([name, m]) => [s.name, String(s.rows), String(s.predicted), percent(s.coverage), percent(s.inside_band), `${name} (n=${m.n})`, percent(m.mean_abs_err), percent(m.median_abs_err), percent(m.bias)])),
    [false, true, true, true, true, false, true, true, true]);
  const parts = suites.flatMap((s) => Object.keys(s.metrics).map((name) => {
    const chart = scatter(s, name);
    charts.push(chart);
    return chart.element;
  }));
  return { element: h("section", { class: "view" }, summary, ...parts), draw: () => charts.forEach((c) => c.draw()) };
}

function scatter(suite: ValidationSuite, name: string): Chart {
  const items = suite.items.filter((i) => i.metric === name && i.predicted !== null) as (ValidationItem & { predicted: number })[];
  const all = items.flatMap((i) => [i.published, i.predicted]).filter((v) => v > 0);
  const low = Math.min(...all), high = Math.max(...all);
  const log = all.length > 0 && high / low > 20;
  return new Chart(`${suite.name}: ${name}`, "On the line the prediction equals the published figure; filled points were not fitted.", 360, () => {
    const base = baseAxes(`published ${name}`, `predicted ${name}`) as { xAxis: { axisLabel: object }; yAxis: { axisLabel: object } };
    const label = inSeconds(name) ? { formatter: (v: number) => seconds(v) } : {};
    const axis = (of: { axisLabel: object }) => ({ ...of, ...(log ? { type: "log" } : {}), axisLabel: { ...of.axisLabel, ...label } });
    const end = log ? low : 0;
    const point = (i: (typeof items)[number]) => [i.published, i.predicted];
    return { ...base, xAxis: axis(base.xAxis), yAxis: axis(base.yAxis),
      tooltip: { ...(baseAxes("", "").tooltip as object), trigger: "item", formatter: (p: { seriesName: string; dataIndex: number }) => {
        const item = items.filter((i) => i.fitted === (p.seriesName === "fitted"))[p.dataIndex];
        return item ? h("div", { class: "tip" }, h("strong", {}, item.id), h("div", {}, `published ${inSeconds(name) ? seconds(item.published) : number(item.published)}, predicted ${inSeconds(name) ? seconds(item.predicted) : number(item.predicted)}`), item.lo !== null ? h("div", {}, `band ${number(item.lo)} to ${number(item.hi)}`) : null, h("div", {}, item.citation ?? "")) : ""; } },
      series: [
        { type: "line", silent: true, showSymbol: false, data: [[end, end], [high, high]], lineStyle: { color: css("--ink-soft"), type: "dashed" } },
        { name: "unfitted", type: "scatter", symbolSize: 8, data: items.filter((i) => !i.fitted).map(point), itemStyle: { color: palette()[0], opacity: 0.8 } },
        { name: "fitted", type: "scatter", symbolSize: 8, data: items.filter((i) => i.fitted).map(point), itemStyle: { color: "transparent", borderColor: palette()[1], borderWidth: 2 } },
      ] };
  }, () => ({ head: ["id", "published", "predicted", "lo", "hi", "error", "fitted", "refused"], rows: suite.items.filter((i) => i.metric === name).map((i) =>
    [i.id, i.published, i.predicted, i.lo, i.hi, i.predicted === null ? null : i.predicted / i.published - 1, i.fitted ? "yes" : "", i.refused ?? ""]) }));
}
