// The package as its users get it: packed, installed, imported in each way.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import test, { after } from "node:test";
import vm from "node:vm";
import { packagePath } from "./support.mjs";

const root = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");

const folder = mkdtempSync(join(tmpdir(), "tamis-npm-"));
after(() => rmSync(folder, { recursive: true }));
const npm = (...words) => execFileSync("npm", words, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const node = (file, ...words) => execFileSync(process.execPath, [...words, file], { cwd: folder, encoding: "utf8" });

const [packed] = JSON.parse(npm("pack", packagePath, "--json"));
writeFileSync(join(folder, "package.json"), '{ "name": "user", "private": true }');
npm("install", "--offline", "--no-audit", "--no-fund", "--no-package-lock", join(folder, packed.filename));

test("it is small", () => {
  const { size } = statSync(join(folder, packed.filename));
  assert.ok(size <= 250_000, `${size} bytes`);
});

test("nothing of the machine that made it is in it", () => {
  for (const name of readdirSync(packagePath)) {
    const text = readFileSync(join(packagePath, name), "latin1");
    for (const path of [homedir(), root]) assert.ok(!text.includes(`${path}/`), name);
  }
});

const use = `
const seen = new Filter({ keys: 1000, rate: 0.01 });
seen.add("key");
console.log(seen.has("key"), Filter.open(seen.toBytes()).has("key"), plan({ keys: 1000, rate: 0.01 }).kind);
`;

test("import and require, of one library", () => {
  writeFileSync(join(folder, "a.mjs"), `import { Filter, plan } from "tamis";\n${use}`);
  writeFileSync(join(folder, "a.cjs"), `const { Filter, plan } = require("tamis");\n${use}`);
  writeFileSync(join(folder, "i.mjs"), `import init, { Filter, plan } from "tamis/init";\nawait init();\n${use}`);
  for (const name of ["a.mjs", "a.cjs", "i.mjs"]) assert.equal(node(name), "true true blocked\n", name);
  writeFileSync(join(folder, "both.mjs"), `import { createRequire } from "node:module";
    import { Filter } from "tamis";
    import { Filter as third } from "tamis/init";
    console.log(createRequire(import.meta.url)("tamis").Filter === Filter, third === Filter);`);
  assert.equal(node("both.mjs"), "true true\n");
});

test("before it is loaded, it says so", () => {
  writeFileSync(join(folder, "early.mjs"), `import { Filter } from "./node_modules/tamis/init.js";
    try { new Filter({ keys: 1, rate: 0.1 }); } catch (error) { console.log(error.message); }`);
  assert.match(node("early.mjs"), /^tamis is not loaded: expected `await init\(\)`/);
});

test("a worker that has nothing but a module", async () => {
  // No files, no fetch, no timers, no process; eval and compiling are forbidden, as at the edge.
  const context = vm.createContext(
    { WebAssembly: { Module: WebAssembly.Module, Instance: WebAssembly.Instance, RuntimeError: WebAssembly.RuntimeError, validate: WebAssembly.validate }, TextEncoder, TextDecoder, URL, crypto, console },
    { codeGeneration: { strings: false, wasm: false } },
  );
  const compiled = new WebAssembly.Module(readFileSync(join(packagePath, "tamis.wasm")));
  const modules = new Map();
  const link = (name, from) => {
    const path = join(packagePath, name);
    if (!modules.has(path)) {
      const module = name.endsWith(".wasm")
        ? new vm.SyntheticModule(["default"], function () { this.setExport("default", compiled); }, { context })
        : new vm.SourceTextModule(readFileSync(path, "utf8"), { context, identifier: path, initializeImportMeta: (meta) => { meta.url = `file://${path}`; } });
      modules.set(path, module);
    }
    return modules.get(path);
  };
  const { exports } = JSON.parse(readFileSync(join(packagePath, "package.json"), "utf8"));
  const worker = link(exports["."].workerd.default);
  await worker.link(link);
  await worker.evaluate();
  const { Filter } = worker.namespace;
  const seen = new Filter({ keys: 1000, rate: 0.01, secret: true });
  seen.addMany(["a", "b", "longer than eight"]);
  assert.deepEqual([...seen.hasMany(["a", "b", "c", "longer than eight"])], [1, 1, 0, 1]);
});

test("a bundle of CommonJS, or one script, loads it by tamis/init", { skip: process.env.TAMIS_ESBUILD === undefined && "TAMIS_ESBUILD names no esbuild" }, () => {
  const bundle = (name, format) => execFileSync(process.env.TAMIS_ESBUILD, [join(folder, name), "--bundle", `--format=${format}`, "--platform=browser", `--outfile=${join(folder, `bundle.${format}.cjs`)}`], { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  writeFileSync(join(folder, "waits.cjs"), 'const { Filter } = require("tamis");\nconsole.log(Filter);');
  writeFileSync(join(folder, "loads.cjs"), `const { default: init, Filter } = require("tamis/init");
    init(globalThis.wasm).then(() => console.log(new Filter({ keys: 10, rate: 0.1 }).add("key")));`);
  writeFileSync(join(folder, "wasm.cjs"), `globalThis.wasm = require("node:fs").readFileSync(${JSON.stringify(join(packagePath, "tamis.wasm"))});`);
  for (const format of ["cjs", "iife"]) {
    // As docs/javascript.md quotes it.
    assert.throws(() => bundle("waits.cjs", format), (error) => error.stderr.includes(`Top-level await is currently not supported with the "${format}" output format`));
    bundle("loads.cjs", format);
    assert.equal(node(`bundle.${format}.cjs`, "--require", join(folder, "wasm.cjs")), "true\n", format);
  }
});

test("the types are those of the library", { skip: process.env.TAMIS_TSC === undefined && "TAMIS_TSC names no tsc" }, () => {
  writeFileSync(join(folder, "sound.mts"), readFileSync(new URL("types.mts", import.meta.url)));
  writeFileSync(join(folder, "sound.cts"), 'import tamis = require("tamis");\nconst seen: tamis.Filter = new tamis.Filter({ keys: 1, rate: 0.1 });\nseen.has("key");\n');
  const compile = (...files) => execFileSync(process.env.TAMIS_TSC, ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,esnext.disposable,dom", "--module", "nodenext", ...files], { cwd: folder, encoding: "utf8" });
  compile("sound.mts", "sound.cts");
  const wrong = ["new Filter({ keys: '1', rate: 0.1 })", "seen.has({})", "seen.has(true)", "seen.add('a', { at: 'noon' })", "new Filter({ kind: 'fuse', keys: 1, rate: 0.1 })", "seen.etag = ''"];
  for (const [i, line] of wrong.entries()) {
    writeFileSync(join(folder, `wrong${i}.mts`), `import { Filter } from "tamis";\ndeclare const seen: Filter;\n${line};\n`);
    assert.throws(() => compile(`wrong${i}.mts`), (error) => /error TS/.test(error.stdout), line);
  }
  // What the types name is there.
  const declared = [...readFileSync(join(packagePath, "index.d.ts"), "utf8").split("export class Filter")[1].matchAll(/^ {2}(?:static |readonly )?(\w+)[(:]/gm)].map(([, name]) => name).filter((name) => name !== "constructor");
  writeFileSync(join(folder, "names.mjs"), `import { Filter } from "tamis"; const seen = new Filter({ keys: 1, rate: 0.1 });
    console.log(${JSON.stringify(declared)}.filter((name) => !(name in seen) && !(name in Filter)).join());`);
  assert.ok(declared.length > 20);
  assert.equal(node("names.mjs"), "\n");
});
