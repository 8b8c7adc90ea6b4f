// Filters over the WebAssembly of this package, whoever has loaded it: `attach` gets its exports.
//
// Filters live in the linear memory of WebAssembly, and a Filter holds the address of one. Keys go there
// through one block of memory that stays in place.

const KINDS = ["blocked", "bloom", "blocked", "counting", "cuckoo", "growing", "fuse", "ribbon", "cascade", "window"];
/// Kinds that are built of all their keys, and take no more.
const FINISHED = ["fuse", "ribbon", "cascade"];
const HEADER = 128;
// Up to this many characters, a loop is faster than a call of `encodeInto`.
const SHORT = 14;
// So many keys are written into the block at once: what is written is then still in the processor's cache.
const AT_ONCE = 512;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
// Bytes that are no UTF-8 are no URL.
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

let wasm;
let memory;
// Views of linear memory. When it grows they become empty, and `see` makes new ones.
let bytes = new Uint8Array(0);
let block;
let ends;
let times;
let answers;
let counts;
let big;
// The block of keys: where its bytes begin and end, and how many keys it takes.
let start = 0;
let limit = 0;
let most = 0;

function attach(exports) {
  if (wasm !== undefined) return;
  wasm = exports;
  memory = exports.memory;
  start = wasm.block_bytes_at();
  limit = start + wasm.block_bytes();
  most = wasm.block_keys();
  see();
}

/// Whether `attach` was called.
function isAttached() {
  return wasm !== undefined;
}

/// What the module imports: random bytes. `crypto` is a Web Crypto.
function imports(crypto = globalThis.crypto) {
  const random = (at, length) => {
    try {
      crypto.getRandomValues(new Uint8Array(memory.buffer, at, length));
      return 1;
    } catch {
      return 0;
    }
  };
  return { tamis: { random } };
}

function see() {
  const { buffer } = memory;
  bytes = new Uint8Array(buffer);
  block = new Uint8Array(buffer, start, limit - start);
  ends = new Uint32Array(buffer, wasm.block_ends_at(), most);
  times = new Float64Array(buffer, wasm.block_times_at(), most);
  answers = new Uint8Array(buffer, wasm.block_answers_at(), most);
  counts = new Float64Array(buffer, wasm.block_counts_at(), most);
  big = new BigUint64Array(buffer, start, (limit - start) / 8);
}

/// Makes sure that the library is loaded and its memory seen.
function ready() {
  if (wasm === undefined) {
    throw new Error('tamis is not loaded: expected `await init()` of "tamis/init" before its first use');
  }
  if (bytes.length === 0) see();
}

function reply() {
  if (bytes.length === 0) see();
  const at = wasm.reply_at();
  return bytes.subarray(at, at + wasm.reply_length());
}

/// The error that a call has left.
function failure() {
  return new Error(decoder.decode(reply()));
}

/// Runs what may need much memory. Where the library has none it stops at once, which is an error like others;
/// its stack is then set back.
function roomy(work) {
  const stack = wasm.__stack_pointer.value;
  try {
    return work();
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    wasm.__stack_pointer.value = stack;
    throw new Error("out of memory: WebAssembly has 4 GB at most, and no more is left; fewer keys or a higher rate need less");
  } finally {
    if (bytes.length === 0) see();
  }
}

/// What an address is that a call returned, 0 being an error.
function made(at) {
  if (at === 0) throw failure();
  return at;
}

function wrong(what, expected, got) {
  const shown = typeof got === "string" ? JSON.stringify(got) : typeof got === "bigint" ? `${got}n` : String(got);
  return new TypeError(`${what}: expected ${expected}, got ${shown}`);
}

/// What a value is, for errors.
function sort(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? (value.constructor?.name ?? "an object") : typeof value === "number" ? `the number ${value}` : typeof value;
}

function noKey(key) {
  return new TypeError(
    `key: expected a string, a Uint8Array or an integer (number or bigint), got ${sort(key)}; ` +
      "encode it yourself, in a way that stays the same, e.g. as a string",
  );
}

/// Half of a surrogate pair: alone, with the flag for Unicode.
const HALF = /[\ud800-\udfff]/u;

/// The text, if it has UTF-8. Encoders put U+FFFD in the place of half a surrogate pair, which would make one key of many.
function encodable(text) {
  const half = HALF.exec(text);
  if (half === null) return text;
  throw new TypeError(
    `key: expected text that has UTF-8, got the surrogate U+${half[0].charCodeAt(0).toString(16).toUpperCase()} in it, ` +
      `at index ${half.index}; encode it yourself, in a way that stays the same`,
  );
}

// ---- Keys ----

