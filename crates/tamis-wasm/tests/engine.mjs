// Golden files and URLs in whatever engine runs this; prints what differs, and "done".
import { readFileSync } from "node:fs";
import { differences } from "./alike.mjs";
import { Filter, golden, goldenJson, tests } from "./support.mjs";

for (const line of differences(Filter, goldenJson("alike.json"), golden, golden("secret.key"))) console.log(line);

const unescaped = (text) => text.replace(/\\(.)/g, (_, c) => ({ t: "\t", n: "\n", r: "\r" })[c] ?? c);
for (const line of readFileSync(new URL("urls.tsv", tests), "utf8").split("\n").filter(Boolean)) {
  const tab = line.indexOf("\t");
  const [url, normal] = [unescaped(line.slice(0, tab)), line.slice(tab + 1)];
  const [filter, exact] = [new Filter({ keys: 10, rate: 1e-9, url: true }), new Filter({ keys: 10, rate: 1e-9 })];
  filter.add(url);
  exact.add(normal === "!" ? url : normal);
  if (filter.toBytes().subarray(128).join() !== exact.toBytes().subarray(128).join()) console.log(line);
}
console.log("done");
