import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Filter, build, plan } from "./support.mjs";

const memory = () => process.memoryUsage();

test(`a million filters, freed, take the memory of one (${build})`, () => {
  const one = new Filter({ keys: 100, rate: 0.01 });
  const make = () => one.copy().dispose();
  for (let i = 0; i < 1000; i++) make();
  const before = memory().external;
  for (let i = 0; i < 1_000_000; i++) make();
  assert.ok(memory().external - before < 1 << 20);
});

test(`filters that nobody holds are freed (${build})`, async () => {
  assert.equal(typeof gc, "function", "run with --expose-gc");
  let most = 0;
  for (let turn = 0; turn < 60; turn++) {
    // Of 1.2 MB each; they would be 7 GB in the end, which WebAssembly does not have.
    for (let i = 0; i < 100; i++) new Filter({ keys: 1_000_000, rate: 0.01 });
    gc();
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, memory().external);
  }
  assert.ok(most < 2 ** 30, `${most} bytes`);
});

test(`use after the end is an error (${build})`, () => {
  const [filter, other] = [new Filter({ keys: 100, rate: 0.01 }), new Filter({ keys: 100, rate: 0.01 })];
  filter.add("key");
  filter.dispose();
  filter.dispose();
  const uses = [
    () => filter.has("key"), () => filter.add("key"), () => filter.hasMany(["key"]), () => filter.addMany(["key"]), () => filter.remove("key"),
    () => filter.count("key"), () => filter.toBytes(), () => filter.info(), () => filter.keys, () => filter.copy(), () => filter.clear(),
    () => filter.union(other), () => other.union(filter), () => other.merge(filter),
  ];
  for (const use of uses) assert.throws(use, /^Error: the filter has been freed/, use.toString());
  assert.equal(filter.kind, "blocked");
});

