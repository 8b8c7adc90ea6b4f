// What a filter shall be: options are checked, and the library is told.
import { sort, wrong } from "./errors.js";
import { isInteger } from "./keys.js";
import { answer, bytes, failure, guarded, ready, start, times, wasm } from "./memory.js";

export const KINDS = ["blocked", "bloom", "blocked", "counting", "cuckoo", "growing", "fuse", "ribbon", "cascade", "window"];
/// Kinds that are built of all their keys, and take no more.
export const FINISHED = ["fuse", "ribbon", "cascade"];
export const OPTIONS = ["keys", "rate", "bytes", "kind", "seed", "secret", "secretInFile", "ignoreCase", "url", "values", "within", "last", "generations", "quiet"];

/// A number that was not given is NaN.
function number(options, name, whole) {
  const value = options[name];
  if (value === undefined) return NaN;
  const sound = typeof value === "number" && (whole ? Number.isSafeInteger(value) && value >= 0 : !Number.isNaN(value));
  if (!sound) throw wrong(name, whole ? "a whole number from 0 to 2^53-1" : "a number", value);
  return value;
}

export function flag(options, name, usual) {
  const value = options[name] ?? usual;
  if (typeof value !== "boolean") throw wrong(name, "true or false", value);
  return value;
}

export function check(options, known) {
  if (typeof options !== "object" || options === null) throw new TypeError(`options: expected an object, got ${sort(options)}`);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw wrong("options", `one of ${known.join(", ")}`, name);
  }
}

export function kindNumber(kind, among = KINDS) {
  if (!among.includes(kind)) throw wrong("kind", `one of ${[...new Set(among)].join(", ")}`, kind);
  return KINDS.indexOf(kind, 1);
}

/// Tells the library what is wished for.
export function wish(options, kind) {
  const [rate, bytes] = [number(options, "rate"), number(options, "bytes", true)];
  // A window of the last keys is made for so many.
  const keys = number(options, options.last === undefined ? "keys" : "last", true);
  wasm.wish_size(kind, keys, rate, bytes);
  if (KINDS[kind] === "window") wishWindow(options);
  wishHash(options);
}

const WINDOW_OPTIONS = ["within", "last", "generations", "quiet"];

export function wishSize(options, kind) {
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
export function secretAt(secret, orRandom) {
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
export function plan(options) {
  ready();
  check(options, OPTIONS);
  return guarded(() => {
    wishSize(options, kindNumber(kindOf(options)));
    if (!wasm.plan()) throw failure();
    return answer();
  });
}

/// A window needs no other word than its length.
export function kindOf(options) {
  return options.kind ?? (options.within !== undefined || options.last !== undefined ? "window" : "blocked");
}

/// When keys are seen or asked: `at` is a moment, one for each key, or now.
export function moments(at) {
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
