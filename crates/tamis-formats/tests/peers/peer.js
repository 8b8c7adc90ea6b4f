// npm's bloom-filters, asked by the tests: one JSON text in, one out.
//
//   {"make": [keys], "n": 1000, "p": 0.01, "seed": 1}    the filter's JSON
//   {"xor": [keys], "bits": 8}                            the JSON of an XOR filter of them
//   {"ask": [keys], "filter": its JSON}                   true or false for each key

const { BloomFilter, XorFilter } = require("bloom-filters");

const command = JSON.parse(require("fs").readFileSync(0, "utf8"));
if (command.make) {
  const filter = BloomFilter.create(command.n, command.p);
  filter.seed = command.seed;
  command.make.forEach((key) => filter.add(key));
  console.log(JSON.stringify(filter.saveAsJSON()));
} else if (command.xor) {
  console.log(JSON.stringify(XorFilter.create(command.xor, command.bits).saveAsJSON()));
} else {
  const filter = (command.filter.type === "XorFilter" ? XorFilter : BloomFilter).fromJSON(command.filter);
  console.log(JSON.stringify(command.ask.map((key) => filter.has(key))));
}