test(`using frees (${build})`, () => {
  const filter = new Filter({ keys: 100, rate: 0.01 });
  filter[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  assert.throws(() => filter.has("key"), /freed/);
});

test(`memory that is not there is an error, and nothing else is lost (${build})`, () => {
  const kept = new Filter({ keys: 1000, rate: 0.01 });
  kept.add("kept");
  const before = memory().external;
  for (let i = 0; i < 300; i++) {
    assert.throws(() => new Filter({ keys: 1e12, rate: 0.001 }), /out of memory: it needs \d+ bytes/);
    assert.throws(() => new Filter({ keys: 1e11, rate: 0.001, kind: "growing" }), /^Error: /);
  }
  assert.ok(memory().external - before < 1 << 20);
  assert.equal(kept.has("kept"), true);
  const grown = new Filter({ keys: 1000, rate: 0.01 });
  assert.equal(grown.add("key"), true);
});

test(`memory that grows meanwhile is no matter (${build})`, () => {
  const [filter, growing] = [new Filter({ keys: 1000, rate: 0.01 }), new Filter({ keys: 10, rate: 0.001, kind: "growing" })];
  filter.add("key");
  const hold = [];
  for (let i = 0; i < 20; i++) {
    hold.push(new Filter({ keys: 2_000_000, rate: 0.01 }));
    assert.equal(filter.has("key"), true);
    assert.equal(filter.hasMany(["key", "é"])[0], 1);
  }
  const keys = Array.from({ length: 300_000 }, (_, i) => `key-${i}`);
  for (const key of keys.slice(0, 50_000)) growing.add(key);
  growing.addMany(keys);
  assert.ok(growing.hasMany(keys).every((yes) => yes === 1));
  assert.ok(Filter.open(growing.toBytes()).hasMany(keys).every((yes) => yes === 1));
  for (const held of hold) held.dispose();
});

test(`what gives keys may use filters, and free them (${build})`, () => {
  const [filter, plain, other] = [new Filter({ keys: 20_000, rate: 1e-4 }), new Filter({ keys: 20_000, rate: 1e-4 }), new Filter({ keys: 100, rate: 0.01, url: true })];
  const pairs = new Filter({ keys: 100, rate: 0.01, values: 2 });
  const list = Array.from({ length: 10_000 }, (_, i) => (i % 3 === 0 ? BigInt(i) : i % 3 === 1 ? `key-${i}` : Uint8Array.of(i, i >> 8, 7)));
  plain.addMany(list);
  const meddle = (i) => {
    other.addMany([`http://h/${i}`, 5n]);
    pairs.add(["a", "b"]);
    other.has("http://h/0");
    filter.hasMany(["x", 1n]);
    plain.has("a text that is longer than others are");
  };
  filter.addMany(
    (function* () {
      for (const [i, key] of list.entries()) {
        if (i % 100 === 0) meddle(i);
        yield key;
      }
    })(),
  );
  assert.deepEqual(filter.toBytes(), plain.toBytes());
  // An array may run code as well.
  const odd = new Proxy(list, {
    get: (target, name) => {
      if (Number(name) % 100 === 0) meddle(0);
      return target[name];
    },
  });
  assert.ok(filter.hasMany(odd).every((yes) => yes === 1));
  const built = Filter.build(
    (function* () {
      for (const [i, key] of list.entries()) {
        if (i % 100 === 0) meddle(i);
        yield key;
      }
    })(),
    { rate: 0.01 },
  );
  assert.ok(built.hasMany(list).every((yes) => yes === 1));
  const freed = new Filter({ keys: 100, rate: 0.01 });
  const free = function* () {
    yield "a";
    freed.dispose();
    for (let i = 0; i < 600; i++) yield `b${i}`;
  };
  assert.throws(() => freed.addMany(free()), /the filter has been freed/);
});

test(`what a kind can't do is the error of Rust (${build})`, () => {
  const blocked = new Filter({ keys: 100, rate: 0.01 });
  assert.throws(() => blocked.remove("key"), { message: "blocked filters can't be removed from: their bits are shared by many keys; use a cuckoo or a counting filter" });
  assert.throws(() => blocked.count("key"), /can't be asked how often/);
  const fuse = Filter.build(["key"], { rate: 0.01 });
  assert.throws(() => fuse.add("another"), { message: "fuse filters can't be added to: build it again from all keys, or create a blocked filter" });
  assert.throws(() => fuse.addMany(["another"]), /fuse filters can't be added to/);
  assert.throws(() => fuse.clear(), /can't be cleared/);
  assert.throws(() => fuse.union(fuse.copy()), /can't be combined/);
  assert.throws(() => new Filter({ keys: 100, rate: 0.01, kind: "fuse" }), { message: 'kind: expected one that keys can be added to, got "fuse"; Filter.build makes it of all its keys' });
  assert.throws(() => blocked.merge(new Filter({ keys: 10_000, rate: 0.01 })), /the filters differ and can't be combined: lines is/);
  assert.throws(() => blocked.merge(new Filter({ keys: 100, rate: 0.01, seed: 1 })), /the seed is 0 in one and 1 in the other/);
  assert.throws(() => blocked.merge({}), /other: expected a Filter/);
  assert.throws(() => Filter.build(["a"], { rate: 0.01, kind: "blocked" }), /kind: expected one of fuse, ribbon, cascade/);
  assert.throws(() => Filter.build(["a"], { rate: 0.01, kind: "ribbon", allow: ["b"] }), /built with an allow list/);
  assert.throws(() => Filter.build(["a", 1.5], { rate: 0.01 }), /key: expected/);
  assert.throws(() => Filter.build(["a", "b"], { rate: 0.01, allow: ["b"] }), { message: "1 key is on both the block list and the allow list; say which list wins" });
  assert.equal(Filter.build(["a", "b"], { rate: 0.01, allow: ["b"], both: "allow" }).has("b"), false);
  assert.equal(Filter.build(["a", "b"], { rate: 0.01, allow: ["b"], both: "block" }).has("b"), true);
  assert.throws(() => Filter.open("text"), /file: expected a Uint8Array/);
});

test(`keys are removed and counted (${build})`, () => {
  for (const kind of ["counting", "cuckoo"]) {
    const filter = new Filter({ keys: 1000, rate: 0.001, kind });
    filter.addMany(["ada", "bob", "ada", 7n]);
    assert.equal(filter.count("ada"), 2, kind);
    assert.equal(filter.remove("ada"), true);
    assert.equal(filter.count("ada"), 1);
    assert.equal(filter.has("ada"), true);
    filter.remove("ada");
    assert.equal(filter.has("ada"), false);
    assert.equal(filter.has("bob") && filter.has(7), true);
  }
  const full = new Filter({ keys: 100, rate: 0.01, kind: "cuckoo" });
  assert.throws(() => full.addMany(Array.from({ length: 1000 }, (_, i) => i)), /the filter is full: \d+ entries/);
});

test(`a union has the keys of both, and its parts stay as they are (${build})`, () => {
  const [a, b] = [new Filter({ keys: 100, rate: 0.001 }), new Filter({ keys: 100, rate: 0.001 })];
  a.add("a");
  b.add("b");
  const both = a.union(b);
  assert.deepEqual([...both.hasMany(["a", "b", "c"])], [1, 1, 0]);
  assert.deepEqual([...a.hasMany(["a", "b"])], [1, 0]);
  a.merge(a);
  a.merge(b);
  assert.deepEqual([...a.hasMany(["a", "b"])], [1, 1]);
  assert.deepEqual(a.toBytes(), both.toBytes());
});

test(`a window answers to the events that every host knows (${build})`, () => {
  const lines = readFileSync(new URL("../../tamis/tests/golden/windows.tsv", import.meta.url), "utf8").trimEnd().split("\n");
  const windows = { within: {}, quiet: { quiet: true } };
  for (const [meaning, options] of Object.entries(windows)) windows[meaning] = new Filter({ keys: 1000, rate: 1e-9, within: 3_600_000, ...options });
  for (const line of lines) {
    const [meaning, what, key, at, answer] = line.split("\t");
    const answered = windows[meaning][what === "add" ? "add" : "has"](key, { at: Number(at) });
    assert.equal(answered, answer === "new" || answer === "yes", line);
  }
});

test(`a window forgets (${build})`, () => {
  const minute = 60_000;
  const filter = new Filter({ keys: 1000, rate: 0.001, within: 60 * minute, generations: 6 });
  assert.equal(filter.kind, "window");
  const noon = new Date("2026-11-17T12:00:00Z");
  assert.equal(filter.add("key", { at: noon }), true);
  assert.equal(filter.add("key", { at: noon.getTime() + minute }), false);
  assert.equal(filter.has("key", { at: noon.getTime() + 59 * minute }), true);
  assert.equal(filter.has("key", { at: noon.getTime() + 75 * minute }), false);
  const times = [0, 30, 90].map((minutes) => noon.getTime() + minutes * minute);
  assert.deepEqual([...filter.hasMany(["key", "key", "key"], { at: times })], [1, 1, 0]);
  assert.deepEqual([...filter.addMany(["a", "b", "c"], { at: Float64Array.from(times) })], [1, 1, 1]);
  assert.deepEqual(filter.info().latest, new Date(times[2]));
  assert.throws(() => filter.addMany(["a", "b"], { at: [noon] }), /at: expected a Date .* for each key/);
  assert.throws(() => filter.has("a", { at: "noon" }), /at: expected a Date/);
  assert.throws(() => filter.has("a", { when: noon }), /options: expected one of at/);
  assert.throws(() => new Filter({ keys: 10, rate: 0.1, kind: "window" }), /within \(milliseconds\) or last \(keys\)/);
  // Now.
  const recent = new Filter({ keys: 1000, rate: 0.001, within: 60 * minute });
  recent.add("now");
  assert.equal(recent.has("now"), true);
  assert.equal(recent.has("now", { at: Date.now() + 90 * minute }), false);
  assert.ok(Math.abs(recent.info().latest - Date.now()) < minute);
  const again = Filter.open(recent.toBytes());
  assert.equal(again.has("now"), true);
  assert.equal(again.info().within, 60 * minute);
  // By keys, time is no matter.
  const last = new Filter({ rate: 0.001, last: 100 });
  last.add("first");
  assert.equal(last.has("first"), true);
  last.addMany(Array.from({ length: 300 }, (_, i) => `key-${i}`));
  assert.equal(last.has("first"), false);
  assert.equal(plan({ keys: 1000, rate: 0.001, within: minute }).kind, "window");
});

test(`a window is as large as it says, and nothing else forgets (${build})`, () => {
  // For 100 keys it would answer "yes" to everyone.
  assert.throws(() => new Filter({ keys: 100, rate: 0.01, last: 10_000 }), { message: /options: expected rate for a window of the last keys, for which `last` says how many there are, got "keys, rate"/ });
  assert.throws(() => plan({ keys: 100, rate: 0.01, last: 10_000 }), /options: expected rate for a window of the last keys/);
  assert.throws(() => new Filter({ bytes: 1000, rate: 0.01, last: 10_000 }), /options: expected rate for a window of the last keys/);
  assert.throws(() => new Filter({ last: 10_000 }), /options: expected rate for a window of the last keys.* got "none"/);
  assert.throws(() => new Filter({ keys: 10, bytes: 1000, within: 1000 }), /options: expected keys and rate, got "keys, bytes"/);
  const last = new Filter({ rate: 0.01, last: 10_000 });
  assert.equal(last.capacity, 10_000);
  assert.equal(plan({ rate: 0.01, last: 10_000 }).bytes, last.bytes);
  last.addMany(Array.from({ length: 20_000 }, (_, i) => `key-${i}`));
  const wrong = last.hasMany(Array.from({ length: 20_000 }, (_, i) => `other-${i}`)).reduce((sum, yes) => sum + yes, 0);
  assert.ok(wrong < 300, `${wrong} of 20,000`);
  for (const given of [{ within: 1000, kind: "bloom" }, { last: 5, kind: "growing" }, { generations: 4 }, { quiet: true }, { quiet: false, kind: "counting" }]) {
    assert.throws(() => new Filter({ keys: 10, rate: 0.1, ...given }), /options: expected within \(milliseconds\) or last \(keys\) for a window, or none of/, JSON.stringify(given));
    assert.throws(() => plan({ keys: 10, rate: 0.1, ...given }), /options: expected within \(milliseconds\)/, JSON.stringify(given));
  }
});

test(`info tells what a filter is (${build})`, () => {
  const filter = new Filter({ keys: 1000, rate: 0.01, seed: 2n ** 64n - 1n, ignoreCase: true });
  filter.addMany(["a", "b"]);
  const info = filter.info();
  assert.deepEqual(
    { ...info, rateNow: 0, bytes: 0 },
    { kind: "blocked", keys: 2, counted: true, capacity: 1000, rate: 0.01, rateNow: 0, bytes: 0, hash: "xxh3-128", seed: 2n ** 64n - 1n, keyed: false, apart: false, ignoreCase: true, url: false, values: 1 },
  );
  assert.equal(filter.toBytes().length, filter.bytes + 128);
  assert.deepEqual([filter.keys, filter.rate, filter.capacity, filter.rateNow], [2, 0.01, 1000, info.rateNow]);
  assert.equal(filter.etag, null);
});
