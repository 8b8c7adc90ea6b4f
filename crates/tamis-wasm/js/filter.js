// The class Filter.
import { HEADER, arrive, begin } from "./arrival.js";
import { Batches } from "./batches.js";
import { sort, wrong } from "./errors.js";
import { copy, write } from "./keys.js";
import { answer, answers, bytes, caught, counts, failure, guarded, made, ready, reply, see, start, wasm } from "./memory.js";
import { FINISHED, KINDS, OPTIONS, check, kindNumber, kindOf, moments, wish, wishSize } from "./options.js";

const free = (at) => guarded(() => wasm.filter_free(at));
const freed = new FinalizationRegistry(free);
// Tells the constructor that the filter already exists.
const FOUND = Symbol("found");

export class Filter {
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
      at = guarded(() => {
        wishSize(options, kindNumber(kind));
        return made(wasm.create());
      });
    }
    this.#at = at;
    freed.register(this, at, this);
    const facts = guarded(() => wasm.facts(at));
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
    const draft = begin(data.subarray(0, HEADER), data.length, options);
    draft.put(data.subarray(HEADER));
    return new Filter(FOUND, draft.finish());
  }

  /// A filter that cannot be changed any more, of all its keys: as small as it gets.
  static build(keys, options) {
    ready();
    check(options, ["rate", "kind", "allow", "both", "seed", "secret", "secretInFile", "ignoreCase", "url", "values"]);
    const { allow, both = "refuse", kind = allow === undefined ? "fuse" : "cascade" } = options;
    if (options.rate === undefined) throw wrong("rate", "a number", undefined);
    const winner = ["refuse", "block", "allow"].indexOf(both);
    if (winner < 0) throw wrong("both", "refuse, block or allow", both);
    const list = guarded(() => {
      wish(options, kindNumber(kind, FINISHED));
      return made(wasm.list(winner));
    });
    const rule = { url: options.url ?? false, values: options.values ?? 1 };
    let left = true;
    try {
      const add = (keys, isAllowed) => {
        const begin = () => wasm.begin_list(list);
        const put = () => {
          if (!wasm.list_batch(list, isAllowed)) throw failure();
        };
        new Batches(rule, begin, put).all(keys);
      };
      add(keys, false);
      if (allow !== undefined) add(allow, true);
      left = false;
      return new Filter(FOUND, made(guarded(() => wasm.list_build(list))));
    } finally {
      if (left) guarded(() => wasm.list_free(list));
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
    const filter = new Filter(FOUND, await arrive(response, { secret, acceptLoss }, maxBytes));
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
      if (length >= 0) {
        try {
          return wasm.has(at, start, length, 0) !== 0;
        } catch (error) {
          throw caught(error);
        }
      }
    }
    this.#one(key, options, (way, millis) => wasm.has_batch(this.#at, way, millis));
    return answers[0] !== 0;
  }

  /// Adds a key; whether it was new.
  add(key, options) {
    const at = this.#at;
    if (this.#addsPlainly && at !== 0 && options === undefined && bytes.length !== 0) {
      const length = typeof key === "string" ? write(key) : key instanceof Uint8Array ? copy(key, 0) : -1;
      if (length >= 0) {
        let added;
        try {
          added = wasm.add(at, start, length, 0);
        } catch (error) {
          throw caught(error);
        }
        if (added < 0) throw failure();
        return added !== 0;
      }
    }
    this.#one(key, options, (way, millis) => {
      if (!wasm.add_batch(this.#at, way, millis)) throw failure();
    });
    return answers[0] !== 0;
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
    this.#one(key, undefined, () => {
      if (!wasm.remove_batch(this.#at)) throw failure();
    });
    return answers[0] !== 0;
  }

  /// How often a key was added, at most.
  count(key) {
    this.#one(key, undefined, () => {
      if (!wasm.count_batch(this.#at)) throw failure();
    });
    return counts[0];
  }

  /// Hashes a key and runs `work` with it. What it answers is in the block.
  #one(key, options, work) {
    this.#each(options, (batches) => batches.one(key), work);
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
    feed(new Batches(this.#rule, begin, each));
  }

  /// Adds all keys of a filter that was made alike.
  merge(other) {
    if (!(other instanceof Filter)) throw new TypeError(`other: expected a Filter, got ${sort(other)}`);
    const [at, its] = [this.#alive(), other.#alive()];
    if (at !== its && !guarded(() => wasm.unite(at, its))) throw failure();
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
    return new Filter(FOUND, made(guarded(() => wasm.copy(at))));
  }

  /// Removes all keys.
  clear() {
    const at = this.#alive();
    if (!guarded(() => wasm.clear(at))) throw failure();
  }

  /// The bytes of a `.tamis` file.
  toBytes() {
    const at = this.#alive();
    guarded(() => wasm.parts(at));
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
    guarded(() => wasm.info(at));
    const info = answer();
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
    free(this.#at);
    this.#at = 0;
  }
}

// Older engines don't know the symbol of `using`; what stands in for it there is this one.
Object.defineProperty(Filter.prototype, Symbol.dispose ?? Symbol.for("Symbol.dispose"), { value: Filter.prototype.dispose, writable: true, configurable: true });
