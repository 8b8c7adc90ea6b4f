/**
 * A key: text (as UTF-8), bytes, or an integer from -2^63 to 2^64-1 (as 8 little-endian bytes). Of a filter whose keys are made of
 * several `values`, an array of as many.
 */
export type Key = string | Uint8Array | bigint | number | readonly (string | Uint8Array | bigint | number)[];

/** Keys that lie one behind the other, and where each ends: the fastest way to bring many. */
export interface PackedKeys {
  bytes: Uint8Array;
  ends: Uint32Array;
}

/** Many keys. */
export type Keys = Iterable<Key> | BigUint64Array | BigInt64Array | PackedKeys;

/** Bytes in a buffer of their own, as a `Blob` or a `Response` takes them, in every version of TypeScript. */
export type Bytes = ReturnType<Uint8ArrayConstructor["of"]>;

export type Kind = "blocked" | "bloom" | "counting" | "cuckoo" | "growing" | "fuse" | "ribbon" | "cascade" | "window";

/** How keys are hashed, and made before. */
export interface HashOptions {
  /** Tells filters apart; it protects nothing. */
  seed?: bigint | number;
  /** For keys that an adversary may choose: 16 secret bytes, or `true` for random ones. */
  secret?: Uint8Array | true;
  /** Whether the secret is stored in the file (the default), or kept by you. */
  secretInFile?: boolean;
  /** Keys that differ only in case are the same. */
  ignoreCase?: boolean;
  /** Keys that are URLs are normalised as browsers do, without their fragment. */
  url?: boolean;
  /** A key is an array of this many values. */
  values?: number;
}

/** What a filter shall be: two of `keys`, `rate` and `bytes`; of a window, `keys` and `rate`, or `last` and `rate`. */
export interface FilterOptions extends HashOptions {
  /** The number of keys it is made for; of a growing filter, a guess. Not with `last`. */
  keys?: number;
  /** How often a key that was not added may get a "yes", e.g. 0.01. */
  rate?: number;
  /** How large it may be. */
  bytes?: number;
  /** "blocked", if nothing is said; "window" with `within` or `last`. */
  kind?: Exclude<Kind, "fuse" | "ribbon" | "cascade">;
  /** A window: how long keys are remembered, in milliseconds. */
  within?: number;
  /** A window: how many of the last keys are remembered. It is made for so many: give `rate`, too, and not `keys`. */
  last?: number;
  /** A window: in how many steps it forgets, 1 to 62; 8 if nothing is said. */
  generations?: number;
  /** A window: whether seeing a key again renews it. */
  quiet?: boolean;
}

export interface PlanOptions extends Omit<FilterOptions, "kind"> {
  kind?: Kind;
}

export interface Plan {
  kind: Kind;
  keys: number;
  /** The rate with all keys. */
  rate: number;
  /** The rate that is promised. */
  promise: number;
  bytes: number;
  bitsPerKey: number;
  hashes: number;
}

export interface BuildOptions extends HashOptions {
  rate: number;
  /** "fuse", if nothing is said; "cascade" with `allow`. */
  kind?: "fuse" | "ribbon" | "cascade";
  /** Keys that must get a "no". */
  allow?: Keys;
  /** What happens to a key on both lists; refused, if nothing is said. */
  both?: "refuse" | "block" | "allow";
}

export interface OpenOptions {
  /** The secret of a filter whose file does not contain it. */
  secret?: Uint8Array;
  /** Opens a file that was being written when its machine went down, and may lack keys. */
  acceptLoss?: boolean;
}

export interface FetchOptions extends OpenOptions, Omit<RequestInit, "body" | "method"> {
  /** A filter that was fetched before: if the server still has the same file, it is returned. */
  known?: Filter;
  /** Larger files are an error. */
  maxBytes?: number;
  /** Another `fetch` than the global one. */
  fetch?: typeof globalThis.fetch;
}

/** When keys are seen or asked; only windows heed it. Now, if nothing is said. */
export interface When {
  at?: Date | number;
}

/** When each of many keys is seen or asked. */
export interface WhenEach {
  at?: Date | number | readonly (Date | number)[] | Float64Array;
}

export interface Info {
  kind: Kind;
  /** The number of distinct keys; estimated unless `counted`. */
  keys: number;
  counted: boolean;
  capacity: number;
  /** The promised rate, and the expected one now. */
  rate: number;
  rateNow: number;
  bytes: number;
  hash: string;
  seed: bigint;
  keyed: boolean;
  /** Whether the secret is not in the file. */
  apart: boolean;
  ignoreCase: boolean;
  url: boolean;
  values: number;
  /** Of a window: milliseconds, or keys. */
  within?: number;
  last?: number;
  generations?: number;
  quiet?: boolean;
  /** Of a window: the latest moment that it has seen. */
  latest?: Date | null;
}

/** Size and rate, before anything is made. */
export function plan(options: PlanOptions): Plan;

/** A set of keys that never gives a false "no", and a false "yes" at the promised rate. */
export class Filter {
  /** An empty filter. */
  constructor(options: FilterOptions);

  /** The filter in a `.tamis` file's bytes, which are copied once. */
  static open(file: Uint8Array | ArrayBuffer, options?: OpenOptions): Filter;

  /** A filter of all its keys that takes no more: as small as it gets. */
  static build(keys: Keys, options: BuildOptions): Filter;

  /** The filter at an address, read while it arrives. */
  static fetch(address: string | URL | Request, options?: FetchOptions): Promise<Filter>;

  /** Whether the key may have been added: never a false "no". */
  has(key: Key, when?: When): boolean;

  /** Adds a key; whether it was new. */
  add(key: Key, when?: When): boolean;

  /** Asks many keys: 1 or 0 for each. */
  hasMany(keys: Keys, when?: WhenEach): Bytes;

  /** Adds many keys; 1 for each that was new, else 0. If one can't be added, those before it are in. */
  addMany(keys: Keys, when?: WhenEach): Bytes;

  /** Takes back one adding of a key that was added (counting, cuckoo); whether it seemed present. */
  remove(key: Key): boolean;

  /** How often a key was added, at most (counting, cuckoo). */
  count(key: Key): number;

  /** Adds all keys of a filter that was made alike. */
  merge(other: Filter): void;

  /** A filter of the keys of both, which were made alike. */
  union(other: Filter): Filter;

  copy(): Filter;

  /** Removes all keys. */
  clear(): void;

  /** The bytes of a `.tamis` file. */
  toBytes(): Bytes;

  info(): Info;

  readonly kind: Kind;
  /** The number of distinct keys, counted or estimated. */
  readonly keys: number;
  readonly rate: number;
  readonly rateNow: number;
  readonly capacity: number;
  /** The size of its body. */
  readonly bytes: number;
  /** The tag that the server gave to the file it was fetched from. */
  readonly etag: string | null;

  /** Frees its memory now, as the end of a block with `using` does. Otherwise it is freed some time after it is out of use. */
  dispose(): void;
  [Symbol.dispose](): void;
}
