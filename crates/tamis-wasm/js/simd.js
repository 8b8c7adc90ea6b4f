// Which of the package's two builds an engine needs, and the one without SIMD.
import { joined } from "./memory.js";

/// Whether this engine has SIMD: a function of two of its instructions is a valid module.
export function hasSimd() {
  const code = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];
  return WebAssembly.validate(new Uint8Array(code));
}

/// The build without SIMD, made from the other and its differences: the two are nearly the same, and few engines need it.
/// A difference is three numbers (LEB128): how many bytes follow as they are, how many then come from the
/// other build, and from where.
export function withoutSimd(other, differences) {
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
