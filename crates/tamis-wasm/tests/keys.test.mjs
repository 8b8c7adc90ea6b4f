import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Filter, build, plan, tests } from "./support.mjs";

const encoder = new TextEncoder();
const small = (options) => new Filter({ keys: 1000, rate: 1e-6, ...options });

test(`a text is its UTF-8, of any length, alone and with others (${build})`, () => {
  const texts = ["", "a", "abc", "pear", "12345678", "123456789", "é", "日本語", "😀", "a😀b", "\n", "\0", "\ud83d\ude00\n"];
  for (const length of [7, 8, 9, 16, 17, 47, 48, 49, 128, 129, 240, 241, 43_000, 43_690, 43_691, 131_072, 131_073, 1 << 20]) {
    texts.push("x".repeat(length), "é".repeat(length), `${"y".repeat(length - 1)}ü`);
  }
  for (const order of [texts, [...texts].reverse()]) {
    const [one, many, bytes] = [small(), small(), small()];
    const news = order.map((text) => one.add(text));
    assert.deepEqual([...many.addMany(order)].map(Boolean), news);
    bytes.addMany(order.map((text) => encoder.encode(text)));
    assert.deepEqual(many.toBytes(), one.toBytes());
    assert.deepEqual(bytes.toBytes(), one.toBytes());
    for (const text of order) assert.ok(one.has(text) && one.has(encoder.encode(text)), text.slice(0, 20));
    assert.ok(one.hasMany(order).every((yes) => yes === 1));
  }
});

test(`half of a surrogate pair is an error, alone, at the border of two keys and in long texts (${build})`, () => {
  const two = small({ values: 2 });
  for (const filter of [small(), small({ url: true }), small({ ignoreCase: true }), new Filter({ kind: "growing", keys: 10, rate: 0.01 })]) {
    for (const [key, code, index] of [["a\ud83d", "D83D", 1], ["\ude00b", "DE00", 0], ["\ude00\ud83d", "DE00", 0], ["http://h/😀\ud83d", "D83D", 11], [`${"é".repeat(100_000)}\ud83d`, "D83D", 100_000], [`${"x".repeat(200_000)}\udfff`, "DFFF", 200_000]]) {
      const told = { name: "TypeError", message: `key: expected text that has UTF-8, got the surrogate U+${code} in it, at index ${index}; encode it yourself, in a way that stays the same` };
      assert.throws(() => filter.has(key), told);
      assert.throws(() => filter.add(key), told);
      assert.throws(() => filter.hasMany([key]), told);
      assert.throws(() => filter.addMany(["sound", key, "é"]), told);
      assert.throws(() => two.add(["sound", key]), told);
      assert.throws(() => Filter.build(["sound", key], { rate: 0.01 }), told);
    }
    assert.throws(() => filter.addMany(["a\ud83d", "\ude00b"]), /the surrogate U\+D83D in it, at index 1/);
    assert.equal(filter.keys, 0);
    filter.addMany(["a😀b", "\ufffd", "?"]);
    assert.deepEqual([...filter.hasMany(["a😀b", "\ufffd", "?", "a"])], [1, 1, 1, 0]);
  }
  assert.equal(two.keys, 0);
});

test(`keys of all sorts in one list are those of single calls (${build})`, () => {
  const keys = ["text", 1n, new Uint8Array([1, 2, 3]), 7, "ünï", "x".repeat(200_000), new Uint8Array(200_000), -1, 2n ** 64n - 1n];
  const long = Array.from({ length: 20_000 }, (_, i) => (i % 7 === 0 ? BigInt(i) : i % 11 === 0 ? `é${i}` : i % 5 === 0 ? encoder.encode(`b${i}`) : `t${i}`));
  for (const list of [keys, long]) {
    const [one, many, iterated] = [0, 1, 2].map(() => new Filter({ keys: 20_000, rate: 1e-4 }));
    for (const key of list) one.add(key);
    many.addMany(list);
    iterated.addMany(new Set(list));
    assert.deepEqual(many.toBytes(), one.toBytes());
    assert.deepEqual(iterated.toBytes(), one.toBytes());
    assert.deepEqual(Array.from(many.hasMany(list.concat("other")), Boolean), [...list, "other"].map((key) => one.has(key)));
  }
});

