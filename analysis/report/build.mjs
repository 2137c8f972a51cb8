// Builds one self-contained page: script and style inlined, no external request. The stamp is a hash of the sources,
// which a test compares with the committed page, so that a stale page fails the build.
import { build } from "vite";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";

const root = path.dirname(fileURLToPath(import.meta.url));

export function sourceStamp() {
  const hash = createHash("sha256");
  const files = readdirSync(path.join(root, "src")).sort().map((name) => `src/${name}`);
  for (const name of [...files, "build.mjs", "package.json"])
    hash.update(name).update("\0").update(readFileSync(path.join(root, name))).update("\0");
  return hash.digest("hex");
}

const bundle = await build({
  root, logLevel: "warn", configFile: false, define: { "process.env.NODE_ENV": "\"production\"" },
  build: {
    write: false, minify: "esbuild", target: "es2020", cssCodeSplit: false,
    lib: { entry: path.join(root, "src/main.ts"), formats: ["iife"], name: "rackcastReport" },
  },
});
const output = (Array.isArray(bundle) ? bundle[0] : bundle).output;
const script = output.find((part) => part.type === "chunk").code;
const style = output.find((part) => part.fileName.endsWith(".css")).source;
const safe = script.replace(/<\/script/gi, "<\\/script").replace(/<!--/g, "<\\!--");
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="source-stamp" content="${sourceStamp()}">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<title>rackcast report</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<script type="application/json" id="report-data">{{REPORT_DATA}}</script>
<script>${safe}</script>
</body>
</html>
`;
mkdirSync(path.join(root, "dist"), { recursive: true });
writeFileSync(path.join(root, "dist/report.html"), page);
console.log(`dist/report.html ${(page.length / 1e6).toFixed(2)} MB`);
