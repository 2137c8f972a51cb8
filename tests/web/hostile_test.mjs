import assert from "node:assert/strict";
import { closeClean, file, makeStore, open, rackcast, select, tests } from "./support.mjs";

const script = "</script><script>window.hacked=1</script>", image = "<img src=x onerror=window.hacked=1>", turned = "\u202Eturned\u202C \u{1F600} \"quoted\" 'too' שלום";

async function harmless(page) {
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("#app img, #app script, #app svg, #app b:not(.gpu b)").count(), 0);
  await closeClean(page);
}

await tests({
  "a scenario's name is text": async () => {
    for (const [i, name] of [script, image, turned].entries()) {
      const out = file(`hostile-run-${i}`), html = file(`hostile-run-${i}.html`);
      rackcast("run", "scenarios/standard.yaml", "--out", out, "--time-series", "1", "--set", `name=${JSON.stringify(name)}`, "--set", "workload.kind=closed_loop", "--set", "workload.input=1K",
        "--set", "workload.output=64", "--set", "workload.concurrency=16", "--set", "workload.requests=200", "--set", "network=fluid");
      rackcast("report", out, "--out", html);
      const page = await open(html);
      assert.equal(await page.locator("h1").textContent(), name);
      assert.equal(await page.title(), `${name} - rackcast`);
      await harmless(page);
    }
  },

  "names of files, axes, values and reasons are text": async () => {
    const html = file("hostile.html");
    rackcast("report", makeStore(file("<img src=x onerror=window.hacked=1>.sqlite"), "hostile"), "--out", html);
    const page = await open(html);
    assert.equal(await page.locator("h1").textContent(), "<img src=x onerror=window.hacked=1>.sqlite");
    assert.ok((await page.locator("legend").allTextContents()).includes("<b>axis</b>"));
    const ticks = await page.locator("fieldset", { has: page.locator("legend", { hasText: "<b>axis</b>" }) }).locator("label").allTextContents();
    assert.ok(ticks.includes("<img src=x onerror=\"window.hacked=1\">"), ticks.join());
    await select(page, "Colour by").selectOption("<b>axis</b>");
    await page.locator("summary").evaluateAll((all) => all.forEach((s) => { s.parentElement.open = true; }));
    const buttons = page.locator(".front-list button");
    for (let i = 0; i < Math.min(4, await buttons.count()); ++i) await buttons.nth(i).click();
    assert.match(await page.locator("main").textContent(), /<svg onload/);
    const box = await page.locator("figure.chart canvas").first().boundingBox();
    for (let x = 0.1; x < 1; x += 0.04) for (let y = 0.1; y < 0.9; y += 0.08) await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).first().click()]);
    assert.ok(await download.path());
    await harmless(page);
  },
});
