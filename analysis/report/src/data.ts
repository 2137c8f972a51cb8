// What the program writes into the page, as one JSON object. Everything is optional but the head: the page shows what
// is there and says what is not.
export type Cell = number | string | null;

export interface Column {
  key: string; // dotted scenario key, or metric name
  role: "axis" | "scenario" | "metric";
  values?: Cell[];
  dict?: string[]; // strings are coded: values[i] = dict[codes[i]]
  codes?: number[];
  packed?: string; // base64 of little-endian 32-bit floats, NaN for none: a third less to read than digits
}

export interface SweepData {
  name: string;
  constants: Record<string, string>; // what is equal in every scenario
  columns: Column[];
  failed: { deployment: string; reason: string }[]; // the first ones
  failed_count?: number;
}

export interface PublishedPoint {
  label: string;
  citation: string;
  metrics: Record<string, number>;
}

export interface TokenPrice { cached_input: number; input: number; output: number } // USD per million tokens
export interface PriceChoice { list: string; model: string; period: string; price: TokenPrice; source: string }

export interface GpuPrice { name: string; usd_gpu_hour: number; source: string }

export interface TimePart { name: string; group: string; basis: string; time_s: number }
export interface EngineSeries {
  name: string;
  role: string;
  gpus: number[];
  utilisation: number; // share of the window that it computes
  series: Record<string, number[]>; // utilisation, running, waiting, kv_used, experts_moved..., by sample
  ranks?: Record<string, number[][]>; // running, kv_used, expert_load..., by rank, then sample
}
export interface LinkSeries { name: string; utilisation: number; busiest?: number; series?: number[] }
export interface Histogram { edges: number[]; counts: number[]; unit: string }
export interface SlowRequest { id: string; arrival_s: number; parts: { name: string; time_s: number }[] }
export interface RackGpu { id: number; node: number; role: string; engine: string; utilisation: number }

export interface RunData {
  metrics: Record<string, number | null>;
  manifest: Record<string, unknown>;
  decode_step?: TimePart[];
  prefill_token?: TimePart[];
  times_s?: number[];
  engines?: EngineSeries[];
  links?: LinkSeries[];
  cache?: Record<string, number[]>; // hit rate by tier over times_s
  histograms?: Record<string, Histogram>;
  slowest?: SlowRequest[];
  gpus?: RackGpu[];
  gpus_per_node?: number;
}

export interface ValidationItem {
  id: string; metric: string; published: number; predicted: number | null;
  lo: number | null; hi: number | null; fitted: boolean; refused: string | null; citation?: string;
}
export interface ValidationSuite {
  name: string; rows: number; predicted: number; coverage: number; inside_band: number | null;
  metrics: Record<string, { n: number; mean_abs_err: number; median_abs_err: number; bias: number }>;
  items: ValidationItem[];
}

export interface ReportData {
  schema: number;
  title: string;
  version: string;
  run?: RunData;
  sweep?: SweepData;
  validation?: { suites: ValidationSuite[] };
  published?: PublishedPoint[];
  prices?: PriceChoice[];
  gpu_prices?: GpuPrice[];
}

export function readData(): ReportData {
  const element = document.getElementById("report-data");
  const data = JSON.parse(element?.textContent ?? "null") as ReportData | null;
  if (!data || data.schema !== 1) throw new Error("this page holds no report data that it can read");
  return data;
}

function unpacked(text: string): Cell[] {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 4 }, (_, i) => {
    const value = view.getFloat32(4 * i, true);
    return Number.isNaN(value) ? null : Number(value.toPrecision(6));
  });
}

export class Table {
  readonly length: number;
  private readonly index = new Map<string, Column>();
  private readonly decoded = new Map<string, Cell[]>();
  constructor(readonly columns: Column[]) {
    for (const column of columns) this.index.set(column.key, column);
    const first = columns[0];
    this.length = first ? this.column(first.key).length : 0;
  }
  has(key: string): boolean { return this.index.has(key); }
  column(key: string): Cell[] {
    const ready = this.decoded.get(key);
    if (ready) return ready;
    const column = this.index.get(key);
    const values = !column ? [] : column.codes ? column.codes.map((c) => (c < 0 ? null : column.dict![c]!)) : column.packed !== undefined ? unpacked(column.packed) : column.values!;
    this.decoded.set(key, values);
    return values;
  }
  number(key: string, row: number): number | null {
    const value = this.column(key)[row];
    return typeof value === "number" ? value : null;
  }
  text(key: string, row: number): string {
    const value = this.column(key)[row];
    return value === null || value === undefined ? "" : String(value);
  }
  keys(role: Column["role"]): string[] { return this.columns.filter((c) => c.role === role).map((c) => c.key); }
}
