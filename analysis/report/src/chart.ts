// One chart on the page: ECharts in the page's colours, a table of the same numbers behind it, and a CSV of them.
import * as echarts from "echarts/core";
import { BarChart, CustomChart, LineChart, ScatterChart } from "echarts/charts";
import { AriaComponent, DataZoomInsideComponent, GridComponent, LegendScrollComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";
import { csv, download, h, table } from "./dom.ts";

echarts.use([BarChart, CustomChart, LineChart, ScatterChart, AriaComponent, DataZoomInsideComponent, GridComponent,
  LegendScrollComponent, MarkLineComponent, TooltipComponent, CanvasRenderer]);

export type Option = echarts.EChartsCoreOption;
export interface Numbers { head: string[]; rows: (string | number | null)[][] }

const fontStack = "system-ui, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif";
const live = new Set<Chart>();

export function css(name: string): string { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
export function palette(): string[] { return [1, 2, 3, 4, 5, 6, 7, 8].map((i) => css(`--series-${i}`)); }

export class Chart {
  readonly element: HTMLElement;
  private readonly canvas: HTMLElement;
  private readonly tableBox: HTMLElement;
  private chart: echarts.ECharts | null = null;
  private handlers: [string, (event: unknown) => void][] = [];

  constructor(private readonly title: string, about: string, height: number,
              private readonly option: () => Option, private readonly numbers: () => Numbers) {
    this.canvas = h("div", { class: "canvas", style: `height:${height}px`, role: "img", "aria-label": `${title}. ${about} The same numbers are in the table below.` });
    this.tableBox = h("div", { class: "table-box" });
    const details = h("details", { ontoggle: (e) => { if ((e.target as HTMLDetailsElement).open) this.fillTable(); } },
      h("summary", {}, "Table of these numbers"), this.tableBox);
    const save = h("button", { type: "button", class: "small", onclick: () => { const n = this.numbers(); download(`${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.csv`, csv(n.head, n.rows)); } }, "Download CSV");
    this.element = h("figure", { class: "chart" }, h("figcaption", {}, h("h2", {}, title), h("p", { class: "about" }, about)),
      this.canvas, h("div", { class: "chart-foot" }, details, save));
    live.add(this);
  }
  on(event: string, handler: (event: unknown) => void): void { this.handlers.push([event, handler]); }

  draw(): void {
    if (!this.canvas.isConnected) return;
    if (!this.chart) {
      this.chart = echarts.init(this.canvas, null, { renderer: "canvas" });
      for (const [event, handler] of this.handlers) this.chart.on(event, handler as () => void);
      new ResizeObserver(() => this.chart?.resize()).observe(this.canvas);
    }
    this.chart.setOption({ animation: false, textStyle: { fontFamily: fontStack, color: css("--ink") }, ...this.option() }, { notMerge: true });
    const details = this.tableBox.parentElement as HTMLDetailsElement;
    if (details.open) this.fillTable();
  }
  private fillTable(): void {
    const { head, rows } = this.numbers();
    const numeric = head.map((_, i) => rows.length > 0 && rows.every((r) => typeof r[i] === "number" || r[i] === null));
    const cut = rows.slice(0, 500);
    const text = cut.map((r) => r.map((c) => (c === null ? "n/a" : typeof c === "number" ? String(Number(c.toPrecision(6))) : c)));
    this.tableBox.replaceChildren(table(this.title, head, text, numeric),
      rows.length > cut.length ? h("p", { class: "about" }, `First ${cut.length} of ${rows.length} rows; the CSV has all.`) : "");
  }
  dispose(): void { this.chart?.dispose(); live.delete(this); }
}

export function redrawAll(): void { for (const chart of live) chart.draw(); }
export function dropAll(): void { for (const chart of [...live]) chart.dispose(); }

export function baseAxes(xName: string, yName: string): Option {
  const axis = (name: string, gap: number) => ({
    type: "value", name, nameLocation: "middle", nameGap: gap, nameTextStyle: { color: css("--ink") },
    axisLine: { lineStyle: { color: css("--line") } }, axisLabel: { color: css("--ink-soft"), hideOverlap: true, formatter: tick },
    splitLine: { lineStyle: { color: css("--grid") } }, scale: false,
  });
  return { grid: { left: 64, right: 20, top: 28, bottom: 52 }, xAxis: axis(xName, 32), yAxis: axis(yName, 46),
    tooltip: tooltip(), aria: { enabled: true } };
}
export function tick(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6) return `${value / 1e6}M`;
  if (size >= 1e3) return `${value / 1e3}K`;
  return String(Number(value.toPrecision(4)));
}
export function seriesLegend(top = 0): Record<string, unknown> {
  return { type: "scroll", top, textStyle: { color: css("--ink") }, pageTextStyle: { color: css("--ink") }, pageIconColor: css("--ink"), pageIconInactiveColor: css("--line") };
}
export function percentTick(value: number): string { return `${tick(100 * value)} %`; }
export function tooltip(): Record<string, unknown> {
  return { renderMode: "html", appendToBody: false, confine: true, backgroundColor: css("--panel"), borderColor: css("--line"), textStyle: { color: css("--ink"), fontSize: 13 } };
}