test(`keys that lie one behind the other are those of single calls (${build})`, () => {
  const lengths = [0, 1, 8, 9, 17, 33, 129, 241, 131_071, 131_072, 131_073, 300_000, ...Array.from({ length: 9000 }, (_, i) => i % 40)];
  const ends = Uint32Array.from(lengths);
  for (let i = 1; i < ends.length; i++) ends[i] += ends[i - 1];
  const bytes = Uint8Array.from({ length: ends.at(-1) + 5 }, (_, i) => (i * i) >> 3);
  const list = lengths.map((length, i) => bytes.subarray(ends[i] - length, ends[i]));
  for (const options of [{}, { ignoreCase: true }, { url: true }]) {
    const [one, packed] = [0, 1].map(() => new Filter({ keys: 10_000, rate: 1e-4, ...options }));
    const news = list.map((key) => one.add(key));
    assert.deepEqual(Array.from(packed.addMany({ bytes, ends }), Boolean), news);
    assert.deepEqual(packed.toBytes(), one.toBytes());
    assert.ok(packed.hasMany({ bytes, ends }).every((yes) => yes === 1));
  }
  const filter = small();
  for (const wrong of [[5, 4], [bytes.length + 1], [2 ** 32 - 1]]) assert.throws(() => filter.addMany({ bytes, ends: Uint32Array.from(wrong) }), /^RangeError: keys: expected ends that ascend/);
  assert.equal(filter.keys, 0);
  assert.deepEqual(filter.hasMany({ bytes, ends: new Uint32Array(0) }), new Uint8Array(0));
});

test(`integers are their 8 little-endian bytes (${build})`, () => {
  const filter = small();
  filter.addMany(BigUint64Array.from([0n, 1n, 2n ** 64n - 1n]));
  filter.addMany(new BigInt64Array([-2n]));
  filter.add(300);
  for (const key of [0, 0n, 1, -1, -1n, 2n ** 64n - 1n, -2, 300n, new Uint8Array([44, 1, 0, 0, 0, 0, 0, 0])]) assert.equal(filter.has(key), true, String(key));
  assert.equal(filter.has("300"), false);
  // No rule changes them.
  const lower = small({ ignoreCase: true });
  lower.add(0x41n);
  assert.equal(lower.has(0x41n), true);
  assert.equal(lower.has(0x61n), false);
});

test(`what is no key is an error (${build})`, () => {
  const filter = small();
  for (const key of [undefined, null, true, 1.5, NaN, 2 ** 60, {}, new Map(), [1], [], ["a", null], ["a", "b"], Symbol.iterator, new Uint16Array(2), new Date()]) {
    assert.throws(() => filter.has(key), /^TypeError: key: expected /);
    assert.throws(() => filter.add(key), /^TypeError: key: expected /);
    assert.throws(() => filter.hasMany(["sound", key]), /^TypeError: key: expected /);
  }
  for (const key of [2n ** 64n, -(2n ** 63n) - 1n]) assert.throws(() => filter.has(key), /^RangeError: key: expected an integer from -2\^63 to 2\^64-1/);
  for (const keys of ["text", new Uint8Array(8), 5, null, undefined, {}]) assert.throws(() => filter.hasMany(keys), /^TypeError: keys: expected an array/);
  assert.equal(filter.keys, 0);
  assert.deepEqual(filter.hasMany([]), new Uint8Array(0));
});

