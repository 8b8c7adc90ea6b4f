// URLs that mean the same, written the same: by the rules of the WHATWG, without their fragment. Engines differ in paths and
// queries, so these are made here, as in crates/tamis/src/key_rule/web.rs; what is before them is the engine's.

const utf8 = new TextEncoder();
// Bytes that aren't UTF-8 aren't a URL.
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/// The normal form of a URL, or the key as it is if it isn't one. A text must have UTF-8.
export function normal(key) {
  let text = key;
  if (typeof key !== "string") {
    try {
      // A copy: shared memory is not decoded.
      text = strict.decode(key.slice());
    } catch {
      return key;
    }
  }
  const [whole] = text.replace(/^[\0- ]+|[\0- ]+$/g, "").replace(/[\t\n\r]/g, "").split("#", 1);
  const end = whole.includes("?") ? whole.indexOf("?") : whole.length;
  const colon = whole.slice(0, end).indexOf(":");
  const scheme = whole.slice(0, Math.max(colon, 0)).replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  if (!/^[a-z][a-z0-9+.-]*$/.test(scheme)) return key;
  const isSpecial = /^(https?|wss?|ftp|file)$/.test(scheme);
  const query = encoded(whole.slice(end), isSpecial ? " \"#<>'" : ' "#<>');
  const rest = whole.slice(colon + 1, end);
  const { authority, path } = parted(rest, scheme, isSpecial);
  if (path === undefined) return `${scheme}:${encoded(rest.replace(/ $/, "%20"), "")}${query}`;
  const before = beforePath(scheme, authority, isSpecial);
  if (before === null) return key;
  const plain = path === "" && !isSpecial ? "" : withoutDots(path.split(isSpecial ? /[/\\]/ : "/").slice(1), scheme === "file");
  // Two slashes would begin an authority.
  const dot = before === `${scheme}:` && plain.startsWith("//") ? "/." : "";
  return before + dot + plain + query;
}

/// The authority, if there is one, and the path. Where the rest is opaque, there is neither.
function parted(rest, scheme, isSpecial) {
  const slashes = rest.match(isSpecial ? /^[/\\]*/ : /^\/*/)[0].length;
  const isFile = scheme === "file";
  if (slashes === 0 && !isSpecial) return {};
  if (slashes < 2 && (isFile || !isSpecial)) return { authority: null, path: slashes === 0 ? `/${rest}` : rest };
  const after = rest.slice(isSpecial && !isFile ? slashes : 2);
  const length = after.search(isSpecial ? /[/\\]/ : /\//);
  const authority = length < 0 ? after : after.slice(0, length);
  if (isFile && isDrive(authority)) return { authority: null, path: `/${after}` };
  return { authority, path: after.slice(authority.length) };
}

/// The beginning of a URL, up to its path; null if it isn't valid.
function beforePath(scheme, authority, isSpecial) {
  if (authority === null) return scheme === "file" ? "file://" : `${scheme}:`;
  const host = authority.slice(authority.lastIndexOf("@") + 1);
  if (scheme !== "file" && host === "" && authority.includes("@")) return null;
  if (!isSpecial && host.includes("\\")) return null;
  const url = parsed(`${scheme}://${authority}/`);
  if (url === null || (isSpecial && !hasSoundHost(url.hostname))) return null;
  const before = url.href.slice(0, url.href.length - url.pathname.length);
  const user = before.length - url.host.length;
  return isSpecial ? before.slice(0, user) + withStars(url.host) : before;
}

/// A host in which `*` stays, which some engines encode.
const withStars = (host) => host.replaceAll("%2A", "*");

function withoutDots(segments, isFile) {
  const path = [];
  if (segments.length === 0) path.push("");
  for (const [i, segment] of segments.entries()) {
    const dots = segment.replace(/%2e/gi, ".");
    if (dots !== "." && dots !== "..") {
      path.push(isFile && path.length === 0 && isDrive(segment) ? segment.replace("|", ":") : encoded(segment, ' "#<>?`{}'));
      continue;
    }
    if (dots === ".." && !(isFile && path.length === 1 && isDrive(path[0]))) path.pop();
    if (i === segments.length - 1) path.push("");
  }
  return path.map((segment) => `/${segment}`).join("");
}

const isDrive = (segment) => /^[a-zA-Z][:|]$/.test(segment);

/// The text with some characters, and what is not printed or not ASCII, as percent and two digits.
function encoded(text, others) {
  const escape = (byte) => {
    const character = String.fromCharCode(byte);
    if (byte >= 32 && byte < 127 && !others.includes(character)) return character;
    return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  };
  return Array.from(utf8.encode(text), escape).join("");
}

function parsed(text) {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/// Whether there is such a host on the web: some engines take one with a space, or with Punycode that is not what its
/// text would be.
function hasSoundHost(hostname) {
  if (withStars(hostname).includes("%")) return false;
  if (!hostname.includes("xn--")) return true;
  const labels = hostname.split(".").map((label) => (label.startsWith("xn--") ? punycode(label.slice(4)) : label));
  return !labels.includes(null) && parsed(`http://${labels.join(".")}`)?.hostname === hostname;
}

/// The text that is written so (RFC 3492); null if it isn't Punycode.
function punycode(written) {
  const dash = written.lastIndexOf("-");
  const text = Array.from(written.slice(0, Math.max(dash, 0)), (character) => character.codePointAt(0));
  let [code, at, bias] = [128, 0, 72];
  for (let i = dash + 1; i < written.length; ) {
    const before = at;
    for (let [weight, k] = [1, 36]; ; k += 36) {
      const digit = "abcdefghijklmnopqrstuvwxyz0123456789".indexOf(written[i++] ?? "-");
      if (digit < 0) return null;
      at += digit * weight;
      const threshold = Math.min(Math.max(k - bias, 1), 26);
      if (digit < threshold) break;
      weight *= 36 - threshold;
      if (weight > 2 ** 31) return null;
    }
    let delta = Math.floor((at - before) / (before === 0 ? 700 : 2));
    delta += Math.floor(delta / (text.length + 1));
    let steps = 0;
    for (; delta > 455; steps += 36) delta = Math.floor(delta / 35);
    bias = steps + Math.floor((36 * delta) / (delta + 38));
    code += Math.floor(at / (text.length + 1));
    at %= text.length + 1;
    if (code > 0x10ffff) return null;
    text.splice(at++, 0, code);
  }
  return String.fromCodePoint(...text);
}
