// Errors about values of the caller's: what was expected, and what came.

export function wrong(what, expected, got) {
  const shown = typeof got === "string" ? JSON.stringify(got) : typeof got === "bigint" ? `${got}n` : String(got);
  return new TypeError(`${what}: expected ${expected}, got ${shown}`);
}

/// What a value is, for errors.
export function sort(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? (value.constructor?.name ?? "an object") : typeof value === "number" ? `the number ${value}` : typeof value;
}
