// What TypeScript must accept.
import { Filter, plan, type FilterOptions, type Info, type Plan } from "tamis";
import init, { initSync } from "tamis/init";

const options: FilterOptions = { keys: 1000, rate: 0.01, secret: true };
const seen: Filter = new Filter(options);
const isNew: boolean = seen.add("key");
const there: boolean = seen.has(new Uint8Array(3), { at: new Date() });
const pairs = new Filter({ keys: 1000, rate: 0.01, values: 2 });
pairs.add(["a", 1n]);
const many: Uint8Array = seen.hasMany(["a", 1n, 2], { at: [new Date(), 5] });
seen.addMany(new Set(["a"]));
seen.addMany(BigUint64Array.of(1n));
const info: Info = seen.info();
const planned: Plan = plan({ kind: "ribbon", keys: 10, rate: 0.1 });
const list = Filter.build(["a"], { rate: 0.01, allow: ["b"], both: "block" });
const fetched: Promise<Filter> = Filter.fetch(new URL("https://example.org/"), { known: list, signal: AbortSignal.timeout(5) });
{
  using copied = seen.copy();
  copied.merge(seen.union(list));
}
await init();
initSync(new WebAssembly.Module(list.toBytes()));
console.log(isNew, there, many, info.latest, planned.bytes, fetched, seen.keys, seen.etag);
