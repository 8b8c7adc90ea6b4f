// What the npm package takes for a key, and what npm's `bloom-filters` takes, in nanoseconds: node bench/js/bench.mjs
//
// The package is in target/npm-package (crates/tamis-wasm/build), the peer in target/npm (npm install --prefix
// target/npm bloom-filters).
import { createRequire } from "node:module";

const root = new URL("../../", import.meta.url);
const { Filter } = await import(new URL("target/npm-package/node.js", root));
const { BloomFilter } = createRequire(new URL("target/npm/", root))("bloom-filters");

const KEYS = 1_000_000;
// Half of those that are asked are there. They are flat, as texts that were read are.
const strings = JSON.parse(JSON.stringify(Array.from({ length: 2 * KEYS }, (_, i) => `https://example.org/item/${i}`)));
const encoder = new TextEncoder();
const bytes = strings.map((key) => encoder.encode(key));
const buffers = strings.slice(0, 2 * KEYS).map((key) => Buffer.from(key));

/// The best of several times, of each key. A peer that takes thousands of nanoseconds is asked some of them.
function best(name, times, keys, run) {
  let best = Infinity;
  for (let time = 0; time < times; time++) {
    const begin = process.hrtime.bigint();
    run(keys);
    best = Math.min(best, Number(process.hrtime.bigint() - begin) / (keys.length ?? keys.ends.length));
  }
  console.log(`${name}\t${best.toFixed(1)}`);
}

const seen = new Filter({ keys: KEYS, rate: 0.01 });
seen.addMany(strings.slice(0, KEYS));

let yes = 0;
const each = (filter) => (keys) => {
  for (let i = 0; i < keys.length; i++) if (filter.has(keys[i])) yes++;
};
const many = (keys) => {
  yes += seen.hasMany(keys)[0];
};
best("has strings", 9, strings, each(seen));
best("has bytes", 9, bytes, each(seen));
best("hasMany strings", 9, strings, many);
best("hasMany bytes", 9, bytes, many);
const packed = { bytes: Buffer.from(strings.join("")), ends: Uint32Array.from(strings, ((end) => (key) => (end += key.length))(0)) };
best("hasMany packed", 9, packed, many);
best("hasMany integers", 9, BigUint64Array.from({ length: 2 * KEYS }, (_, i) => BigInt(i) * 0x9e3779b97f4a7c15n), many);

const some = (keys) => [...keys.slice(KEYS - 50_000, KEYS), ...keys.slice(KEYS, KEYS + 50_000)];
const peer = BloomFilter.create(KEYS, 0.01);
for (const key of strings.slice(KEYS - 100_000, KEYS)) peer.add(key);
best("bloom-filters has strings", 2, some(strings), each(peer));
best("bloom-filters has bytes", 2, some(buffers), each(peer));
if (yes === 0) throw new Error("expected some of the keys to be there");
