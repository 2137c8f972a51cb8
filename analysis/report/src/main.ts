// Boot: read the data, offer the views that it can fill, keep theme and view in the fragment.
import "./style.css";
import { dropAll, redrawAll } from "./chart.ts";
import { readData } from "./data.ts";
import { h } from "./dom.ts";
import { rackView } from "./rack.ts";
import { runView } from "./run.ts";
import { State } from "./state.ts";
import { sweepView } from "./sweep.ts";
import { validationView } from "./validation.ts";

interface View { key: string; name: string; make: () => { element: HTMLElement; draw: () => void } }

function start(): void {
  const app = document.getElementById("app")!;
  const data = readData();
  const state = new State();
  document.title = `${data.title} - rackcast`;
  const views: View[] = [];
  if (data.sweep) views.push({ key: "sweep", name: "Sweep", make: () => sweepView(data, state) });
  if (data.run) views.push({ key: "run", name: "Run", make: () => runView(data.run!) });
  if (data.run?.gpus?.length) views.push({ key: "rack", name: "Rack", make: () => rackView(data.run!, state) });
  if (data.validation) views.push({ key: "validation", name: "Validation", make: () => validationView(data.validation!.suites) });

  const place = h("main", { id: "view" });
  const tabs = views.map((v) => h("a", { href: "#", class: "tab", onclick: (e) => { e.preventDefault(); state.set("view", v.key, views[0]!.key); show(); } }, v.name));
  const theme = h("button", { type: "button", class: "small", onclick: () => { state.set("theme", dark() ? "light" : "dark"); applyTheme(); redrawAll(); } }, "Theme");
  const dark = () => { const t = state.get("theme", ""); return t ? t === "dark" : matchMedia("(prefers-color-scheme: dark)").matches; };
  const applyTheme = () => { document.documentElement.dataset["theme"] = dark() ? "dark" : "light"; theme.textContent = dark() ? "Light theme" : "Dark theme"; };
  function show(): void {
    const view = views.find((v) => v.key === state.get("view", views[0]?.key ?? "")) ?? views[0];
    if (!view) { place.replaceChildren(h("p", {}, "This report is empty.")); return; }
    tabs.forEach((tab, i) => { if (views[i] === view) tab.setAttribute("aria-current", "page"); else tab.removeAttribute("aria-current"); });
    dropAll();
    const made = view.make();
    place.replaceChildren(made.element);
    made.draw();
  }
  app.replaceChildren(h("a", { href: "#view", class: "skip", onclick: (e) => { e.preventDefault(); place.tabIndex = -1; place.focus(); } }, "Skip to content"),
    h("header", {}, h("div", {}, h("h1", { dir: "auto" }, data.title), h("p", { class: "about" }, `rackcast ${data.version}`)),
      h("nav", { "aria-label": "Views" }, ...tabs), theme), place);
  applyTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { applyTheme(); redrawAll(); });
  addEventListener("hashchange", () => { state.reload(); applyTheme(); show(); });
  show();
  document.documentElement.dataset["ready"] = "yes";
}

start();
