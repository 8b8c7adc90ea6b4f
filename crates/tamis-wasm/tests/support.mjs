// What the tests share: the package, in the build that TAMIS_BUILD names, and the golden files.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../../", import.meta.url);
const home = process.env.TAMIS_PACKAGE ? new URL(`file://${process.env.TAMIS_PACKAGE}/`) : new URL("target/npm-package/", root);
export const packagePath = fileURLToPath(home);
export const build = process.env.TAMIS_BUILD ?? "simd";

const core = await import(new URL("core.js", home));
const { initSync } = await import(new URL("init.js", home));
const read = (name) => new Uint8Array(readFileSync(new URL(name, home)));

/// The bytes of the build that is tested.
export function wasmBytes() {
  if (build === "simd") return read("tamis.wasm");
  if (build === "scalar") return core.withoutSimd(read("tamis.wasm"), read("without-simd.bin"));
  throw new Error(`TAMIS_BUILD: expected simd or scalar, got ${build}`);
}

const module = new WebAssembly.Module(wasmBytes());
initSync(module);
export const { Filter, plan } = core;

const goldenFolder = new URL("crates/tamis/tests/golden/", root);
export const golden = (name) => new Uint8Array(readFileSync(new URL(name, goldenFolder)));
export const goldenJson = (name) => JSON.parse(readFileSync(new URL(name, goldenFolder), "utf8"));
export const tests = new URL("crates/tamis/tests/", root);
