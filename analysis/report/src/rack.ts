// The rack: every GPU in its tray, coloured by role, utilisation or expert load, with a time slider where the run kept a series.
import type { RackGpu, RunData } from "./data.ts";
import { h, select, table } from "./dom.ts";
import type { State } from "./state.ts";

export function rackView(run: RunData, state: State): { element: HTMLElement; draw: () => void } {
  const gpus = run.gpus ?? [];
  const engines = new Map((run.engines ?? []).map((e) => [e.name, e]));
  const modes = ["role", "utilisation", ...(gpus.some((g) => g.expert_load !== undefined) ? ["expert load"] : [])];
  const mode = () => (modes.includes(state.get("rack", "role")) ? state.get("rack", "role") : "role");
  const samples = run.times_s?.length ?? 0;
  const at = () => Math.min(Math.max(Number(state.get("t", "-1")), -1), samples - 1);
  const box = h("div", { class: "rack", role: "list", "aria-label": "GPUs by tray" });
  const clock = h("output", {}, "");
  const slider = samples ? h("input", { type: "range", min: -1, max: samples - 1, value: at(), "aria-label": "Time", oninput: (e) => { state.set("t", (e.target as HTMLInputElement).value, "-1"); draw(); } }) : null;
  const load = (gpu: RackGpu): number => {
    const series = engines.get(gpu.engine)?.series["utilisation"];
    return mode() === "expert load" ? (gpu.expert_load ?? 0) : at() >= 0 && series ? (series[at()] ?? 0) : gpu.utilisation;
  };
  function draw(): void {
    clock.textContent = at() < 0 ? "whole window" : `${run.times_s![at()]!.toFixed(0)} s`;
    const most = mode() === "expert load" ? Math.max(1e-9, ...gpus.map(load)) : 1;
    const trays = new Map<number, RackGpu[]>();
    for (const gpu of gpus) trays.set(gpu.node, [...(trays.get(gpu.node) ?? []), gpu]);
    box.replaceChildren(...[...trays].sort((a, b) => a[0] - b[0]).map(([node, members]) => h("div", { class: "tray", role: "listitem" },
      h("span", { class: "tray-name" }, `Tray ${node + 1}`), ...members.map((gpu) => {
        const value = load(gpu);
        const text = mode() === "role" ? gpu.role : mode() === "utilisation" ? `${(100 * value).toFixed(0)} %` : value.toFixed(2);
        const depth = Math.round(100 * Math.min(1, value / most));
        return h("div", { class: `gpu ${mode() === "role" ? `role-${gpu.role.replace(/[^a-z]/g, "")}` : "heat"}`, style: mode() === "role" ? "" : `--heat:${depth}%`,
          title: `GPU ${gpu.id}, ${gpu.engine}` }, h("b", {}, String(gpu.id)), h("span", {}, text));
      }))));
  }
  const numbers = table("GPUs", ["GPU", "Tray", "Role", "Engine", "Utilisation"], gpus.map((g) => [String(g.id), String(g.node + 1), g.role, g.engine, `${(100 * g.utilisation).toFixed(1)} %`]), [true, true, false, false, true]);
  const element = h("section", { class: "view" }, h("div", { class: "controls" }, select("Colour by", modes.map((m) => ({ value: m, text: m })), mode(), (v) => { state.set("rack", v, "role"); draw(); }),
    slider ? h("label", { class: "control wide" }, h("span", {}, "Time ", clock), slider) : null), box, h("details", {}, h("summary", {}, "Table of these numbers"), numbers));
  return { element, draw };
}
