import assert from "node:assert/strict";
import test from "node:test";
import { differences, momentOf, opened } from "./alike.mjs";
import { Filter, build, golden, goldenJson } from "./support.mjs";

const secret = golden("secret.key");
const answers = goldenJson("answers.json");
const special = answers.special.map((hex) => Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16)));
const added = (count) => [...special, ...Array.from({ length: count }, (_, i) => `added-${i}`)].slice(0, count);
const open = (name) => opened(Filter, name, golden(name), secret);

test(`every golden file answers as in Rust (${build})`, () => {
  const alike = goldenJson("alike.json");
  assert.deepEqual(Object.keys(alike).sort(), Object.keys(answers.files).sort());
  assert.deepEqual(differences(Filter, alike, golden, secret), []);
});

test(`every golden file has its keys, and its false answers are Rust's (${build})`, () => {
  for (const [name, expected] of Object.entries(answers.files)) {
    if (expected.refused) assert.throws(() => Filter.open(golden(name)), /was open for writing when the machine went down/);
    const filter = open(name);
    assert.equal(filter.kind, expected.kind, name);
    const { keys, counted } = filter.info();
    assert.equal(counted ? keys : null, expected.keys, name);
    const at = momentOf(filter);
    assert.ok(filter.hasMany(added(expected.added), at).every((yes) => yes === 1), name);
    for (const key of added(expected.added)) assert.equal(filter.has(key, at), true, name);
    for (let i = 0; i < (expected.allowed ?? 0); i++) assert.equal(filter.has(`allowed-${i}`), false, name);
    const yes = Array.from({ length: answers.probes }, (_, i) => i).filter((i) => filter.has(`probe-${i}`, at));
    assert.deepEqual(yes, expected["false yes"], name);
  }
});

test(`what is opened is written byte for byte (${build})`, () => {
  for (const [name, { checked }] of Object.entries(answers.files)) {
    if (name.includes("unclean")) continue;
    const file = golden(name);
    const again = open(name).toBytes();
    // Those that were written in place have no checksum, and get one.
    if (checked) assert.deepEqual(again, file, name);
    else assert.deepEqual(Filter.open(again, { secret }).toBytes(), again, name);
  }
});

/// When the keys of the golden windows were seen: as in golden.rs.
const seconds = (i, count) => 946_684_680 + Math.floor((240 * i) / count) - (i % 5 === 4 ? 20 : 0);

test(`what is made again is what Rust has made (${build})`, () => {
  let made = 0;
  for (const [name, { kind, added: count, allowed, checked, keys }] of Object.entries(answers.files)) {
    // Written in place, or united from parts.
    if (!checked || keys === null) continue;
    const file = golden(name);
    const list = added(count);
    let again;
    if (["fuse", "ribbon", "cascade"].includes(kind)) {
      const { rate, keyed, apart, seed } = open(name).info();
      const options = { kind, rate, ...(keyed ? { secret, secretInFile: !apart } : { seed }) };
      if (allowed) options.allow = Array.from({ length: allowed }, (_, i) => `allowed-${i}`);
      again = Filter.build(list, options);
    } else {
      again = open(name);
      if (kind === "growing") {
        // As it was begun, with one layer.
        const { rate, keyed, seed } = again.info();
        again = new Filter({ kind, keys: 10, rate, ...(keyed ? { secret } : { seed }) });
      }
      again.clear();
      const at = again.info().within === undefined ? undefined : { at: list.map((_, i) => 1000 * seconds(i, count)) };
      again.addMany(list, at);
    }
    assert.deepEqual(again.toBytes(), file, name);
    made++;
  }
  assert.ok(made > 25, `${made} files`);
});
