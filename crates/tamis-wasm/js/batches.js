// Many keys, hashed a batch at a time.
import { sort } from "./errors.js";
import { HALF, apart, copy, encodable, encoder, isInteger, isKey, write, writeInteger } from "./keys.js";
import { big, block, bytes, ends, guarded, most, see, start, wasm } from "./memory.js";
import { normal } from "./url.js";

// So many keys are written into the block at once: what is written is then still in the processor's cache.
const AT_ONCE = 512;

/// Hashes keys, a batch at a time, and runs `each` with the number of the batch's first key and how many it
/// has. Code of the caller, such as a generator of keys, may use and free filters: it runs only between batches,
/// each of which begins with `begin`.
export class Batches {
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
      this.#batch(() => this.#integers(keys));
    } else if (keys?.bytes instanceof Uint8Array && keys.ends instanceof Uint32Array) {
      const { bytes, ends } = keys;
      this.#batch(() => this.#packed(bytes, ends));
    } else if (Array.isArray(keys)) {
      for (let i = 0; i < keys.length; i += AT_ONCE) this.#list(keys.slice(i, i + AT_ONCE));
    } else if (typeof keys === "string" || ArrayBuffer.isView(keys) || typeof keys?.[Symbol.iterator] !== "function") {
      throw new TypeError(
        `keys: expected an array or another iterable of keys, a BigUint64Array, or { bytes, ends }, got ${sort(keys)}; pass one key in an array`,
      );
    } else {
      let some = [];
      for (const key of keys) {
        if (some.push(key) < AT_ONCE) continue;
        this.#list(some);
        some = [];
      }
      this.#list(some);
    }
  }

  one(key) {
    this.#list([key]);
  }

  #list(keys) {
    // From here on, nothing is the caller's.
    for (let i = 0; i < keys.length; i++) if (typeof keys[i] === "object" && Array.isArray(keys[i])) keys[i] = Array.from(keys[i]);
    this.#batch(() => this.#some(keys));
  }

  /// One batch, or more, of what `hash` hashes.
  #batch(hash) {
    guarded(() => {
      this.#begin();
      if (bytes.length === 0) see();
      hash();
      this.#run();
    });
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
      const value = url && values === 1 ? normal(typeof key === "string" ? encodable(key) : key) : key;
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

function otherValues(values, got) {
  return new TypeError(`key: expected an array of ${values} values, of which the filter's keys are made, got ${got}`);
}

function tooManyValues(got) {
  return new TypeError(
    `key: expected one value, of which the filter's keys are made, got an array of ${got}; ` +
      "make the filter with `values` for keys of several",
  );
}

function noKey(key) {
  return new TypeError(
    `key: expected a string, a Uint8Array or an integer (number or bigint), got ${sort(key)}; ` +
      "encode it yourself, in a way that stays the same, e.g. as a string",
  );
}