test(`a key of several values is an array, each behind its length (${build})`, () => {
  const filter = small({ values: 2, ignoreCase: true });
  filter.add(["Ada", "2026"]);
  assert.equal(filter.has(["ADA", "2026"]), true);
  assert.equal(filter.has(["AD", "A2026"]), false);
  const joined = new Uint8Array(8 + 3 + 8 + 4);
  joined.set([3, 0, 0, 0, 0, 0, 0, 0, ...encoder.encode("ada"), 4, 0, 0, 0, 0, 0, 0, 0, ...encoder.encode("2026")]);
  assert.equal(filter.has(joined), true);
  for (const key of ["Ada", 7, 7n, ["Ada"], ["Ada", "2026", "x"], null]) assert.throws(() => filter.has(key), /expected an array of 2 values/);
  assert.throws(() => filter.hasMany(BigUint64Array.of(1n)), /expected an array of 2 values, of which the filter's keys are made, got one/);
  assert.equal(filter.info().values, 2);
  const [one, many] = [small({ values: 3 }), small({ values: 3 })];
  const keys = [["a", 1n, new Uint8Array(2)], ["a", "b", 3], ["x".repeat(200_000), "é", -1]];
  for (const key of keys) one.add(key);
  many.addMany(keys);
  assert.deepEqual(many.toBytes(), one.toBytes());
  assert.ok(many.hasMany(keys).every((yes) => yes === 1));
  // A filter that was not made so would never find what others have added as one value.
  assert.throws(() => small().add(["Ada", "2026"]), { name: "TypeError", message: /expected one value, .* got an array of 2; make the filter with `values`/ });
});

test(`case is ignored as in Rust (${build})`, () => {
  const filter = small({ ignoreCase: true });
  filter.addMany(["Straße", "ÉCLAIR", "İstanbul", new Uint8Array([0x41, 0xff])]);
  for (const key of ["STRAßE", "éclair", "İSTANBUL", new Uint8Array([0x61, 0xff])]) assert.equal(filter.has(key), true, String(key));
  assert.deepEqual(Filter.open(filter.toBytes()).info().ignoreCase, true);
});

test(`URLs are normalised as in Rust (${build})`, () => {
  const unescaped = (text) => text.replace(/\\(.)/g, (_, c) => ({ t: "\t", n: "\n", r: "\r" })[c] ?? c);
  const lines = readFileSync(new URL("urls.tsv", tests), "utf8").split("\n").filter(Boolean);
  const exact = small();
  const differ = [];
  for (const line of lines) {
    const tab = line.indexOf("\t");
    const [url, normal] = [unescaped(line.slice(0, tab)), line.slice(tab + 1)];
    const filter = small({ url: true });
    filter.add(url);
    // With the rule, a key is what it is in Rust; the same bytes without the rule must be the same filter's.
    exact.clear();
    exact.add(normal === "!" ? url : normal);
    if (Buffer.compare(filter.toBytes().subarray(128), exact.toBytes().subarray(128)) !== 0) differ.push(line);
    filter.dispose();
  }
  assert.deepEqual(differ, []);
});

test(`bytes in shared memory are keys as others (${build})`, () => {
  const shared = new Uint8Array(new SharedArrayBuffer(12));
  shared.set(encoder.encode("HTTP://H/a/."));
  for (const options of [{}, { url: true }, { ignoreCase: true }]) {
    const filter = small(options);
    filter.add("HTTP://H/a/.");
    assert.deepEqual([filter.has(shared), ...filter.hasMany([shared])], [true, 1]);
  }
});

test(`keyed filters need their secret (${build})`, () => {
  const secret = Uint8Array.from({ length: 16 }, (_, i) => i);
  const apart = small({ secret, secretInFile: false });
  apart.add("key");
  const file = apart.toBytes();
  assert.throws(() => Filter.open(file), /the filter is keyed and its secret key is not in the file/);
  assert.throws(() => Filter.open(file, { secret: new Uint8Array(16) }), /not the secret key/);
  assert.equal(Filter.open(file, { secret }).has("key"), true);
  const [a, b] = [small({ secret: true }), small({ secret: true })];
  assert.notDeepEqual(a.toBytes(), b.toBytes());
  a.add("key");
  assert.equal(Filter.open(a.toBytes()).has("key"), true);
  assert.equal(a.info().keyed, true);
});

test(`the rate is the promised one, of every kind (${build})`, () => {
  const [keys, probes] = [20_000, 200_000];
  const list = Array.from({ length: keys }, (_, i) => `in-${i}`);
  const others = Array.from({ length: probes }, (_, i) => `out-${i}`);
  for (const rate of [0.05, 0.003]) {
    for (const kind of ["blocked", "bloom", "counting", "cuckoo", "growing", "window", "fuse", "ribbon", "cascade"]) {
      const filter = ["fuse", "ribbon", "cascade"].includes(kind)
        ? Filter.build(list, { kind, rate, seed: 7 })
        : new Filter({ kind, rate, seed: 7, ...(kind === "window" ? { last: keys } : { keys }) });
      if (filter.keys === 0) filter.addMany(list);
      assert.ok(filter.hasMany(list).every((yes) => yes === 1), kind);
      const wrong = filter.hasMany(others).reduce((sum, yes) => sum + yes, 0);
      // Five standard deviations.
      assert.ok(wrong <= probes * rate + 5 * Math.sqrt(probes * rate), `${kind}: ${wrong / probes} for ${rate}`);
      assert.ok(filter.rateNow <= rate * 1.05, `${kind}: ${filter.rateNow}`);
    }
  }
});

test(`plans are those of Rust (${build})`, () => {
  const blocked = plan({ keys: 1_000_000, rate: 0.01 });
  assert.equal(blocked.kind, "blocked");
  assert.equal(blocked.bytes, new Filter({ keys: 1_000_000, rate: 0.01 }).bytes);
  assert.ok(blocked.bytes > 1.15e6 && blocked.bytes < 1.3e6, String(blocked.bytes));
  assert.ok(plan({ kind: "ribbon", keys: 1_000_000, rate: 0.01 }).bytes < 0.75 * blocked.bytes);
  assert.ok(plan({ keys: 1_000_000, bytes: 1_200_000 }).rate < 0.012);
  assert.ok(plan({ rate: 0.01, bytes: 1_200_000 }).keys > 900_000);
  assert.throws(() => plan({ keys: 10 }), /options: expected two of keys, rate and bytes, got "keys"/);
  assert.throws(() => plan({ keys: 10, rate: 2 }), /rate: expected .* got 2/);
  assert.throws(() => plan({ keys: 10, rate: 0.1, kind: "best" }), /kind: expected one of blocked, bloom/);
  assert.throws(() => plan({ keys: -1, rate: 0.1 }), /keys: expected a whole number/);
  assert.throws(() => plan({ keys: 1, rate: 0.1, sede: 1 }), /options: expected one of keys, rate/);
});
