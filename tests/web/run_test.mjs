import assert from "node:assert/strict";
import { accessible, closeClean, open, run, select, shot, six, tableBehind, tests } from "./support.mjs";

const { result, page: report } = run();
const near = (a, b, by) => assert.ok(Math.abs(a - b) <= by, `${a} is not ${b}`);

// Operators of one name and basis together, as the page shows them.
function added(parts) {
  const sums = new Map();
  for (const p of parts) {
    const key = [p.group, p.name, p.basis].join();
    sums.set(key, { ...p, time_s: (sums.get(key)?.time_s ?? 0) + p.time_s });
  }
  return [...sums.values()].filter((p) => p.time_s !== 0).map((p) => [p.name, p.basis, six(p.time_s)]);
}

await tests({
  "the run view holds the result's values": async () => {
    const page = await open(report);
    for (const [title, key] of [["Where a decode step spends its time", "decode_step"], ["Where a computed prompt token spends its time", "prefill_token"]]) {
      const table = await tableBehind(page, title);
      assert.deepEqual(table.slice(1).map((r) => [r[1], r[2], r[3]]), added(result.breakdown[key]));
    }
    const links = await tableBehind(page, "Busiest links");
    assert.deepEqual(links.slice(1).map((r) => [r[0], r[1]]), result.breakdown.links.map((l) => [l.name, six(l.utilisation)]));
    const shown = await page.locator(".card-value").first().textContent();
    near(parseFloat(shown) * (shown.includes("K") ? 1e3 : 1), result.metrics.total_tok_s_gpu, 0.006 * result.metrics.total_tok_s_gpu);
    await closeClean(page);
  },

  "what the engine recorded over time is there": async () => {
    const page = await open(report);
    for (const title of ["Engines at work", "Requests running", "Requests waiting", "KV memory in use", "Cache hits by tier", "Links over time"]) {
      const table = await tableBehind(page, title);
      assert.ok(table.length > 30, `${title}: ${table.length} rows`);
    }
    const running = await tableBehind(page, "Requests running");
    const last = running.at(-1), at = running[0].indexOf("decode-0");
    assert.ok(Number(last[at]) > 0 && Number(last[at]) <= 512, last.join());
    const load = await tableBehind(page, "Expert load by rank"), busiest = load[0].indexOf("decode-0, busiest rank");
    assert.deepEqual(load[0].slice(1), ["prefill-0 to prefill-7, busiest rank", "prefill-0 to prefill-7, idlest rank", "decode-0, busiest rank", "decode-0, idlest rank"]);
    for (const row of load.slice(1)) assert.ok(Number(row[busiest]) >= 1 && Number(row[busiest + 1]) <= 1, row.join());
    assert.ok(Number(load[1][busiest]) > 1.2 * Number(load.at(-1)[busiest]), "experts were placed in vain");
    const moves = await tableBehind(page, "Experts moved by EPLB"), moved = moves[0].indexOf("decode-0");
    assert.ok(moves.slice(1).reduce((n, r) => n + Number(r[moved]), 0) > 0);
    const slowest = await tableBehind(page, "The slowest requests");
    assert.deepEqual(slowest[0].slice(2), ["queue", "prompt", "hand-over", "answer"]);
    assert.ok(slowest.slice(1).every((r) => r.slice(2).every((v) => Number(v) >= 0)));
    await closeClean(page);
  },

  "the rack shows every GPU, and the slider its past": async () => {
    const page = await open(report, { hash: "#view=rack" });
    assert.equal(await page.locator(".gpu").count(), result.metrics.rack_gpus);
    const roles = await page.locator(".gpu span").allTextContents();
    for (const role of ["prefill", "decode"])
      assert.equal(roles.filter((r) => r === role).length, result.breakdown.engines.filter((e) => e.role === role).reduce((n, e) => n + e.gpus.length, 0));
    const modes = await select(page, "Colour by").evaluate((s) => [...s.options].map((o) => o.value));
    assert.deepEqual(modes, ["role", "utilisation", "kv_used", "running", "expert_load"]);
    await select(page, "Colour by").selectOption("utilisation");
    const whole = await page.locator(".gpu span").allTextContents();
    const decode = result.breakdown.engines.find((e) => e.name === "decode-0");
    assert.equal(whole[decode.gpus[0]], `${(100 * decode.utilisation).toFixed(0)} %`);
    await page.getByLabel("Time", { exact: true }).focus();
    await page.keyboard.press("ArrowRight");
    assert.match(new URL(page.url()).hash, /t=0/);
    assert.notDeepEqual(await page.locator(".gpu span").allTextContents(), whole);
    await closeClean(page);
  },

  "the validation view holds what validate printed": async () => {
    const page = await open(report, { hash: "#view=validation" });
    const data = JSON.parse(await page.locator("#report-data").textContent());
    const suite = data.validation.suites.find((s) => s.items.length);
    const name = Object.keys(suite.metrics)[0];
    const table = await tableBehind(page, `${suite.name}: ${name}`);
    assert.deepEqual(table.slice(1).map((r) => [r[0], r[1]]), suite.items.filter((i) => i.metric === name).map((i) => [i.id, six(i.published)]));
    await closeClean(page);
  },

  "axe finds nothing to mend in any view, at both widths and in both themes": async () => {
    for (const view of ["run", "rack", "validation"]) {
      for (const width of [1440, 390]) for (const scheme of ["light", "dark"]) {
        const page = await open(report, { width, scheme, hash: view === "rack" ? "#view=rack&rack=expert_load" : `#view=${view}` });
        await shot(page, `${view}-${width}-${scheme}`);
        if (width === 1440 && scheme === "light") await page.locator("summary").evaluateAll((all) => all.forEach((s) => { s.parentElement.open = true; }));
        await page.waitForTimeout(100);
        await accessible(page);
        await closeClean(page);
      }
      const page = await open(report, { hash: `#view=${view}` });
      await page.emulateMedia({ media: "print" });
      await shot(page, `${view}-print`);
      await closeClean(page);
    }
  },
});
