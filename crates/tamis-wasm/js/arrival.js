// Files, whole or in pieces. What they become is the address of a filter.
import { bytes, failure, guarded, joined, made, ready, see, start, wasm } from "./memory.js";
import { flag, secretAt } from "./options.js";

/// How many bytes a file's header has.
export const HEADER = 128;

/// Room for the body of a filter of `length` bytes, whose header is there.
export function begin(header, length, options) {
  return guarded(() => {
    const accept = flag(options, "acceptLoss", false);
    const secret = secretAt(options.secret, false);
    // Behind the secret.
    bytes.set(header, start + 16);
    return new Draft(made(wasm.draft(start + 16, header.length, length, secret, accept)));
  });
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

  /// The address of the filter.
  finish() {
    const at = this.#at;
    this.#at = 0;
    return made(guarded(() => wasm.draft_finish(at)));
  }

  drop() {
    if (this.#at !== 0) guarded(() => wasm.draft_free(this.#at));
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
    this.#draft = begin(this.#header, length, this.#options);
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
      begin(this.#header, this.#received, this.#options).drop();
    }
    return this.#draft.finish();
  }

  drop() {
    this.#draft?.drop();
  }
}

/// How long a file is, as its header says.
function wholeLength(header, options) {
  ready();
  const length = guarded(() => {
    const secret = secretAt(options.secret, false);
    bytes.set(header, start + 16);
    return wasm.whole_length(start + 16, header.length, secret);
  });
  if (length < 0) throw failure();
  return length;
}

/// The address of the filter that a response has.
export async function arrive(response, options, maxBytes) {
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
