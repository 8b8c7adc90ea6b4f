// A call of the library that ends in the middle, by a trap: its memory may be half changed, so nothing calls it again.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import test from "node:test";
import { build, packagePath, wasmBytes } from "./support.mjs";

const require = createRequire(import.meta.url);
const module = new WebAssembly.Module(wasmBytes());

/// A library that no other test uses. Once armed, its function `name` runs `instead`; `after` counts the calls from then on.
function library(name, instead = ({ has }) => has(-16, 0, 0, 0)) {
  const path = join(packagePath, "core.cjs");
  delete require.cache[path];
  const { attach, imports, ...tamis } = require(path);
  const { exports } = new WebAssembly.Instance(module, imports());
  const state = { ...tamis, armed: false, after: 0, calls: 0 };
  const watched = { ...exports };
  for (const [each, call] of Object.entries(exports)) {
    if (typeof call !== "function") continue;
    watched[each] = (...words) => {
      if (state.calls > 0) state.after++;
      if (!state.armed || each !== name) return call(...words);
      state.calls++;
      return instead(exports);
    };
  }
  attach(watched);
  return state;
}

const stopped = (error) => {
  assert.match(String(error), /^Error: tamis stopped in the middle of a call \(.+, with \d+ of 4096 MB in use\)/);
  assert.doesNotMatch(error.message, /out of memory/);
  assert.ok(error.cause instanceof WebAssembly.RuntimeError);
  return true;
};

const size = { keys: 100, rate: 0.01 };
const response = (file) => ({ fetch: async () => new Response(file) });
// What is used, by the function of the library that traps.
const uses = {
  wish_size: ({ Filter }) => new Filter(size),
  create: ({ Filter }) => new Filter(size),
  facts: ({ Filter }) => new Filter(size),
  plan: ({ plan }) => plan(size),
  has: (_, filter) => filter.has("key"),
  add: (_, filter) => filter.add("key"),
  begin: (_, filter) => filter.hasMany(["key"]),
  hash_block: (_, filter) => filter.has(7),
  hash_separated: (_, filter) => filter.addMany(["é"]),
  hash_long: (_, filter) => filter.has("x".repeat(200_000)),
  has_batch: (_, filter) => filter.hasMany(["key"]),
  add_batch: (_, filter) => filter.addMany(BigUint64Array.of(1n)),
  remove_batch: (_, filter) => filter.remove("key"),
  count_batch: (_, filter) => filter.count("key"),
  unite: (_, filter, other) => filter.union(other),
  copy: (_, filter) => filter.copy(),
  clear: (_, filter) => filter.clear(),
  parts: (_, filter) => filter.toBytes(),
  info: (_, filter) => filter.keys,
  filter_free: (_, filter) => filter.dispose(),
  list: ({ Filter }) => Filter.build(["key"], { rate: 0.01 }),
  list_batch: ({ Filter }) => Filter.build(["key"], { rate: 0.01 }),
  list_build: ({ Filter }) => Filter.build(["key"], { rate: 0.01 }),
  draft: ({ Filter }, filter, other, file) => Filter.open(file),
  draft_finish: ({ Filter }, filter, other, file) => Filter.open(file),
  whole_length: ({ Filter }, filter, other, file) => Filter.fetch("http://h/", response(file)),
  draft_body: ({ Filter }, filter, other, file) => Filter.fetch("http://h/", response(file)),
};

for (const [name, use] of Object.entries(uses)) {
  test(`after a trap in ${name}, the library is not called again (${build})`, async () => {
    const tamis = library(name);
    const { Filter, plan } = tamis;
    const [filter, other] = [0, 1].map(() => new Filter({ ...size, kind: "counting" }));
    filter.add("key");
    const file = filter.toBytes();
    tamis.armed = true;
    await assert.rejects(async () => use(tamis, filter, other, file), stopped);
    assert.equal(tamis.calls, 1);
    for (const again of Object.values(uses)) {
      // That does nothing, so that blocks with `using` end.
      if (again === uses.filter_free) continue;
      await assert.rejects(async () => again(tamis, other, filter, file), stopped);
    }
    other.dispose();
    assert.deepEqual([tamis.calls, tamis.after], [1, 0]);
  });
}

test(`a call that the end of the stack cuts off is like a trap (${build})`, () => {
  const overflow = new RangeError("Maximum call stack size exceeded");
  const cut = library("add", ({ __stack_pointer }) => {
    __stack_pointer.value -= 16;
    throw overflow;
  });
  const filter = new cut.Filter(size);
  cut.armed = true;
  assert.throws(() => filter.add("key"), (error) => error.cause === overflow);
  assert.throws(() => filter.has("key"), /tamis stopped in the middle of a call/);
  // One that was not even begun has changed nothing.
  const refused = library("add", () => {
    throw overflow;
  });
  const sound = new refused.Filter(size);
  refused.armed = true;
  assert.throws(() => sound.add("key"), overflow);
  assert.equal(sound.has("key"), false);
});

test(`a trap of the caller's own WebAssembly is the caller's (${build})`, () => {
  const { Filter } = library();
  const filter = new Filter(size);
  const trap = new WebAssembly.RuntimeError("unreachable");
  const keys = function* () {
    yield "key";
    throw trap;
  };
  for (const use of [() => filter.addMany(keys()), () => filter.hasMany(keys()), () => Filter.build(keys(), { rate: 0.01 })]) assert.throws(use, trap);
  assert.equal(filter.add("key"), true);
});
