// Makes reports with the real program and opens them in Chromium.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const require = createRequire(path.join(root, "analysis/report/package.json"));
const { chromium } = require("playwright-core");
const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const program = process.env.RACKCAST ?? path.join(root, "build/bin/rackcast");
const makeStoreProgram = process.env.MAKE_STORE ?? path.join(root, "build/tests/make_store");
export const folder = process.env.RACKCAST_WEB_FOLDER ?? "/tmp";
const shots = process.env.RACKCAST_SHOTS;

function call(file, args) {
  const done = spawnSync(file, args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 30 });
  assert.equal(done.status, 0, `${file} ${args.join(" ")}\n${done.stderr}`);
  return done.stdout;
}
export const rackcast = (...args) => call(program, args);
export const file = (name) => path.join(folder, name);
function once(name, make) {
  if (!existsSync(file(name))) make(file(name));
  return file(name);
}

const small = ["workload.kind=closed_loop", "workload.input=1K", "workload.output=64", "workload.requests=3000", "network=fluid"];

// A sweep of 16 deployments with bands; its rows as the program prints them, and the report of its store.
export function sweep() {
  const yaml = once("sweep.yaml", (to) => writeFileSync(to, `name: web\nbase: standard\nset: [${small.join(", ")}, uncertainty=3]\naxes:\n` +
    "  - {key: deployment.prefill.engines, values: [1, 2, 4, 8]}\n  - {key: workload.concurrency, values: [16, 64]}\n  - {key: deployment.router.policy, values: [prefix_affinity, round_robin]}\n"));
  const store = file("web sweep.sqlite");
  const rows = JSON.parse(rackcast("sweep", yaml, "--out", store, "--json")).results;
  const page = once("sweep.html", (to) => rackcast("report", store, "--out", to));
  return { store, rows, page };
}

// A run of the standard rack with its series, with uneven experts that are placed anew meanwhile; its result, and its report with a validation view.
export function run() {
  const out = file("run");
  once("run", (to) => rackcast("run", "scenarios/standard.yaml", "--out", to, "--time-series", "0.5", "--set", "workload.kind=closed_loop", "--set", "workload.concurrency=512",
    "--set", "workload.input=16K", "--set", "workload.output=256", "--set", "workload.duration=20 s", "--set", "network=fluid",
    "--set", "workload.experts.skew=zipf", "--set", "deployment.eplb.policy=periodic_async", "--set", "deployment.eplb.redundant_experts=32",
    "--set", "deployment.eplb.draft_redundant_experts=32", "--set", "deployment.eplb.window=200", "--set", "deployment.eplb.interval=1000"));
  const validation = once("validation.json", (to) => writeFileSync(to, rackcast("validate", "steps", "--json")));
  const page = once("run.html", (to) => rackcast("report", out, "--out", to, "--validation", validation));
  return { result: JSON.parse(readFileSync(path.join(out, "result.json"), "utf8")), page };
}

export function makeStore(to, what) {
  if (!existsSync(to)) call(makeStoreProgram, [sweep().store, to, String(what)]);
  return to;
}

const browser = await chromium.launch({ executablePath: process.env.RACKCAST_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
export async function open(html, { hash = "", width = 1440, scheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
  const page = await context.newPage();
  const url = pathToFileURL(html).href;
  page.complaints = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) page.complaints.push(`${m.type()}: ${m.text()}`); });
  page.on("pageerror", (e) => page.complaints.push(String(e)));
  page.on("dialog", (d) => { page.complaints.push(`dialog: ${d.message()}`); d.dismiss(); });
  page.on("request", (r) => { if (r.url() !== "about:blank" && r.url().split("#")[0] !== url && !r.url().startsWith("blob:")) page.complaints.push(`request: ${r.url()}`); });
  await page.goto("about:blank"); // so that starting the page's process is no part of what is timed
  page.processorStart = await processorSeconds();
  await page.goto(url + hash);
  await page.waitForSelector("html[data-ready=yes]", { state: "attached" });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return page;
}

// Processor seconds of the browser's page and drawing processes so far: what a time would be if nothing else ran.
const session = await browser.newBrowserCDPSession();
export async function processorSeconds() {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return processInfo.filter((p) => ["renderer", "GPU"].includes(p.type)).reduce((sum, p) => sum + p.cpuTime, 0);
}

// A select by its label. (The text of a label holds the options of its select, so getByLabel cannot be exact.)
export const select = (page, label) => page.locator("label.control", { has: page.locator("span", { hasText: new RegExp(`^${label}$`) }) }).locator("select");

// Nothing complained, no request was made, nothing is wider than the window; then the page is closed.
export async function closeClean(page) {
  assert.deepEqual(page.complaints, []);
  const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= window, `the page is ${wide} wide in a window of ${window}`);
  await page.context().close();
}

export async function accessible(page) {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => globalThis.axe.run({ preload: false }));
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).slice(0, 3).join(", ")} ${v.nodes[0].failureSummary}`), []);
}

// The rows of the table behind a chart, as text.
export async function tableBehind(page, title) {
  const figure = page.locator("figure.chart", { has: page.getByRole("heading", { name: title, exact: true }) });
  const summary = figure.locator("summary");
  if (!(await figure.locator("details").evaluate((d) => d.open))) await summary.click();
  await figure.locator("table").waitFor();
  return figure.locator("table").evaluate((t) => [...t.rows].map((r) => [...r.cells].map((c) => c.textContent)));
}

export const six = (value) => (value === null || value === undefined ? "n/a" : String(Number(Number(value).toPrecision(6))));

export async function shot(page, name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, `${name}.png`), fullPage: true });
}

// A file of tests: runs them in order, says which fail, exits with their number.
export async function tests(list) {
  let failed = 0;
  for (const [name, body] of Object.entries(list)) {
    const start = Date.now();
    try {
      await body();
      console.log(`ok   ${name} (${Date.now() - start} ms)`);
    } catch (error) {
      ++failed;
      console.log(`FAIL ${name}\n${error.stack ?? error}`);
    }
  }
  await browser.close();
  process.exit(failed ? 1 : 0);
}
