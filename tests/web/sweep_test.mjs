import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { accessible, closeClean, open, select, shot, six, sweep, tableBehind, tests } from "./support.mjs";

const { rows, page: report } = sweep();
const done = rows.filter((r) => r.status === "done");
const near = (a, b) => assert.ok(Math.abs(a - b) <= 2e-5 * Math.abs(b), `${a} is not ${b}`);
const axisOf = (r) => [r.deployment.prefill.engines, r.deployment.router.policy];
const columnOf = (table, name) => table[0].indexOf(name);

await tests({
  "the chart's table holds the store's values": async () => {
    const page = await open(report);
    const table = await tableBehind(page, "Scenarios");
    const engines = columnOf(table, "deployment.prefill.engines"), policy = columnOf(table, "deployment.router.policy"), lanes = columnOf(table, "workload.concurrency");
    const x = columnOf(table, "p90_tok_s_user"), y = columnOf(table, "total_tok_s_gpu");
    assert.ok(Math.min(engines, policy, lanes, x, y) >= 0, table[0].join());
    const shown = table.slice(1).map((r) => [r[engines], r[policy], r[x], r[y]].join()).sort();
    assert.deepEqual(shown, done.map((r) => [...axisOf(r), six(r.metrics.p90_tok_s_user), six(r.metrics.total_tok_s_gpu)].join()).sort());
    await closeClean(page);
  },

  "every metric can stand on an axis": async () => {
    const page = await open(report);
    const values = await select(page, "Up").evaluate((s) => [...s.options].map((o) => o.value));
    for (const key of values) {
      await select(page, "Up").selectOption(key);
      if (!(key in done[0].metrics)) continue;
      const table = await tableBehind(page, "Scenarios");
      const column = columnOf(table, key);
      assert.deepEqual(table.slice(1).map((r) => r[column]).sort(), done.map((r) => six(r.metrics[key])).sort(), key);
    }
    assert.ok(values.length > 30, values.join());
    await closeClean(page);
  },

  "filters hide what they say, and the fragment brings them back": async () => {
    const page = await open(report);
    const axis = page.locator("fieldset", { has: page.locator("legend", { hasText: "deployment.prefill.engines" }) });
    await axis.getByLabel("8", { exact: true }).uncheck();
    const left = done.filter((r) => r.deployment.prefill.engines !== 8);
    assert.match(await page.locator("[aria-live]").textContent(), new RegExp(`^${left.length} of ${done.length} scenarios`));
    const bound = left.map((r) => r.metrics.p90_tok_s_user).sort((a, b) => a - b)[3];
    await page.locator("fieldset", { has: page.locator("legend", { hasText: "P90 tokens/s per user" }) }).getByLabel("at least").fill(String(bound * 0.99999));
    const both = left.filter((r) => r.metrics.p90_tok_s_user >= bound);
    const says = new RegExp(`^${both.length} of ${done.length} scenarios`);
    assert.match(await page.locator("[aria-live]").textContent(), says);
    const again = await open(report, { hash: new URL(page.url()).hash });
    assert.match(await again.locator("[aria-live]").textContent(), says);
    await closeClean(again);
    await closeClean(page);
  },

  "up to four points stand side by side, with the store's values and their change": async () => {
    const page = await open(report);
    await page.getByText("The others", { exact: true }).click();
    const buttons = page.locator(".front-list button");
    await buttons.nth(done.length - 1).waitFor();  // the list is filled when it opens
    assert.equal(await buttons.count(), done.length);
    for (let i = 0; i < 5; ++i) await buttons.nth(i).click();
    const table = page.getByRole("region", { name: "Selected scenarios" });
    assert.deepEqual(await table.locator("thead th").allTextContents(), ["Setting or metric", "Point 1", "Point 2", "Point 3", "Point 4"]);
    assert.equal(await page.locator('.front-list button[aria-pressed="true"]').count(), 4);
    const names = await table.locator("tbody tr", { has: page.locator("th", { hasText: /^name$/ }) }).locator("td").allTextContents();
    const requests = await table.locator("tbody tr", { has: page.locator("th", { hasText: /^GPUs deployed$/ }) }).locator("td").allTextContents();
    names.forEach((name, i) => assert.equal(parseFloat(requests[i]), done.find((r) => r.name === name).metrics.gpus));
    await page.getByRole("button", { name: "Clear selection" }).click();
    assert.equal(await table.count(), 0);
    await closeClean(page);
  },

  "a click on a point picks it": async () => {
    const page = await open(report);
    const place = await page.locator("figure.chart canvas").first().evaluate((canvas) => {
      const colours = [1, 2, 3, 4].map((i) => getComputedStyle(document.documentElement).getPropertyValue(`--series-${i}`).trim().match(/[0-9a-f]{2}/g).map((v) => parseInt(v, 16)));
      const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const hit = (x, y) => { const i = 4 * (y * width + x); return data[i + 3] > 150 && colours.some((colour) => colour.every((c, k) => Math.abs(data[i + k] - c) < 12)); };
      for (let y = 6; y < height - 6; ++y) for (let x = 6; x < width - 6; ++x)
        if (hit(x, y) && hit(x - 3, y) && hit(x + 3, y) && hit(x, y - 3) && hit(x, y + 3)) return { x: (x * canvas.clientWidth) / width, y: (y * canvas.clientHeight) / height };
      return null;
    });
    assert.ok(place, "no point is drawn");
    await page.locator("figure.chart canvas").first().click({ position: place });
    assert.match(new URL(page.url()).hash, /pick=\d/);
    await closeClean(page);
  },

  "the price list and the GPU price are the reader's": async () => {
    const page = await open(report);
    await select(page, "Picture").selectOption({ label: "Revenue against speed" });
    const lists = await select(page, "Price list").evaluate((s) => [...s.options].map((o) => o.text));
    assert.ok(lists.length >= 3, lists.join());
    const data = JSON.parse(await page.locator("#report-data").textContent());
    for (let i = 0; i < data.prices.length; ++i) {
      await select(page, "Price list").selectOption(String(i));
      const table = await tableBehind(page, "Scenarios");
      const p = data.prices[i].price;
      const wanted = done.map((r) => 3.6e-3 * (r.metrics.cached_tok_s_gpu * p.cached_input + r.metrics.uncached_tok_s_gpu * p.input + r.metrics.output_tok_s_gpu * p.output)).sort((a, b) => a - b);
      table.slice(1).map((r) => Number(r[columnOf(table, "revenue_usd_gpu_hour")])).sort((a, b) => a - b).forEach((v, k) => near(v, wanted[k]));
    }
    await select(page, "Price list").selectOption("-1");
    let table = await tableBehind(page, "Scenarios");
    assert.deepEqual(table.slice(1).map((r) => r[columnOf(table, "revenue_usd_gpu_hour")]).sort(), done.map((r) => six(r.metrics.revenue_usd_gpu_hour)).sort());
    await select(page, "Picture").selectOption({ label: "Cost of tokens against speed" });
    const rental = data.gpu_prices.findIndex((p) => p.name === "rental");
    await select(page, "GPU price").selectOption(String(rental));
    table = await tableBehind(page, "Scenarios");
    const wanted = done.map((r) => data.gpu_prices[rental].usd_gpu_hour / (3.6e-3 * r.metrics.total_tok_s_gpu)).sort((a, b) => a - b);
    table.slice(1).map((r) => Number(r[columnOf(table, "cost_usd_per_mtok")])).sort((a, b) => a - b).forEach((v, k) => near(v, wanted[k]));
    await closeClean(page);
  },

  "published results are cited": async () => {
    const page = await open(report);
    await page.getByText(/^Published results of this model/).click();
    const data = JSON.parse(await page.locator("#report-data").textContent());
    assert.ok(data.published.length > 0);
    const cells = await page.getByRole("region", { name: "Published results" }).locator("tbody td:last-child").allTextContents();
    assert.deepEqual(cells, data.published.map((p) => p.citation));
    await closeClean(page);
  },

  "the CSV holds every row that is shown": async () => {
    const page = await open(report);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).click()]);
    const lines = readFileSync(await download.path(), "utf8").trimEnd().split("\r\n");
    assert.equal(lines.length, 1 + done.length);
    assert.match(lines[0], /p90_tok_s_user,total_tok_s_gpu/);
    await closeClean(page);
  },

  "dark mode changes the colours, is kept, and follows the system": async () => {
    const page = await open(report);
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.getByRole("button", { name: "Dark theme" }).click();
    assert.notEqual(await background(), light);
    const dark = await background();
    await page.reload();
    assert.equal(await background(), dark);
    const system = await open(report, { scheme: "dark" });
    assert.equal(await system.evaluate(() => getComputedStyle(document.body).backgroundColor), dark);
    await closeClean(system);
    await closeClean(page);
  },

  "the keyboard reaches everything": async () => {
    const page = await open(report);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "view");
    const seen = new Set();
    for (let i = 0; i < 80; ++i) {
      await page.keyboard.press("Tab");
      const [what, outlined] = await page.evaluate(() => { const e = document.activeElement; return [`${e.tagName} ${e.closest("label")?.textContent.slice(0, 12) ?? e.textContent.slice(0, 12)}`, getComputedStyle(e).outlineStyle !== "none"]; });
      if (!what.startsWith("BODY")) assert.ok(outlined, `${what} shows no focus`);
      seen.add(what.split(" ")[0]);
    }
    for (const tag of ["SELECT", "INPUT", "SUMMARY", "BUTTON"]) assert.ok(seen.has(tag), `${tag} is not reached: ${[...seen].join()}`);
    await page.locator(".front-list button").first().focus();
    await page.keyboard.press("Enter");
    assert.match(new URL(page.url()).hash, /pick=/);
    await closeClean(page);
  },

  "axe finds nothing to mend, at both widths and in both themes": async () => {
    for (const width of [1440, 390]) for (const scheme of ["light", "dark"]) {
      const page = await open(report, { width, scheme, hash: "#pick=0.3" });
      await page.locator("summary").evaluateAll((all) => all.forEach((s) => { s.parentElement.open = true; }));
      await page.waitForTimeout(100);
      await accessible(page);
      await shot(page, `sweep-${width}-${scheme}`);
      await closeClean(page);
    }
    const page = await open(report, { hash: "#pick=0.3" });
    await page.emulateMedia({ media: "print" });
    await shot(page, "sweep-print");
    await closeClean(page);
  },
});
