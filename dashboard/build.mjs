// Builds the dashboard into the package: `node build.mjs [OUT]`. The same sources give the same
// bytes, so that a test can compare what is committed with what they say.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../src/fila/edges/http/static"));
const LIBRARIES = ["preact", "uplot"];

const made = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.tsx"],
  outdir: "out",
  bundle: true,
  minify: true,
  write: false,
  format: "esm",
  target: ["es2022"],
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
});

rmSync(join(out, "assets"), { recursive: true, force: true });
mkdirSync(join(out, "assets"), { recursive: true });
const names = {};
for (const file of made.outputFiles) {
  const kind = file.path.endsWith(".css") ? "css" : "js";
  const digest = createHash("sha256").update(file.contents).digest("hex").slice(0, 10);
  names[kind] = `assets/app-${digest}.${kind}`;
  writeFileSync(join(out, names[kind]), file.contents);
}
const page = readFileSync(join(here, "src/index.html"), "utf8")
  .replace("{{css}}", "/" + names.css)
  .replace("{{js}}", "/" + names.js);
writeFileSync(join(out, "index.html"), page);
writeFileSync(join(out, "favicon.svg"), readFileSync(join(here, "src/favicon.svg")));
writeFileSync(join(out, "licences.txt"), licences());
writeFileSync(join(out, "sources.sha256"), sources() + "\n");

/** What the bundled libraries ask to be said. */
function licences() {
  return LIBRARIES.map((name) => {
    const at = join(here, "node_modules", name);
    const { version } = JSON.parse(readFileSync(join(at, "package.json"), "utf8"));
    return `${name} ${version}\n\n${readFileSync(join(at, "LICENSE"), "utf8").trim()}\n`;
  }).join("\n---\n\n");
}

/** A digest of all that was built, for a check that needs no Node (tests/dashboard/test_build.py). */
function sources() {
  const hash = createHash("sha256");
  const files = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"];
  files.push(...readdirSync(join(here, "src")).map((name) => `src/${name}`));
  for (const name of files.sort()) {
    const bytes = readFileSync(join(here, name));
    hash.update(`${name}\n${bytes.length}\n`).update(bytes);
  }
  return hash.digest("hex");
}
