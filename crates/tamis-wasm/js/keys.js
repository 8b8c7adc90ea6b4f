// Single keys, written to where the library reads them.
import { big, block, bytes, see, wasm } from "./memory.js";

// Up to this many characters, a loop is faster than a call of `encodeInto`.
const SHORT = 14;

export const encoder = new TextEncoder();

export const isInteger = (key) => typeof key === "bigint" || (typeof key === "number" && Number.isSafeInteger(key));
export const isKey = (key) => typeof key === "string" || key instanceof Uint8Array || isInteger(key);

/// Half of a surrogate pair: alone, with the flag for Unicode.
export const HALF = /[\ud800-\udfff]/u;

/// The text, if it has UTF-8. Encoders put U+FFFD in the place of half a surrogate pair, which would make one key of many.
export function encodable(text) {
  const half = HALF.exec(text);
  if (half === null) return text;
  throw new TypeError(
    `key: expected text that has UTF-8, got the surrogate U+${half[0].charCodeAt(0).toString(16).toUpperCase()} in it, ` +
      `at index ${half.index}; encode it yourself, in a way that stays the same`,
  );
}

/// Writes text as UTF-8 to the beginning of the block; how many bytes it has, or -1 if it may not fit.
export function write(text) {
  const { length } = text;
  if (length <= SHORT) {
    let i = 0;
    for (; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) break;
      block[i] = code;
    }
    if (i === length) return length;
  }
  if (length * 3 > block.length) return -1;
  const { written } = encoder.encodeInto(text, block);
  // As many bytes as characters: it is ASCII.
  if (written !== length) encodable(text);
  return written;
}

/// Writes bytes into the block; where they end there, or -1 if they don't fit.
export function copy(key, from) {
  const { length } = key;
  if (from + length > block.length) return -1;
  if (length > 8) {
    block.set(key, from);
  } else {
    for (let i = 0; i < length; i++) block[from + i] = key[i];
  }
  return from + length;
}

/// The 8 little-endian bytes of an integer, in two's complement, at the beginning of the block.
export function writeInteger(key) {
  const value = BigInt(key);
  if (value < -(2n ** 63n) || value >= 2n ** 64n) {
    throw new RangeError(
      `key: expected an integer from -2^63 to 2^64-1, which is hashed as its 8 little-endian bytes, got ${value}; ` +
        "encode a larger one yourself, e.g. as a string",
    );
  }
  big[0] = BigInt.asUintN(64, value);
}

/// Puts a key that is too long for the block into memory of its own, while `work` has its address.
export function apart(key, work) {
  const encoded = typeof key === "string" ? encoder.encode(encodable(key)) : key;
  const at = wasm.allocate(encoded.length);
  if (bytes.length === 0) see();
  if (at === 0) throw new Error(`out of memory: a key of ${encoded.length} bytes`);
  bytes.set(encoded, at);
  work(at, encoded.length);
  // Not after a trap, so not in a `finally`.
  wasm.free(at, encoded.length);
}
