export * from "./index.js";

/** What the library is loaded from: a compiled module, its bytes, or a response with them. */
export type Source = WebAssembly.Module | BufferSource | Response;

/** Loads the library, once; without a source, from the files next to this one. */
export default function init(source?: Source | Promise<Source>): Promise<void>;

/** Loads the library without waiting: for workers that get a module. */
export function initSync(source: WebAssembly.Module | BufferSource): void;
