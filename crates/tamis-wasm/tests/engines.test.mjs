// Other engines than Node.js. TAMIS_ENGINES has their commands, separated by commas: "deno run -A,bun run".
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import test from "node:test";

const script = fileURLToPath(new URL("engine.mjs", import.meta.url));
const engines = process.env.TAMIS_ENGINES.split(",").map((command) => command.trim().split(/\s+/));

for (const [program, ...words] of engines) {
  for (const build of ["simd", "scalar"]) {
    test(`${program} answers as Rust (${build})`, () => {
      const said = execFileSync(program, [...words, script], { encoding: "utf8", env: { ...process.env, TAMIS_BUILD: build } });
      assert.equal(said, "done\n");
    });
  }
}
