// Makes the sample: npm install bloomfilter@1.1.0 && node make.mjs
import { writeFileSync } from "node:fs";
import { BloomFilter } from "bloomfilter";

const words = [...Array.from({ length: 500 }, (_, i) => `key${i}`), "", "é", "日本", "x".repeat(300), "🌾"];
const made = BloomFilter.withTargetError(1000, 0.01);
for (const word of words) made.add(word);
writeFileSync(new URL("n1000_p01.json", import.meta.url), JSON.stringify(made));
