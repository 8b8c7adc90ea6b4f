// What every language must answer to the golden files; also run in browsers, so that nothing of Node.js is here.

/// Keys as golden/README.md describes them.
export function keys() {
  const texts = [];
  for (const name of ["probe", "added"]) for (let i = 0; i < 5000; i++) texts.push(`${name}-${i}`);
  const bytes = [];
  for (let i = 0; i < 10_000; i++) bytes.push(Uint8Array.from({ length: i % 300 }, (_, j) => 31 * i + 7 * j));
  const integers = BigUint64Array.from({ length: 10_000 }, (_, i) => BigInt.asUintN(64, BigInt(i) * 0x9e3779b97f4a7c15n));
  return { texts, bytes, integers };
}

/// FNV-1a of one character a key, in hex.
export function digest(answers) {
  let hash = 0xcbf29ce484222325n;
  for (const answer of answers) hash = BigInt.asUintN(64, (hash ^ (answer ? 0x31n : 0x30n)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, "0");
}

/// The golden file, opened.
export function opened(Filter, name, file, secret) {
  const options = {};
  if (name.includes("apart")) options.secret = secret;
  if (name.includes("unclean")) options.acceptLoss = true;
  return Filter.open(file, options);
}

/// A window is asked about the latest moment that it knows.
export function momentOf(filter) {
  const { latest } = filter.info();
  return latest ? { at: latest } : undefined;
}

/// What differs from alike.json, as texts: nothing, if all is well. Each key is asked alone and with others.
export function differences(Filter, alike, file, secret) {
  const all = keys();
  const wrong = [];
  for (const [name, expected] of Object.entries(alike)) {
    const filter = opened(Filter, name, file(name), secret);
    const at = momentOf(filter);
    for (const [type, { yes, digest: sum }] of Object.entries(expected)) {
      const many = filter.hasMany(all[type], at);
      const single = Array.from(all[type], (key) => filter.has(key, at));
      for (const [way, answers] of [["many", many], ["single", single]]) {
        const count = answers.reduce((count, answer) => count + (answer ? 1 : 0), 0);
        if (count !== yes || digest(answers) !== sum) {
          wrong.push(`${name}, ${type}, ${way}: expected ${yes} yes and ${sum}, got ${count} and ${digest(answers)}`);
        }
      }
    }
    filter.dispose();
  }
  return wrong;
}
