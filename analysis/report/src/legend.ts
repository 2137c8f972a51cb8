// Colours by a column: a hue a value while there are at most eight, else five steps of a numeric range.
import type { Table } from "./data.ts";
import { number } from "./format.ts";

export interface Legend { entries: { text: string; colour: string }[]; of: (row: number) => string }

export function legend(table: Table, key: string, colours: string[]): Legend {
  const column = table.column(key);
  const distinct = [...new Set(column)].sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
  if (distinct.length <= colours.length || distinct.some((v) => typeof v !== "number")) {
    const shown = new Map(distinct.map((v, i) => [v, colours[Math.min(i, colours.length - 1)]!]));
    const entries = distinct.slice(0, colours.length).map((v) => ({ text: `${key}: ${v ?? "none"}`, colour: shown.get(v)! }));
    if (distinct.length > colours.length) entries[colours.length - 1]!.text = `${distinct.length - colours.length + 1} others`;
    return { entries, of: (row) => shown.get(column[row] ?? null) ?? colours[0]! };
  }
  const values = distinct as number[];
  const steps = 5;
  const edge = (i: number) => values[Math.min(values.length - 1, Math.floor((i * values.length) / steps))]!;
  const entries = Array.from({ length: steps }, (_, i) => ({ text: `${key}: from ${number(edge(i))}`, colour: colours[i]! }));
  const of = (row: number) => {
    let step = 0;
    for (let i = 1; i < steps; i++) if ((column[row] as number) >= edge(i)) step = i;
    return colours[step]!;
  };
  return { entries, of };
}