/// Writes text as UTF-8 to the beginning of the block; how many bytes it has, or -1 if it may not fit.
function write(text) {
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
function copy(key, from) {
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
function writeInteger(key) {
  const value = BigInt(key);
  if (value < -(2n ** 63n) || value >= 2n ** 64n) {
    throw new RangeError(
      `key: expected an integer from -2^63 to 2^64-1, which is hashed as its 8 little-endian bytes, got ${value}; ` +
        "encode a larger one yourself, e.g. as a string",
    );
  }
  big[0] = BigInt.asUintN(64, value);
}

const isInteger = (key) => typeof key === "bigint" || (typeof key === "number" && Number.isSafeInteger(key));

/// The URL without its fragment, by the rules of the WHATWG, or the key as it is if it is none. Engines differ in
/// paths and queries: they are made here, as in crates/tamis/src/key_rule/web.rs, and what is before them by the engine.
function normal(key) {
  let text = key;
  if (typeof key === "string") {
    encodable(key);
  } else {
    try {
      // A copy: shared memory is not decoded.
      text = strict.decode(key.slice());
    } catch {
      return key;
    }
  }
  const [whole] = text.replace(/^[\0- ]+|[\0- ]+$/g, "").replace(/[\t\n\r]/g, "").split("#", 1);
  const end = whole.includes("?") ? whole.indexOf("?") : whole.length;
  const colon = whole.slice(0, end).indexOf(":");
  const scheme = whole.slice(0, Math.max(colon, 0)).replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  if (!/^[a-z][a-z0-9+.-]*$/.test(scheme)) return key;
  const isSpecial = /^(https?|wss?|ftp|file)$/.test(scheme);
  const query = encoded(whole.slice(end), isSpecial ? " \"#<>'" : ' "#<>');
  const rest = whole.slice(colon + 1, end);
  const { authority, path } = parted(rest, scheme, isSpecial);
  if (path === undefined) return `${scheme}:${encoded(rest.replace(/ $/, "%20"), "")}${query}`;
  const before = beforePath(scheme, authority, isSpecial);
  if (before === null) return key;
  const plain = path === "" && !isSpecial ? "" : withoutDots(path.split(isSpecial ? /[/\\]/ : "/").slice(1), scheme === "file");
  // Two slashes would begin an authority.
  const dot = before === `${scheme}:` && plain.startsWith("//") ? "/." : "";
  return before + dot + plain + query;
}

/// The authority, if there is one, and the path; none of which is where the rest is opaque.
function parted(rest, scheme, isSpecial) {
  const slashes = rest.match(isSpecial ? /^[/\\]*/ : /^\/*/)[0].length;
  const isFile = scheme === "file";
  if (slashes === 0 && !isSpecial) return {};
  if (slashes < 2 && (isFile || !isSpecial)) return { authority: null, path: slashes === 0 ? `/${rest}` : rest };
  const after = rest.slice(isSpecial && !isFile ? slashes : 2);
  const length = after.search(isSpecial ? /[/\\]/ : /\//);
  const authority = length < 0 ? after : after.slice(0, length);
  if (isFile && isDrive(authority)) return { authority: null, path: `/${after}` };
  return { authority, path: after.slice(authority.length) };
}

/// The beginning of a URL, up to its path; null if there is none such.
function beforePath(scheme, authority, isSpecial) {
  if (authority === null) return scheme === "file" ? "file://" : `${scheme}:`;
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  if (scheme !== "file" && host === "" && authority.includes("@")) return null;
  if (!isSpecial && host.includes("\\")) return null;
  const url = parsed(`${scheme}://${authority}/`);
  if (url === null || (isSpecial && !hasSoundHost(url.hostname))) return null;
  const before = url.href.slice(0, url.href.length - url.pathname.length);
  const user = before.length - url.host.length;
  return isSpecial ? before.slice(0, user) + withStars(url.host) : before;
}

/// A host in which `*` stays, which some engines encode.
const withStars = (host) => host.replaceAll("%2A", "*");

function withoutDots(segments, isFile) {
  const path = [];
  if (segments.length === 0) path.push("");
  for (const [i, segment] of segments.entries()) {
    const dots = segment.replace(/%2e/gi, ".");
    if (dots !== "." && dots !== "..") {
      path.push(isFile && path.length === 0 && isDrive(segment) ? segment.replace("|", ":") : encoded(segment, ' "#<>?`{}'));
      continue;
    }
    if (dots === ".." && !(isFile && path.length === 1 && isDrive(path[0]))) path.pop();
    if (i === segments.length - 1) path.push("");
  }
  return path.map((segment) => `/${segment}`).join("");
}

const isDrive = (segment) => /^[a-zA-Z][:|]$/.test(segment);

/// The text with some characters, and what is not printed or not ASCII, as percent and two digits.
function encoded(text, others) {
  const escape = (byte) => {
    const character = String.fromCharCode(byte);
    if (byte >= 32 && byte < 127 && !others.includes(character)) return character;
    return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  };
  return Array.from(encoder.encode(text), escape).join("");
}

function parsed(text) {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/// Whether there is such a host on the web: some engines take one with a space, or with Punycode that is not what its
/// text would be.
function hasSoundHost(hostname) {
  if (withStars(hostname).includes("%")) return false;
  if (!hostname.includes("xn--")) return true;
  const labels = hostname.split(".").map((label) => (label.startsWith("xn--") ? punycode(label.slice(4)) : label));
  return !labels.includes(null) && parsed(`http://${labels.join(".")}`)?.hostname === hostname;
}

/// The text that is written so (RFC 3492); null if it is none.
function punycode(written) {
  const dash = written.lastIndexOf("-");
  const text = Array.from(written.slice(0, Math.max(dash, 0)), (character) => character.codePointAt(0));
  let [code, at, bias] = [128, 0, 72];
  for (let i = dash + 1; i < written.length; ) {
    const before = at;
    for (let [weight, k] = [1, 36]; ; k += 36) {
      const digit = "abcdefghijklmnopqrstuvwxyz0123456789".indexOf(written[i++] ?? "-");
      if (digit < 0) return null;
      at += digit * weight;
      const threshold = Math.min(Math.max(k - bias, 1), 26);
      if (digit < threshold) break;
      weight *= 36 - threshold;
      if (weight > 2 ** 31) return null;
    }
    let delta = Math.floor((at - before) / (before === 0 ? 700 : 2));
    delta += Math.floor(delta / (text.length + 1));
    let steps = 0;
    for (; delta > 455; steps += 36) delta = Math.floor(delta / 35);
    bias = steps + Math.floor((36 * delta) / (delta + 38));
    code += Math.floor(at / (text.length + 1));
    at %= text.length + 1;
    if (code > 0x10ffff) return null;
    text.splice(at++, 0, code);
  }
  return String.fromCodePoint(...text);
}

/// Bytes of a key that is too long for the block, while `work` has their address.
function apart(key, work) {
  const encoded = typeof key === "string" ? encoder.encode(encodable(key)) : key;
  const at = wasm.allocate(encoded.length);
  if (bytes.length === 0) see();
  if (at === 0) throw new Error(`out of memory: a key of ${encoded.length} bytes`);
  try {
    bytes.set(encoded, at);
    return work(at, encoded.length);
  } finally {
    wasm.free(at, encoded.length);
  }
}

/// Hashes keys, a batch at a time, and runs `each` with the number of the batch's first key and how many it
/// has. Code of the caller, such as a generator of keys, may use and free filters: it runs only between batches,
/// each of which begins with `begin`.
class Batches {
  #rule;
  #begin;
  #each;
  #first = 0;
  #hashed = 0;

  constructor(rule, begin, each) {
    this.#rule = rule;
    this.#begin = begin;
    this.#each = each;
  }

  all(keys) {
    if (keys instanceof BigUint64Array || keys instanceof BigInt64Array) {
      if (this.#rule.values > 1) throw otherValues(this.#rule.values, "one");
      this.#begin();
      this.#integers(keys);
      this.#run();
    } else if (keys?.bytes instanceof Uint8Array && keys.ends instanceof Uint32Array) {
      const { bytes, ends } = keys;
      this.#begin();
      this.#packed(bytes, ends);
      this.#run();
    } else if (Array.isArray(keys)) {
      for (let i = 0; i < keys.length; i += AT_ONCE) this.#batch(keys.slice(i, i + AT_ONCE));
    } else if (typeof keys === "string" || ArrayBuffer.isView(keys) || typeof keys?.[Symbol.iterator] !== "function") {
      throw new TypeError(
        `keys: expected an array or another iterable of keys, a BigUint64Array, or { bytes, ends }, got ${sort(keys)}; pass one key in an array`,
      );
    } else {
      let some = [];
      for (const key of keys) {
        if (some.push(key) < AT_ONCE) continue;
        this.#batch(some);
        some = [];
      }
      this.#batch(some);
    }
  }

  one(key) {
    this.#batch([key]);
  }

  #batch(keys) {
    // From here on, nothing is the caller's.
    for (let i = 0; i < keys.length; i++) if (typeof keys[i] === "object" && Array.isArray(keys[i])) keys[i] = Array.from(keys[i]);
    this.#begin();
    this.#some(keys);
    this.#run();
  }

  #some(keys) {
    const plain = !this.#rule.url && this.#rule.values === 1;
    for (let i = 0; i < keys.length; ) {
      const key = keys[i];
      const count = !plain ? 0 : typeof key === "string" ? this.#texts(keys, i) : key instanceof Uint8Array ? this.#bytes(keys, i) : 0;
      if (count > 0) {
        i += count;
        this.#took(count);
      } else {
        this.#add(key);
        i++;
      }
    }
  }

  /// Hashes texts from number `i` on as one: a call for each would take longer. How many it has hashed.
  #texts(keys, i) {
    const room = block.length / 3 - AT_ONCE;
    const most = Math.min(keys.length - i, AT_ONCE, this.#room());
    let [text, count] = ["", 0];
    for (; count < most; count++) {
      const key = keys[i + count];
      if (typeof key !== "string" || text.length + key.length > room) break;
      text += key;
      ends[count] = text.length;
    }
    if (encoder.encodeInto(text, block).written === text.length) {
      wasm.hash_block(count, false);
    } else {
      // Not ASCII: its bytes are more than its characters. Something must stand between two keys, so that halves
      // of a surrogate pair are not taken for one.
      text = "";
      for (let n = 0; n < count; n++) {
        text += keys[i + n] + "\n";
        ends[n] = text.length;
      }
      if (HALF.test(text)) for (let n = 0; n < count; n++) encodable(keys[i + n]);
      encoder.encodeInto(text, block);
      wasm.hash_separated(count);
    }
    return count;
  }

  #bytes(keys, i) {
    const most = Math.min(keys.length - i, AT_ONCE, this.#room());
    let [count, end] = [0, 0];
    for (; count < most; count++) {
      const key = keys[i + count];
      const next = key instanceof Uint8Array ? copy(key, end) : -1;
      if (next < 0) break;
      ends[count] = end = next;
    }
    if (count > 0) wasm.hash_block(count, false);
    return count;
  }

  /// Keys that lie one behind the other.
  #packed(all, to) {
    for (let i = 0, begin = 0; i < to.length; i++) {
      if (to[i] < begin || to[i] > all.length) {
        throw new RangeError(`keys: expected ends that ascend up to ${all.length}, got ${to[i]} after ${begin}`);
      }
      begin = to[i];
    }
    const plain = !this.#rule.url;
    for (let i = 0, begin = 0; i < to.length; ) {
      const most = Math.min(to.length - i, this.#room());
      let count = 0;
      while (plain && count < most && to[i + count] - begin <= block.length) ends[count] = to[i + count++] - begin;
      if (count > 0) {
        block.set(all.subarray(begin, to[i + count - 1]));
        wasm.hash_block(count, false);
        this.#took(count);
      } else {
        this.#add(all.subarray(begin, to[i]));
        count = 1;
      }
      i += count;
      begin = to[i - 1];
    }
  }

  /// Integers as they lie in memory.
  #integers(keys) {
    for (let from = 0; from < keys.length; from += most) {
      const piece = keys.subarray(from, from + most);
      big.set(piece instanceof BigInt64Array ? new BigUint64Array(piece.buffer, piece.byteOffset, piece.length) : piece);
      for (let i = 0; i < piece.length; i++) ends[i] = 8 * (i + 1);
      wasm.hash_block(piece.length, true);
      this.#took(piece.length);
    }
  }

  /// Any key.
  #add(key) {
    const { url, values } = this.#rule;
    if (values > 1 && !(key instanceof Uint8Array)) {
      if (!Array.isArray(key)) throw otherValues(values, isKey(key) ? "one" : sort(key));
      this.#join(key);
    } else if (isInteger(key)) {
      writeInteger(key);
      ends[0] = 8;
      wasm.hash_block(1, true);
    } else if (typeof key === "string" || key instanceof Uint8Array) {
      const value = url && values === 1 ? normal(key) : key;
      const end = typeof value === "string" ? write(value) : copy(value, 0);
      if (end >= 0) {
        ends[0] = end;
        wasm.hash_block(1, false);
      } else {
        apart(value, (at, length) => wasm.hash_long(at, length));
      }
    } else {
      throw Array.isArray(key) ? tooManyValues(key.length) : noKey(key);
    }
    this.#took(1);
  }

  #join(parts) {
    const { url, values } = this.#rule;
    if (parts.length !== values) throw otherValues(values, parts.length);
    // All of them are sound before the first is joined.
    for (const part of parts) {
      if (!isKey(part)) throw noKey(part);
      if (typeof part === "string") encodable(part);
    }
    for (const part of parts) {
      if (isInteger(part)) {
        writeInteger(part);
        wasm.join(start, 8, true);
      } else {
        const value = url ? normal(part) : part;
        const end = typeof value === "string" ? write(value) : copy(value, 0);
        if (end >= 0) wasm.join(start, end, false);
        else apart(value, (at, length) => wasm.join(at, length, false));
      }
      if (bytes.length === 0) see();
    }
    wasm.hash_joined();
  }

  #room() {
    return most - this.#hashed;
  }

  /// So many keys more are hashed.
  #took(count) {
    if (bytes.length === 0) see();
    this.#hashed += count;
    if (this.#hashed === most) this.#run();
  }

  #run() {
    if (this.#hashed === 0) return;
    const count = this.#hashed;
    this.#hashed = 0;
    this.#each(this.#first, count);
    if (bytes.length === 0) see();
    this.#first += count;
  }
}

const isKey = (key) => typeof key === "string" || key instanceof Uint8Array || isInteger(key);

function otherValues(values, got) {
  return new TypeError(`key: expected an array of ${values} values, of which the filter's keys are made, got ${got}`);
}

function tooManyValues(got) {
  return new TypeError(
    `key: expected one value, of which the filter's keys are made, got an array of ${got}; ` +
      "make the filter with `values` for keys of several",
  );
}

// ---- What a filter shall be ----

const OPTIONS = ["keys", "rate", "bytes", "kind", "seed", "secret", "secretInFile", "ignoreCase", "url", "values", "within", "last", "generations", "quiet"];

/// A number that was not given is NaN.
function number(options, name, whole) {
  const value = options[name];
  if (value === undefined) return NaN;
  const sound = typeof value === "number" && (whole ? Number.isSafeInteger(value) && value >= 0 : !Number.isNaN(value));
  if (!sound) throw wrong(name, whole ? "a whole number from 0 to 2^53-1" : "a number", value);
  return value;
}

function flag(options, name, usual) {
  const value = options[name] ?? usual;
  if (typeof value !== "boolean") throw wrong(name, "true or false", value);
  return value;
}

function check(options, known) {
  if (typeof options !== "object" || options === null) throw new TypeError(`options: expected an object, got ${sort(options)}`);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw wrong("options", `one of ${known.join(", ")}`, name);
  }
}

function kindNumber(kind, among = KINDS) {
  if (!among.includes(kind)) throw wrong("kind", `one of ${[...new Set(among)].join(", ")}`, kind);
  return KINDS.indexOf(kind, 1);
}

/// Tells the library what is wished for.
function wish(options, kind) {
  const [rate, bytes] = [number(options, "rate"), number(options, "bytes", true)];
  // A window of the last keys is made for so many.
  const keys = number(options, options.last === undefined ? "keys" : "last", true);
  wasm.wish_size(kind, keys, rate, bytes);
  if (KINDS[kind] === "window") wishWindow(options);
  wishHash(options);
}

const WINDOW_OPTIONS = ["within", "last", "generations", "quiet"];

function wishSize(options, kind) {
  const isWindow = KINDS[kind] === "window";
  const given = ["keys", "rate", "bytes"].filter((name) => options[name] !== undefined);
  const forgets = WINDOW_OPTIONS.filter((name) => options[name] !== undefined);
  if (!isWindow && forgets.length > 0) {
    throw wrong("options", `within (milliseconds) or last (keys) for a window, or none of ${WINDOW_OPTIONS.join(", ")} for a ${KINDS[kind]} filter`, forgets.join(", "));
  }
  const isByKeys = isWindow && options.last !== undefined;
  const expected = isByKeys ? "rate" : isWindow ? "keys, rate" : undefined;
  if (expected === undefined ? given.length !== 2 : given.join(", ") !== expected) {
    const what = isByKeys ? "rate for a window of the last keys, for which `last` says how many there are" : isWindow ? "keys and rate" : "two of keys, rate and bytes";
    throw wrong("options", what, given.length === 0 ? "none" : given.join(", "));
  }
  wish(options, kind);
}

function wishWindow(options) {
  const [within, last] = [number(options, "within"), number(options, "last", true)];
  if (Number.isNaN(within) === Number.isNaN(last)) {
    throw wrong("options", "within (milliseconds) or last (keys) for a window", Number.isNaN(last) ? "neither" : "both");
  }
  if (within < 0) throw wrong("within", "a number of milliseconds", within);
  const generations = number(options, "generations", true);
  const byKeys = Number.isNaN(within);
  wasm.wish_window(byKeys ? last : within, byKeys, Number.isNaN(generations) ? 8 : Math.min(generations, 255), flag(options, "quiet", false));
}

function wishHash(options) {
  const { seed = 0n, secret, values = 1 } = options;
  if (!isInteger(seed) || BigInt(seed) < 0n || BigInt(seed) >= 2n ** 64n) throw wrong("seed", "an integer from 0 to 2^64-1", seed);
  const inFile = flag(options, "secretInFile", true);
  if (secret !== undefined && options.seed !== undefined) throw wrong("options", "seed or secret", "both");
  if (secret === true && !inFile) throw wrong("secret", "the 16 bytes that you keep, as they are not in the file", secret);
  if (!Number.isInteger(values) || values < 1 || values > 255) throw wrong("values", "1 to 255", values);
  wasm.wish_hash(BigInt.asUintN(64, BigInt(seed)), secretAt(secret, true), !inFile);
  if (!wasm.wish_rule(flag(options, "ignoreCase", false), flag(options, "url", false), values)) throw failure();
}

/// Where the secret is; 0 if there is none.
function secretAt(secret, orRandom) {
  if (secret === undefined) return 0;
  if (secret === true && orRandom) {
    if (!wasm.random_secret(start)) throw failure();
  } else if (secret instanceof Uint8Array && secret.length === 16) {
    bytes.set(secret, start);
  } else {
    throw wrong("secret", orRandom ? "a Uint8Array of 16 bytes, or true for a random one" : "a Uint8Array of 16 bytes", secret instanceof Uint8Array ? `${secret.length} bytes` : sort(secret));
  }
  return start;
}

/// Size and rate before anything is made.
function plan(options) {
  ready();
  check(options, OPTIONS);
  wishSize(options, kindNumber(kindOf(options)));
  if (!wasm.plan()) throw failure();
  return JSON.parse(decoder.decode(reply()));
}

/// A window needs no other word than its length.
function kindOf(options) {
  return options.kind ?? (options.within !== undefined || options.last !== undefined ? "window" : "blocked");
}

// ---- Filters ----

const freed = new FinalizationRegistry((at) => wasm.filter_free(at));
// What tells the constructor that a filter is there already.
const FOUND = Symbol("found");

class Filter {
  #at = 0;
  #kind;
  #rule;
  // Whether keys are asked, and added, by the shortest way: not where they have a moment or a rule of which JavaScript
  // does a part, nor added where that may need memory.
  #asksPlainly;
  #addsPlainly;
  #etag = null;

  constructor(options, at) {
    ready();
    if (options !== FOUND) {
      check(options, OPTIONS);
      const kind = kindOf(options);
      if (FINISHED.includes(kind)) {
        throw new TypeError(`kind: expected one that keys can be added to, got ${JSON.stringify(kind)}; Filter.build makes it of all its keys`);
      }
      wishSize(options, kindNumber(kind));
      at = made(roomy(() => wasm.create()));
    }
    this.#at = at;
    freed.register(this, at, this);
    const facts = wasm.facts(at);
    this.#kind = KINDS[facts & 0xff];
    this.#rule = { url: (facts & 0x100) !== 0, values: facts >>> 16 };
    this.#asksPlainly = this.#kind !== "window" && !this.#rule.url && this.#rule.values === 1;
    this.#addsPlainly = this.#asksPlainly && this.#kind !== "growing";
  }

  /// A filter of a `.tamis` file's bytes, which are copied once.
  static open(file, options = {}) {
    ready();
    check(options, ["secret", "acceptLoss"]);
    const data = file instanceof ArrayBuffer ? new Uint8Array(file) : file;
    if (!(data instanceof Uint8Array)) throw new TypeError(`file: expected a Uint8Array or an ArrayBuffer, got ${sort(file)}`);
    const draft = roomy(() => begin(data.subarray(0, HEADER), data.length, options));
    draft.put(data.subarray(HEADER));
    return draft.finish();
  }

  /// A filter that cannot be changed any more, of all its keys: as small as it gets.
  static build(keys, options) {
    ready();
    check(options, ["rate", "kind", "allow", "both", "seed", "secret", "secretInFile", "ignoreCase", "url", "values"]);
    const { allow, both = "refuse", kind = allow === undefined ? "fuse" : "cascade" } = options;
    if (options.rate === undefined) throw wrong("rate", "a number", undefined);
    const winner = ["refuse", "block", "allow"].indexOf(both);
    if (winner < 0) throw wrong("both", "refuse, block or allow", both);
    wish(options, kindNumber(kind, FINISHED));
    const list = made(wasm.list(winner));
    const rule = { url: options.url ?? false, values: options.values ?? 1 };
    let left = true;
    try {
      const add = (keys, isAllowed) =>
        roomy(() => {
          const begin = () => wasm.begin_list(list);
          const put = () => {
            if (!wasm.list_batch(list, isAllowed)) throw failure();
          };
          new Batches(rule, begin, put).all(keys);
        });
      add(keys, false);
      if (allow !== undefined) add(allow, true);
      left = false;
      return new Filter(FOUND, made(roomy(() => wasm.list_build(list))));
    } finally {
      if (left) wasm.list_free(list);
    }
  }

  /// The filter at an address. With `known`, one that was fetched before, it is that filter if the server
  /// still has it.
  static async fetch(address, options = {}) {
    ready();
    const { secret, acceptLoss, known, maxBytes = Infinity, fetch: fetched = globalThis.fetch, ...request } = options;
    if (known !== undefined && !(known instanceof Filter)) throw new TypeError(`known: expected a Filter, got ${sort(known)}`);
    const headers = new Headers(request.headers);
    if (known?.etag) headers.set("If-None-Match", known.etag);
    const response = await fetched(address, { ...request, headers }).catch((error) => {
      // What no server answered is a TypeError, of which engines say no more than "fetch failed".
      if (!(error instanceof TypeError)) throw error;
      throw new TypeError(`fetching ${address}: ${error.cause?.message || error.message}`, { cause: error });
    });
    if (response.status === 304 && known !== undefined) {
      known.#alive();
      return known;
    }
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`fetching ${address}: expected status 200, got ${`${response.status} ${response.statusText}`.trim()}`);
    }
    const filter = await arrive(response, { secret, acceptLoss }, maxBytes);
    filter.#etag = response.headers.get("ETag");
    return filter;
  }

  #alive() {
    if (this.#at === 0) throw new Error("the filter has been freed: expected no use after dispose()");
    if (bytes.length === 0) see();
    return this.#at;
  }

  /// Whether the key may have been added: never a false "no".
  has(key, options) {
    const at = this.#at;
    if (this.#asksPlainly && at !== 0 && options === undefined && bytes.length !== 0) {
      const length = typeof key === "string" ? write(key) : key instanceof Uint8Array ? copy(key, 0) : -1;
      if (length >= 0) return wasm.has(at, start, length, 0) !== 0;
    }
    let answer;
    this.#each(options, (batches) => batches.one(key), (way, millis) => {
      wasm.has_batch(this.#at, way, millis);
      answer = answers[0] !== 0;
    });
    return answer;
  }

  /// Adds a key; whether it was new.
  add(key, options) {
    const at = this.#at;
    if (this.#addsPlainly && at !== 0 && options === undefined && bytes.length !== 0) {
      const length = typeof key === "string" ? write(key) : key instanceof Uint8Array ? copy(key, 0) : -1;
      if (length >= 0) {
        const answer = wasm.add(at, start, length, 0);
        if (answer < 0) throw failure();
        return answer !== 0;
      }
    }
    let answer;
    this.#each(options, (batches) => batches.one(key), (way, millis) => {
      if (!wasm.add_batch(this.#at, way, millis)) throw failure();
      answer = answers[0] !== 0;
    });
    return answer;
  }

  /// Asks many keys.
  hasMany(keys, options) {
    return this.#many(keys, options, (way, millis) => wasm.has_batch(this.#at, way, millis));
  }

  /// Adds many keys; which of them were new. When one can't be added, those before it are in.
  addMany(keys, options) {
    return this.#many(keys, options, (way, millis) => {
      if (!wasm.add_batch(this.#at, way, millis)) throw failure();
    });
  }

  /// Takes back one adding of a key that was added; whether it seemed present.
  remove(key) {
    let answer;
    this.#each(undefined, (batches) => batches.one(key), () => {
      if (!wasm.remove_batch(this.#at)) throw failure();
      answer = answers[0] !== 0;
    });
    return answer;
  }

  /// How often a key was added, at most.
  count(key) {
    let answer;
    this.#each(undefined, (batches) => batches.one(key), () => {
      if (!wasm.count_batch(this.#at)) throw failure();
      answer = counts[0];
    });
    return answer;
  }

  #many(keys, options, work) {
    const known = Array.isArray(keys) || ArrayBuffer.isView(keys) ? keys : keys?.ends instanceof Uint32Array ? keys.ends : [];
    let all = new Uint8Array(known.length);
    let length = 0;
    this.#each(options, (batches) => batches.all(keys), (way, millis, count) => {
      work(way, millis);
      if (bytes.length === 0) see();
      if (length + count > all.length) {
        // Of an iterable nobody knows how many there are.
        const larger = new Uint8Array(2 * (length + count));
        larger.set(all);
        all = larger;
      }
      all.set(answers.subarray(0, count), length);
      length += count;
    });
    return length === all.length ? all : all.slice(0, length);
  }

  /// Hashes what `feed` gives to batches, and runs `work` with each.
  #each(options, feed, work) {
    this.#alive();
    if (options !== undefined) check(options, ["at"]);
    const when = moments(this.#kind === "window" ? options?.at : undefined);
    const begin = () => wasm.begin(this.#alive());
    const each = (first, count) => {
      when.write?.(first, count);
      work(when.way, when.millis, count);
    };
    roomy(() => feed(new Batches(this.#rule, begin, each)));
  }

  /// Adds all keys of a filter that was made alike.
  merge(other) {
    if (!(other instanceof Filter)) throw new TypeError(`other: expected a Filter, got ${sort(other)}`);
    const [at, its] = [this.#alive(), other.#alive()];
    if (at !== its && !roomy(() => wasm.unite(at, its))) throw failure();
  }

  /// A filter of the keys of both.
  union(other) {
    if (!(other instanceof Filter)) throw new TypeError(`other: expected a Filter, got ${sort(other)}`);
    const both = this.copy();
    try {
      other.#alive();
      both.merge(other);
    } catch (error) {
      both.dispose();
      throw error;
    }
    return both;
  }

  copy() {
    const at = this.#alive();
    return new Filter(FOUND, made(roomy(() => wasm.copy(at))));
  }

  /// Removes all keys.
  clear() {
    if (!wasm.clear(this.#alive())) throw failure();
  }

  /// The bytes of a `.tamis` file.
  toBytes() {
    const at = this.#alive();
    roomy(() => wasm.parts(at));
    const head = reply().slice();
    const parts = new DataView(head.buffer, HEADER);
    const pieces = [];
    let length = HEADER;
    for (let i = 0; i < parts.byteLength; i += 8) {
      const [from, size] = [parts.getUint32(i, true), parts.getUint32(i + 4, true)];
      pieces.push(bytes.subarray(from, from + size));
      length += size;
    }
    const file = new Uint8Array(length);
    file.set(head.subarray(0, HEADER));
    length = HEADER;
    for (const piece of pieces) {
      file.set(piece, length);
      length += piece.length;
    }
    return file;
  }

  /// What it is and holds.
  info() {
    const at = this.#alive();
    roomy(() => wasm.info(at));
    const info = JSON.parse(decoder.decode(reply()));
    info.seed = BigInt(info.seed);
    if (info.latest !== undefined && info.latest !== null) info.latest = new Date(info.latest);
    return info;
  }

  get kind() {
    return this.#kind;
  }

  get keys() {
    return this.info().keys;
  }

  get rate() {
    return this.info().rate;
  }

  get rateNow() {
    return this.info().rateNow;
  }

  get capacity() {
    return this.info().capacity;
  }

  get bytes() {
    return this.info().bytes;
  }

  get etag() {
    return this.#etag;
  }

  /// Frees its memory now. It must not be used any more.
  dispose() {
    if (this.#at === 0) return;
    freed.unregister(this);
    wasm.filter_free(this.#at);
    this.#at = 0;
  }
}

// Older engines don't know the symbol of `using`; what stands in for it there is this one.
Object.defineProperty(Filter.prototype, Symbol.dispose ?? Symbol.for("Symbol.dispose"), { value: Filter.prototype.dispose, writable: true, configurable: true });

/// When keys are seen or asked: `at` is a moment, one for each key, or now.
function moments(at) {
  if (at === undefined) return { way: 0, millis: Date.now() };
  if (typeof at === "number" || at instanceof Date) return { way: 1, millis: moment(at) };
  if (!Array.isArray(at) && !(at instanceof Float64Array)) {
    throw wrong("at", "a Date, milliseconds since 1970, or an array of these", sort(at));
  }
  const all = Float64Array.from(at, moment);
  const write = (first, count) => {
    if (first + count > all.length) throw wrong("at", "a Date or milliseconds since 1970, for each key", `${all.length} of them`);
    times.set(all.subarray(first, first + count));
  };
  return { way: 2, millis: 0, write };
}

function moment(at) {
  const millis = at instanceof Date ? at.getTime() : at;
  if (typeof millis !== "number" || Number.isNaN(millis)) throw wrong("at", "a Date or milliseconds since 1970", sort(at));
  return millis;
}

// ---- Files that arrive ----

/// Room for the body of a filter of `length` bytes, whose header is there.
function begin(header, length, options) {
  const accept = flag(options, "acceptLoss", false);
  const secret = secretAt(options.secret, false);
  // Behind the secret.
  bytes.set(header, start + 16);
  return new Draft(made(wasm.draft(start + 16, header.length, length, secret, accept)));
}

class Draft {
  #at;
  #to;
  #left;

  constructor(at) {
    this.#at = at;
    this.#to = wasm.draft_body(at);
    this.#left = wasm.draft_body_length(at);
  }

  /// Takes more of the body. What is behind it is not part of the filter.
  put(piece) {
    if (bytes.length === 0) see();
    const part = piece.subarray(0, this.#left);
    bytes.set(part, this.#to);
    this.#to += part.length;
    this.#left -= part.length;
  }

  finish() {
    const at = this.#at;
    this.#at = 0;
    return new Filter(FOUND, made(roomy(() => wasm.draft_finish(at))));
  }

  drop() {
    if (this.#at !== 0) wasm.draft_free(this.#at);
    this.#at = 0;
  }
}

// Up to this many bytes are allocated because a header says so. For more, an eighth of them must have come.
const ON_TRUST = 1 << 20;

/// A file that comes in pieces.
class Arrival {
  #options;
  #maxBytes;
  #received = 0;
  // What came before the draft was made.
  #pieces = [];
  #header = null;
  #expected = 0;
  #draft = null;

  constructor(options, maxBytes) {
    this.#options = options;
    this.#maxBytes = maxBytes;
  }

  /// Takes the next piece; whether there may be more.
  take(piece) {
    this.#received += piece.length;
    if (this.#draft !== null) this.#draft.put(piece);
    else this.#pieces.push(piece);
    if (this.#received < HEADER) return true;
    if (this.#header === null) {
      this.#header = joined(this.#pieces).slice(0, HEADER);
      this.#expected = wholeLength(this.#header, this.#options);
    }
    const [received, expected] = [this.#received, this.#expected];
    if (Math.max(received, expected) > this.#maxBytes) {
      throw new Error(`expected at most ${this.#maxBytes} bytes (maxBytes), got ${Math.max(received, expected)}`);
    }
    if (this.#draft === null && expected <= Math.max(8 * received, ON_TRUST)) this.#begin(expected);
    return received <= expected;
  }

  #begin(length) {
    this.#draft = roomy(() => begin(this.#header, length, this.#options));
    let skip = HEADER;
    for (const piece of this.#pieces) {
      this.#draft.put(piece.subarray(skip));
      skip = Math.max(0, skip - piece.length);
    }
    this.#pieces = [];
  }

  finish() {
    this.#header ??= joined(this.#pieces);
    if (this.#draft === null || this.#received !== this.#expected) {
      // Fails, unless it is of a kind that may have something behind its body.
      const other = roomy(() => begin(this.#header, this.#received, this.#options));
      other.drop();
    }
    return this.#draft.finish();
  }

  drop() {
    this.#draft?.drop();
  }
}

function joined(pieces) {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/// How long a file is, as its header says.
function wholeLength(header, options) {
  ready();
  const secret = secretAt(options.secret, false);
  bytes.set(header, start + 16);
  const length = wasm.whole_length(start + 16, header.length, secret);
  if (length < 0) throw failure();
  return length;
}

async function arrive(response, options, maxBytes) {
  const arrival = new Arrival(options, maxBytes);
  const reader = response.body?.getReader();
  try {
    for (let more = reader !== undefined; more; ) {
      const { done, value } = await reader.read();
      more = !done && arrival.take(value);
    }
    return arrival.finish();
  } catch (error) {
    arrival.drop();
    throw error;
  } finally {
    await reader?.cancel().catch(() => {});
  }
}

// ---- Loading ----

/// Whether this engine has SIMD: a function of two of its instructions is a valid module.
function hasSimd() {
  const code = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
  return WebAssembly.validate(new Uint8Array(code));
}

/// The build without SIMD, as its differences from the other: it is nearly the same, and few engines need it.
/// A difference is three numbers (LEB128): how many bytes follow as they are, how many then come from the
/// other build, and from where.
function withoutSimd(other, differences) {
  const out = [];
  let at = 0;
  const next = () => {
    let [value, factor, byte] = [0, 1, 0];
    do {
      byte = differences[at++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte > 127);
    return value;
  };
  while (at < differences.length) {
    const [own, copied, from] = [next(), next(), next()];
    out.push(differences.subarray(at, at + own), other.subarray(from, from + copied));
    at += own;
  }
  return joined(out);
}

export { Filter, plan, attach, isAttached, imports, hasSimd, withoutSimd };
