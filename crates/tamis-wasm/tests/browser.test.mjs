// The package and its example in Chromium.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import test, { after, before } from "node:test";
import { browser, serve } from "./chromium.mjs";
import { packagePath, tests } from "./support.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
// What examples/bad-domains/make has made.
const example = realpathSync(process.env.TAMIS_EXAMPLE ?? fileURLToPath(new URL("../../../target/bad-domains", import.meta.url)));
let [site, chromium] = [];
before(async () => {
  const extension = `${example}/extension`;
  site = await serve({ tamis: packagePath, tests: here, rust: fileURLToPath(tests), example: `${example}/site` });
  chromium = await browser(`--load-extension=${extension}`, "--disable-features=DisableLoadExtensionCommandLineSwitch");
});
after(async () => {
  await chromium?.end();
  site?.end();
});

// A page to be in; it has nothing.
const somewhere = () => chromium.open(`${site.address}/tests/empty.html`);

for (const build of ["simd", "scalar"]) {
  test(`golden files answer in a browser as in Rust (${build})`, async () => {
    await somewhere();
    const found = await chromium.run(
      `const [address, build] = values;
      const bytes = async (name) => new Uint8Array(await (await fetch(address + name)).arrayBuffer());
      const { withoutSimd, hasSimd } = await import(address + "/tamis/core.js");
      const { default: init } = await import(address + "/tamis/init.js");
      if (!hasSimd()) return ["this browser has no SIMD"];
      if (build === "simd") await init();
      else await init(withoutSimd(await bytes("/tamis/tamis.wasm"), await bytes("/tamis/without-simd.bin")));
      const { Filter } = await import(address + "/tamis/init.js");
      const { differences } = await import(address + "/tests/alike.mjs");
      const alike = await (await fetch(address + "/rust/golden/alike.json")).json();
      const files = {};
      for (const name of Object.keys(alike)) files[name] = await bytes("/rust/golden/" + name);
      return [Object.keys(alike).length, ...differences(Filter, alike, (name) => files[name], await bytes("/rust/golden/secret.key"))];`,
      site.address,
      build,
    );
    assert.ok(found[0] > 30, String(found[0]));
    assert.deepEqual(found.slice(1), []);
  });
}

test("a browser imports it and fetches a filter", async () => {
  await somewhere();
  const found = await chromium.run(
    `const { Filter, plan } = await import(values[0] + "/tamis/browser.js");
    const list = await Filter.fetch(values[0] + "/example/bad-domains.tamis");
    return [list.kind, list.keys, list.has("secure-mail-0.com.example"), list.has("example.org"), plan({ keys: 10, rate: 0.1 }).kind];`,
    site.address,
  );
  assert.deepEqual(found, ["fuse", 1_000_000, true, false, "blocked"]);
});

test("URLs are normalised in a browser as in Rust", async () => {
  await somewhere();
  const differ = await chromium.run(
    `const { Filter } = await import(values[0] + "/tamis/browser.js");
    const unescaped = (text) => text.replace(/\\\\(.)/g, (_, c) => ({ t: "\\t", n: "\\n", r: "\\r" })[c] ?? c);
    const lines = (await (await fetch(values[0] + "/rust/urls.tsv")).text()).split("\\n").filter(Boolean);
    return [lines.length, ...lines.filter((line) => {
      const tab = line.indexOf("\\t");
      const [url, normal] = [unescaped(line.slice(0, tab)), line.slice(tab + 1)];
      using filter = new Filter({ keys: 10, rate: 1e-9, url: true });
      using exact = new Filter({ keys: 10, rate: 1e-9 });
      filter.add(url);
      exact.add(normal === "!" ? url : normal);
      return filter.toBytes().subarray(128).join() !== exact.toBytes().subarray(128).join();
    })];`,
    site.address,
  );
  assert.ok(differ[0] > 500, String(differ[0]));
  assert.deepEqual(differ.slice(1), []);
});

test("the service worker of the example refuses bad domains", async () => {
  await chromium.open(`${site.address}/example/index.html`);
  const tried = (address) =>
    chromium.run(
      `const output = document.querySelector("output");
      const said = (test) => new Promise((resolve) => {
        const look = () => test(output.textContent) && resolve(output.textContent);
        new MutationObserver(look).observe(output, { childList: true, characterData: true, subtree: true });
        look();
      });
      await said((text) => !text.includes("loading"));
      output.textContent = "";
      document.querySelector("input").value = values[0];
      document.querySelector("form").requestSubmit();
      return said((text) => text !== "");`,
      address,
    );
  for (const host of ["secure-mail-0.com.example", "www.secure-mail-0.com.example", "login-secure-1.net.example"]) {
    assert.equal(await tried(`https://${host}/`), `${host} is on the list.`);
  }
  assert.match(await tried("http://127.0.0.1:1/"), /is not on the list, and can't be reached/);
});

test("the extension of the example asks its own list", async () => {
  const digits = createHash("sha256").update(`${example}/extension`).digest("hex").slice(0, 32);
  const id = digits.replace(/./g, (digit) => String.fromCharCode(97 + Number.parseInt(digit, 16)));
  await chromium.open(`chrome-extension://${id}/page.html`);
  const asked = (address) =>
    chromium.run(
      `const output = document.querySelector("output");
      output.textContent = "";
      const said = new Promise((resolve) => new MutationObserver(() => output.textContent && resolve(output.textContent)).observe(output, { childList: true }));
      document.querySelector("input").value = values[0];
      document.querySelector("form").requestSubmit();
      return said;`,
      address,
    );
  assert.match(await asked("https://www.login-secure-1.net.example/path"), /^On the list/);
  assert.equal(await asked("https://example.org/"), "Not on the list.");
});
