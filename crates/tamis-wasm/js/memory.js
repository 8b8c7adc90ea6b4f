// The WebAssembly library and its linear memory. Filters live there, and a Filter holds the address of one. Keys go there
// through one block of memory that stays in place.
//
// Only this module assigns what it exports by `let`; the others always see the present value.

const decoder = new TextDecoder();

/// What the library exports.
export let wasm;
let memory;
// Views of linear memory. When it grows they become empty, and `see` makes new ones.
export let bytes = new Uint8Array(0);
export let block;
export let ends;
export let times;
export let answers;
export let counts;
export let big;
// The block of keys: where its bytes begin and end, and how many keys it takes.
export let start = 0;
let limit = 0;
export let most = 0;
// Where the library's stack pointer is while no call is running.
let rest;
// What ended a call in the middle, if anything has.
let trap;

export function attach(exports) {
  if (wasm !== undefined) return;
  wasm = exports;
  memory = exports.memory;
  start = wasm.block_bytes_at();
  limit = start + wasm.block_bytes();
  most = wasm.block_keys();
  rest = wasm.__stack_pointer.value;
  see();
}

/// Whether `attach` was called.
export function isAttached() {
  return wasm !== undefined;
}

/// What the module imports: random bytes. `crypto` is a Web Crypto.
export function imports(crypto = globalThis.crypto) {
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

export function see() {
  if (trap !== undefined) throw stopped();
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
export function ready() {
  if (wasm === undefined) {
    throw new Error('tamis is not loaded: expected `await init()` of "tamis/init" before its first use');
  }
  if (bytes.length === 0) see();
}

/// The bytes that a call has left.
export function reply() {
  if (bytes.length === 0) see();
  const at = wasm.reply_at();
  return bytes.subarray(at, at + wasm.reply_length());
}

/// The JSON that a call has left.
export function answer() {
  return JSON.parse(decoder.decode(reply()));
}

/// The error that a call has left.
export function failure() {
  return new Error(decoder.decode(reply()));
}

/// The address that a call returned, 0 being an error.
export function made(at) {
  if (at === 0) throw failure();
  return at;
}

/// Runs `work`, which calls the library and no code of users.
export function guarded(work) {
  try {
    return work();
  } catch (error) {
    throw caught(error);
  } finally {
    if (bytes.length === 0 && trap === undefined) see();
  }
}

// Stands in for the library after a trap: `dispose` and cleaning up still work, and do nothing.
const STOPPED = { filter_free() {}, list_free() {}, draft_free() {} };

/// The error to throw for one that came out of a call of the library. If the call ended in the middle, by a trap or for
/// lack of stack, memory may be half changed, so nothing uses the library any more.
export function caught(error) {
  if (trap !== undefined) return error;
  if (!(error instanceof WebAssembly.RuntimeError) && wasm.__stack_pointer.value === rest) return error;
  trap = error;
  wasm = STOPPED;
  bytes = new Uint8Array(0);
  return stopped();
}

function stopped() {
  const used = Math.round(memory.buffer.byteLength / 2 ** 20);
  return new Error(
    `tamis stopped in the middle of a call (${trap.message}, with ${used} of 4096 MB in use), and its filters may be damaged: ` +
      "load it again in a new process, worker or page",
    { cause: trap },
  );
}

/// Pieces of bytes as one.
export function joined(pieces) {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
