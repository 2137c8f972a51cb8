// Marks of the sweep picture beside its points, and the key that explains them.
import { css } from "./chart.ts";
import { h } from "./dom.ts";

type Api = { value: (i: number) => number; coord: (p: number[]) => number[] };
export function errorBar(_: unknown, api: Api): unknown {
  const low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
  const line = (x1: number, y1: number, x2: number, y2: number) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: css("--ink-soft"), lineWidth: 1 } });
  const [lx, ly] = low as [number, number], [hx, hy] = high as [number, number];
  return { type: "group", children: [line(lx, ly, hx, hy), line(lx - 4, ly, lx + 4, ly), line(hx - 4, hy, hx + 4, hy)] };
}

export function symbolKey(bands: boolean, published: boolean): HTMLElement {
  const entry = (mark: string, text: string) => h("span", { class: "key" }, h("i", { class: `mark ${mark}` }), text);
  return h("div", { class: "legend" }, entry("line", "Pareto front"), bands ? entry("bar", "P10 to P90 over the parameters' intervals") : null,
    published ? entry("diamond", "published result") : null);
}
