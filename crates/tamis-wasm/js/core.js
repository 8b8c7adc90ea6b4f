// Loaders and tests import this module. It names every other one, so that a browser requests all of them at once.
export { attach, imports, isAttached } from "./memory.js";
export { hasSimd, withoutSimd } from "./simd.js";
import "./url.js";
import "./errors.js";
import "./keys.js";
export { plan } from "./options.js";
import "./arrival.js";
import "./batches.js";
export { Filter } from "./filter.js";
