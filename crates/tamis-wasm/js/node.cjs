"use strict";
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { Filter, attach, hasSimd, imports, plan, withoutSimd } = require("./core.cjs");

const file = (name) => new Uint8Array(readFileSync(join(__dirname, name)));
const base = file("tamis.wasm");
const build = hasSimd() ? base : withoutSimd(base, file("without-simd.bin"));
// Node.js 18 has no global `crypto`.
const crypto = globalThis.crypto ?? require("node:crypto").webcrypto;
attach(new WebAssembly.Instance(new WebAssembly.Module(build), imports(crypto)).exports);

module.exports = { Filter, plan };
