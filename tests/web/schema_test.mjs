// What `rackcast schema NAME --json` prints is a JSON schema, and every shipped file is valid under it, as editors will say.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const require = createRequire(path.join(root, "analysis/report/package.json"));
const Ajv = require("ajv").default, yaml = require("yaml");
const program = process.env.RACKCAST ?? path.join(root, "build/bin/rackcast");

function validator(kind) {
  const done = spawnSync(program, ["schema", kind, "--json"], { cwd: root, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  return new Ajv({ allowUnionTypes: true, strictRequired: false }).compile(JSON.parse(done.stdout));  // strict: no unknown word, checked against draft-07
}

const folders = { gpu: "gpus", rack: "racks", model: "models", prices: "prices", suite: "suites", costs: "costs", scenario: ".", gallery: "gallery" };
const kindOf = (kind, file) => (kind in { scenario: 0, gallery: 0 } ? ("objective" in file ? "plan" : "axes" in file ? "sweep" : "scenario") : kind);
const validators = {}, wrong = [];
let files = 0;
for (const [kind, folder] of Object.entries(folders))
  for (const name of readdirSync(path.join(root, "scenarios", folder)).filter((n) => n.endsWith(".yaml"))) {
    const file = yaml.parse(readFileSync(path.join(root, "scenarios", folder, name), "utf8"), { version: "1.1", customTags: (tags) => tags.filter((t) => t.tag !== "tag:yaml.org,2002:timestamp") });
    const validate = (validators[kindOf(kind, file)] ??= validator(kindOf(kind, file)));
    if (!validate(file)) wrong.push(`${folder}/${name}: ${JSON.stringify(validate.errors.slice(0, 2))}`);
    ++files;
  }
assert.deepEqual(wrong, []);
assert.ok(files > 60, `${files} files`);
const scenario = validators.scenario;
assert.ok(!scenario({ name: "x", rack: "gb300-nvl72", model: "deepseek-v4.1-flash", wrokload: {} }), "an unknown key is wrong");
assert.ok(!scenario({ name: "x" }), "a scenario without rack, model and base is wrong");
assert.ok(scenario({ name: "x", base: "standard" }), "a base has the rest");
console.log(`1 passed, 0 failed: ${files} files under ${Object.keys(validators).length} schemas`);
