// For service workers, extensions and edge workers, where a module may not wait while it is loaded, or gets
// its WebAssembly from elsewhere.
import { Filter, attach, hasSimd, imports, isAttached, plan, withoutSimd } from "./core.js";

let loading;

/// Loads the library, once. Without a source, from the files next to this one.
export default function init(source) {
  loading ??= load(source).catch((error) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

/// Loads the library from a module, or from its bytes, without waiting.
export function initSync(source) {
  if (isAttached()) return;
  const module = source instanceof WebAssembly.Module ? source : new WebAssembly.Module(source);
  attach(new WebAssembly.Instance(module, imports()).exports);
}

async function load(source) {
  if (isAttached()) return;
  const module = await compiled(await (source ?? build()));
  attach((await WebAssembly.instantiate(module, imports())).exports);
}

async function compiled(source) {
  if (source instanceof WebAssembly.Module) return source;
  return WebAssembly.compile(source instanceof Response ? await source.arrayBuffer() : source);
}

/// The build for this engine.
async function build() {
  const base = bytes(new URL("./tamis.wasm", import.meta.url));
  if (hasSimd()) return base;
  return withoutSimd(await base, await bytes(new URL("./without-simd.bin", import.meta.url)));
}

async function bytes(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`fetching ${address}: expected status 200, got ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

export { Filter, plan };
