import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { Filter, build, golden, wasmBytes } from "./support.mjs";

// The corpus of the Rust tests: see golden/README.md.
const folder = process.env.TAMIS_CORRUPT_FILES;

test(`every corrupt file is refused (${build})`, () => {
  const names = readdirSync(folder).filter((name) => name.endsWith(".tamis"));
  assert.ok(names.length > 50, `${names.length} files`);
  const before = process.memoryUsage().arrayBuffers;
  for (const name of names) {
    const file = new Uint8Array(readFileSync(join(folder, name)));
    for (const options of [{}, { secret: golden("secret.key") }, { secret: new Uint8Array(16).fill(9) }]) {
      assert.throws(() => Filter.open(file, options), (error) => error.constructor === Error && error.message.length < 400, name);
    }
  }
  assert.ok(process.memoryUsage().arrayBuffers - before < 1 << 24, "nothing is allocated because a header says so");
});

test(`any byte of a sound file may be wrong (${build})`, () => {
  for (const name of ["blocked-two-lines", "cuckoo-3x7", "growing-layers", "fuse", "ribbon-bumped", "cascade", "window"]) {
    const file = golden(`${name}.tamis`);
    for (let i = 0; i < file.length; i += i < 200 ? 1 : 97) {
      const changed = file.slice();
      changed[i] ^= 0x41;
      // The count and the mark of a writer are not under the header's checksum, but the body's has the count.
      assert.throws(() => Filter.open(changed), Error, `${name}, byte ${i}`);
    }
    for (let length = 0; length < file.length; length += length < 200 ? 1 : 97) {
      assert.throws(() => Filter.open(file.subarray(0, length)), /not a valid Tamis filter/, `${name}, ${length} bytes`);
    }
  }
});

test(`after all that, the library works (${build})`, () => {
  assert.ok(WebAssembly.validate(wasmBytes()));
  const filter = new Filter({ keys: 100, rate: 0.01 });
  assert.equal(filter.add("key"), true);
  assert.equal(filter.has("key"), true);
});
