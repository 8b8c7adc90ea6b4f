// Makes the samples of the kinds besides BloomFilter and CuckooFilter: npm install bloom-filters@3.0.4 && node make.js
"use strict";
const { writeFileSync } = require("node:fs");
const { join } = require("node:path");
const { CountingBloomFilter, PartitionedBloomFilter, ScalableBloomFilter, XorFilter } = require("bloom-filters");

const save = (name, made, keys) => {
  for (let i = 0; i < keys; i++) made.add(`key${i}`);
  writeFileSync(join(__dirname, `${name}.json`), JSON.stringify(made.saveAsJSON()));
};
const counting = CountingBloomFilter.create(200, 0.01);
// Added twice and removed once: there.
for (let i = 0; i < 10; i++) counting.add(`key${i}`);
save("counting_n200_p01_key0-99", counting, 100);
for (let i = 0; i < 10; i++) counting.remove(`key${i}`);
writeFileSync(join(__dirname, "counting_n200_p01_key0-99.json"), JSON.stringify(counting.saveAsJSON()));
save("partitioned_n1000_p01_key0-499", PartitionedBloomFilter.create(1000, 0.01), 500);
save("scalable_n100_p01_key0-499", new ScalableBloomFilter(100, 0.01), 500);
const keys = Array.from({ length: 500 }, (_, i) => `key${i}`).concat("", "é", "日本", "x".repeat(300), "🌾");
for (const bits of [8, 16]) {
  const name = join(__dirname, `xor${bits}.json`);
  writeFileSync(name, JSON.stringify(XorFilter.create(keys, bits).saveAsJSON()));
}
