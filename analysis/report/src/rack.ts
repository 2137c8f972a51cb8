// The rack: every GPU in its tray, coloured by role, utilisation or a series of its rank (requests, KV memory, expert
// load), over the whole window or at the time that the slider says.
import type { EngineSeries, RackGpu, RunData } from "./data.ts";
import { csv, download, h, select, table } from "./dom.ts";
import { number } from "./format.ts";
import type { State } from "./state.ts";

const rankModes: Record<string, { text: string; share: boolean }> = {
  kv_used: { text: "KV memory in use", share: true },
  running: { text: "requests", share: false },
  expert_load: { text: "expert load", share: false },
};

export function rackView(run: RunData, state: State): { element: HTMLElement; draw: () => void } {
  const gpus = run.gpus ?? [];
  const engines = new Map((run.engines ?? []).map((e) => [e.name, e]));
  const recorded = Object.keys(rankModes).filter((k) => [...engines.values()].some((e) => e.ranks?.[k]));
  const modes = ["role", "utilisation", ...recorded];
  const mode = () => (modes.includes(state.get("rack", "role")) ? state.get("rack", "role") : "role");
  const samples = run.times_s?.length ?? 0;
  const at = () => Math.min(Math.max(Math.round(Number(state.get("t", "-1"))) || 0, -1), samples - 1);
  const box = h("div", { class: "rack", role: "list", "aria-label": "GPUs by tray" });
  const clock = h("output", {}, "");
  const caption = h("p", { class: "about" }, "");  // also on paper, where the controls are not
  const tableBox = h("div");
  const slider = samples ? h("input", { type: "range", min: -1, max: samples - 1, value: at(), "aria-label": "Time", oninput: (e) => { state.set("t", (e.target as HTMLInputElement).value, "-1"); draw(); } }) : null;

  const valueOf = (gpu: RackGpu, key: string): number => {
    const engine = engines.get(gpu.engine);
    if (key === "utilisation") return at() >= 0 && engine?.series["utilisation"] ? engine.series["utilisation"][at()]! : gpu.utilisation;
    const series = engine ? rankSeries(engine, gpu.id, key) : undefined;
    if (!series?.length) return 0;
    return at() >= 0 ? series[at()]! : series.reduce((a, b) => a + b, 0) / series.length;
  };
  const percent = (value: number) => `${value > 0 && value < 0.0995 ? Number((100 * value).toPrecision(2)) : (100 * value).toFixed(0)} %`;
  const textOf = (key: string, value: number) => (key === "utilisation" || rankModes[key]?.share ? percent(value) : number(value));
  const most = (key: string) => {
    if (key === "utilisation" || rankModes[key]?.share) return 1;
    let top = 1e-9; // of the whole run, so that colours mean the same at every time
    for (const e of engines.values()) for (const rank of e.ranks?.[key] ?? []) for (const v of rank) if (v > top) top = v;
    return top;
  };
  const head = ["GPU", "Tray", "Role", "Engine", "utilisation", ...recorded.map((k) => rankModes[k]!.text)];
  const rows = () => gpus.map((g) => [g.id, g.node + 1, g.role, g.engine, ...["utilisation", ...recorded].map((k) => valueOf(g, k))]);

  function draw(): void {
    clock.textContent = at() < 0 ? "whole window" : `${run.times_s![at()]!.toFixed(0)} s`;
    slider?.setAttribute("aria-valuetext", clock.textContent);
    caption.textContent = mode() === "role" ? "Every GPU in its tray, with its role." : `Every GPU in its tray: ${rankModes[mode()]?.text ?? mode()}, ${clock.textContent}.`;
    const top = mode() === "role" ? 1 : most(mode());
    const trays = new Map<number, RackGpu[]>();
    for (const gpu of gpus) trays.set(gpu.node, [...(trays.get(gpu.node) ?? []), gpu]);
    box.replaceChildren(...[...trays].sort((a, b) => a[0] - b[0]).map(([node, members]) => h("div", { class: "tray", role: "listitem" },
      h("span", { class: "tray-name" }, `Tray ${node + 1}`), ...members.map((gpu) => {
        const value = mode() === "role" ? 0 : valueOf(gpu, mode());
        const depth = Math.round(100 * Math.min(1, value / top));
        return h("div", { class: `gpu ${mode() === "role" ? `role-${gpu.role.replace(/[^a-z]/g, "")}` : "heat"}`, style: mode() === "role" ? "" : `--heat:${depth}%`,
          title: `GPU ${gpu.id}, ${gpu.engine}` }, h("b", {}, String(gpu.id)), h("span", {}, mode() === "role" ? gpu.role : textOf(mode(), value)));
      }))));
    if (details.open) fill();
  }
  const fill = () => tableBox.replaceChildren(table(`GPUs, ${clock.textContent}`, head, rows().map((r) => r.map((c, i) => (i < 4 ? String(c) : textOf(["utilisation", ...recorded][i - 4]!, c as number)))), head.map((_, i) => i < 2 || i > 3)));
  const details = h("details", { ontoggle: () => { if (details.open) fill(); } }, h("summary", {}, "Table of these numbers"), tableBox) as HTMLDetailsElement;
  const save = h("button", { type: "button", class: "small", onclick: () => download("rack.csv", csv(head, rows())) }, "Download CSV");
  const element = h("section", { class: "view" }, h("div", { class: "controls" },
    select("Colour by", modes.map((m) => ({ value: m, text: rankModes[m]?.text ?? m })), mode(), (v) => { state.set("rack", v, "role"); draw(); }),
    slider ? h("label", { class: "control wide" }, h("span", {}, "Time: ", clock), slider) : null),
    samples ? null : h("p", { class: "about" }, "Record a time line (run --time-line) to see the rack over time."),
    caption, box, h("div", { class: "chart-foot" }, details, save));
  return { element, draw };
}

// The rank that a GPU belongs to: its own, or the one that all GPUs of a tensor-parallel engine share.
function rankSeries(engine: EngineSeries, gpu: number, key: string): number[] | undefined {
  const ranks = engine.ranks?.[key];
  if (!ranks) return undefined;
  return ranks.length === 1 ? ranks[0] : ranks[engine.gpus.indexOf(gpu)];
}
