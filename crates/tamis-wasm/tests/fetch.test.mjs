import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import test, { after, before } from "node:test";
import { gzipSync } from "node:zlib";
import { Filter, build, golden, packagePath } from "./support.mjs";

const large = new Filter({ keys: 500_000, rate: 0.001, seed: 3 });
large.addMany(Array.from({ length: 100_000 }, (_, i) => `key-${i}`));
const file = large.toBytes();

/// A header that says there are 60 MB behind it; made elsewhere, so that its memory is not there to be used again.
const made = `import { Filter } from ${JSON.stringify(new URL("node.js", `file://${packagePath}`))};
  process.stdout.write(new Filter({ keys: 50_000_000, rate: 0.01 }).toBytes().subarray(0, 128));`;
const claim = execFileSync(process.execPath, ["--input-type=module", "-e", made]);

// What a request sees: what was asked of the server, and how it answers.
const asked = [];
const answers = {
  "/whole": (request, response) => {
    response.setHeader("ETag", '"1"');
    if (request.headers["if-none-match"] === '"1"') response.writeHead(304).end();
    else response.writeHead(200, { "Content-Length": file.length }).end(file);
  },
  "/changed": (request, response) => response.writeHead(200, { ETag: '"2"' }).end(file),
  // Pieces of one byte around the end of the header, and of others.
  "/chunked": async (request, response) => {
    for (let at = 0; at < file.length; ) {
      const piece = file.subarray(at, at + (at < 200 ? 1 : 60_001));
      if (!response.write(piece)) await new Promise((resolve) => response.once("drain", resolve));
      at += piece.length;
    }
    response.end();
  },
  "/gzip": (request, response) => response.writeHead(200, { "Content-Encoding": "gzip" }).end(gzipSync(file)),
  "/missing": (request, response) => response.writeHead(404, "Not Found").end("no such file"),
  "/page": (request, response) => response.writeHead(200, { "Content-Type": "text/html" }).end(`<!doctype html>${" ".repeat(1 << 20)}`),
  "/short": (request, response) => response.end(file.subarray(0, 100)),
  "/empty": (request, response) => response.end(),
  "/truncated": (request, response) => response.end(file.subarray(0, 300_000)),
  "/cut": (request, response) => {
    response.writeHead(200, { "Content-Length": file.length });
    response.write(file.subarray(0, 300_000), () => response.destroy());
  },
  "/surplus": (request, response) => response.end(Buffer.concat([file, Buffer.alloc(1000)])),
  "/endless": (request, response) => {
    const more = () => response.destroyed || response.write(Buffer.alloc(1 << 16), more);
    response.write(file, more);
  },
  "/wrong": (request, response) => {
    const wrong = file.slice();
    wrong[300_000] ^= 1;
    response.end(wrong);
  },
  "/claim": (request, response) => response.end(Buffer.concat([claim, Buffer.alloc(100_000)])),
  "/growing": (request, response) => response.end(Buffer.concat([golden("growing-layers.tamis"), Buffer.alloc(5000)])),
  "/never": (request, response) => {
    response.writeHead(200, { "Content-Length": file.length });
    response.write(file.subarray(0, 200_000));
  },
};

const server = createServer((request, response) => {
  asked.push(request.headers);
  answers[request.url](request, response);
});
let address;
before(async () => {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = (path) => `http://127.0.0.1:${server.address().port}${path}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

test(`a filter arrives, in any pieces (${build})`, async () => {
  for (const path of ["/whole", "/chunked", "/gzip", "/changed"]) {
    const filter = await Filter.fetch(address(path));
    assert.deepEqual(filter.toBytes(), file, path);
  }
  assert.equal((await Filter.fetch(new URL(address("/growing")))).kind, "growing");
});

test(`what is known is not fetched again (${build})`, async () => {
  const filter = await Filter.fetch(address("/whole"));
  assert.equal(filter.etag, '"1"');
  assert.equal(await Filter.fetch(address("/whole"), { known: filter }), filter);
  assert.equal(asked.at(-1)["if-none-match"], '"1"');
  const changed = await Filter.fetch(address("/changed"), { known: filter, headers: { "X-Mine": "kept" } });
  assert.notEqual(changed, filter);
  assert.equal(changed.etag, '"2"');
  assert.equal(asked.at(-1)["x-mine"], "kept");
  filter.dispose();
  await assert.rejects(Filter.fetch(address("/whole"), { known: filter }), /freed/);
  await assert.rejects(Filter.fetch(address("/whole"), { known: {} }), /known: expected a Filter/);
});

test(`what is no filter is an error (${build})`, async () => {
  const errors = {
    "/missing": /^Error: fetching http:.*\/missing: expected status 200, got 404 Not Found$/,
    "/page": /not a valid Tamis filter: magic: expected/,
    "/short": /length: expected at least 128 bytes of header, got 100 bytes/,
    "/empty": /length: expected at least 128 bytes of header, got 0 bytes/,
    "/truncated": /file length: expected \d+ bytes as the header says, got 300000 bytes/,
    "/surplus": /file length: expected \d+ bytes as the header says, got \d+ bytes/,
    "/endless": /file length: expected \d+ bytes as the header says, got \d+ bytes/,
    "/wrong": /body checksum: expected/,
    "/claim": /file length: expected \d+ bytes as the header says, got 100128 bytes/,
    "/cut": /./,
  };
  const before = process.memoryUsage().external;
  for (let turn = 0; turn < 5; turn++) {
    for (const [path, error] of Object.entries(errors)) await assert.rejects(Filter.fetch(address(path)), error, path);
  }
  // Streams that were given up let go of their bytes in later turns.
  const more = () => process.memoryUsage().external - before;
  for (let turn = 0; turn < 100 && more() >= 2 ** 24; turn++) {
    gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(more() < 2 ** 24, "nothing is allocated because a header says so");
  await assert.rejects(Filter.fetch(address("/whole"), { maxBytes: 1000 }), /expected at most 1000 bytes \(maxBytes\), got \d+/);
  await assert.rejects(Filter.fetch("http://127.0.0.1:1/"), TypeError);
  await assert.rejects(Filter.fetch("http://127.0.0.1:1/"), /^TypeError: fetching http:\/\/127\.0\.0\.1:1\/: ./);
});

test(`waiting can be given up (${build})`, async () => {
  const abort = new AbortController();
  const waiting = Filter.fetch(address("/never"), { signal: abort.signal });
  // It has begun when the server was asked.
  const begun = asked.length;
  while (asked.length === begun) await new Promise((resolve) => setImmediate(resolve));
  abort.abort();
  await assert.rejects(waiting, { name: "AbortError" });
});
