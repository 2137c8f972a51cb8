// One filter an axis: tick boxes for few values, a from-to pair for many numbers; and limits on two metrics.
import type { Cell, Table } from "./data.ts";
import { h } from "./dom.ts";
import { metric } from "./format.ts";
import type { State } from "./state.ts";

const fewValues = 12;

export class Filters {
  readonly element: HTMLElement;
  private readonly tests: (() => ((row: number) => boolean) | null)[] = [];

  constructor(private readonly table: Table, axes: string[], private readonly state: State, private readonly changed: () => void) {
    const boxes = axes.map((axis) => this.axisFilter(axis)).filter((box): box is HTMLElement => box !== null);
    const limits = ["p90_tok_s_user", "ttft_p90_s"].filter((k) => table.has(k)).map((k) => this.limit(k));
    this.element = h("details", { class: "filters", open: innerWidth > 560 }, h("summary", {}, "Filters"), h("div", { class: "filter-grid" }, ...boxes, ...limits));
  }
  rows(): number[] {
    const active = this.tests.map((t) => t()).filter((t): t is (row: number) => boolean => t !== null);
    const rows: number[] = [];
    for (let row = 0; row < this.table.length; row++) if (active.every((test) => test(row))) rows.push(row);
    return rows;
  }
  private axisFilter(axis: string): HTMLElement | null {
    const column = this.table.column(axis);
    const distinct = [...new Set(column)].sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
    if (distinct.length < 2) return null;
    return distinct.length <= fewValues ? this.boxes(axis, column, distinct) : this.range(axis, column);
  }
  private boxes(axis: string, column: Cell[], distinct: Cell[]): HTMLElement {
    const name = `f.${axis}`;
    const off = () => new Set(this.state.get(name, "").split(".").filter(Boolean).map(Number));
    this.tests.push(() => {
      const hidden = new Set([...off()].map((i) => distinct[i]));
      return hidden.size ? (row) => !hidden.has(column[row]) : null;
    });
    const tick = (i: number) => (event: Event) => {
      const hidden = off();
      if ((event.target as HTMLInputElement).checked) hidden.delete(i); else hidden.add(i);
      this.state.set(name, [...hidden].sort((a, b) => a - b).join("."));
      this.changed();
    };
    const hidden = off();
    return h("fieldset", {}, h("legend", {}, axis), ...distinct.map((v, i) =>
      h("label", { class: "tick" }, h("input", { type: "checkbox", checked: !hidden.has(i), onchange: tick(i) }), String(v ?? "none"))));
  }
  private range(axis: string, column: Cell[]): HTMLElement {
    return this.between(axis, axis, (row) => column[row] as number | null);
  }
  private limit(key: string): HTMLElement {
    return this.between(key, `${metric(key).label} (${metric(key).unit})`, (row) => this.table.number(key, row));
  }
  private between(key: string, label: string, value: (row: number) => number | null): HTMLElement {
    const read = (end: string) => { const text = this.state.get(`${end}.${key}`, ""); return text === "" || !Number.isFinite(Number(text)) ? null : Number(text); };
    this.tests.push(() => {
      const low = read("min"), high = read("max");
      if (low === null && high === null) return null;
      return (row) => { const v = value(row); return v !== null && (low === null || v >= low) && (high === null || v <= high); };
    });
    const box = (end: string, text: string) => h("label", { class: "bound" }, text, h("input", { type: "number", step: "any", value: this.state.get(`${end}.${key}`, ""),
      oninput: (e) => { this.state.set(`${end}.${key}`, (e.target as HTMLInputElement).value); this.changed(); } }));
    return h("fieldset", {}, h("legend", {}, label), box("min", "at least "), box("max", "at most "));
  }
}
