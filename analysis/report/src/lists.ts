// Points as lists, for those who do not use the pointer, and for print: every point can be picked here, too.
import type { PublishedPoint } from "./data.ts";
import { h, table } from "./dom.ts";
import { shown } from "./format.ts";
import type { State } from "./state.ts";

const firstShown = 20, mostShown = 200;
export interface ListedPoint { row: number; text: string; about: string }

// Points given as a function are made only when the list is opened; `state` then remembers that it is.
export function pointList(title: string, points: ListedPoint[] | (() => ListedPoint[]), chosen: number[], toggle: (row: number) => void, state?: State): HTMLElement {
  const list = (all: ListedPoint[], most: number) => [h("ul", {}, ...all.slice(0, most).map((p) => h("li", {},
    h("button", { type: "button", class: "small", "data-row": p.row, "aria-pressed": String(chosen.includes(p.row)), onclick: () => toggle(p.row) }, p.text), " ", p.about))),
    all.length > most ? h("p", { class: "about" }, `${all.length - most} more; filters narrow them down, and the CSV of the chart has all.`) : null];
  if (typeof points !== "function") return h("section", {}, h("h2", {}, title), ...list(points, firstShown));
  const box = h("div");
  const fill = () => box.replaceChildren(...list(points(), mostShown).filter((n): n is HTMLElement => n !== null));
  const open = state?.get("others", "") === "1";
  if (open) fill();
  return h("details", { open, ontoggle: (e) => {
    const now = (e.target as HTMLDetailsElement).open;
    state?.set("others", now ? "1" : "");
    if (now && !box.firstChild) fill();
  } }, h("summary", {}, title), box);
}

export function publishedList(points: PublishedPoint[]): HTMLElement | null {
  if (!points.length) return null;
  const cell = (p: PublishedPoint, key: string) => (key in p.metrics ? shown(key, p.metrics[key]!) : "n/a");
  return h("details", {}, h("summary", {}, `Published results of this model (${points.length})`), table("Published results", ["Result", "Throughput per GPU", "P90 tokens/s per user", "Median tokens/s per user", "Source"],
    points.map((p) => [p.label, cell(p, "total_tok_s_gpu"), cell(p, "p90_tok_s_user"), cell(p, "p50_tok_s_user"), p.citation]), [false, true, true, true, false]));
}
