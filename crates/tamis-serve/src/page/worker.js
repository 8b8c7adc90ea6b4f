// The library as WebAssembly, away from the page, which stays responsive. Questions come as
// { id, call, text }, a file as { id, file }, and its secret key as { id, key }; each is answered
// by { id, value }, { id, problem } or { id, needsKey }, and a file that is read by { id, part } before.
"use strict";

const piece = 8 << 20; // bytes of a file that are read at once
let opened = null; // { at, length }: the file in the library's memory, where it stays

/** Nothing here needs what is random: no filter that is made here has a secret. */
const imports = { tamis: { random: () => 0 } };

async function load() {
  const response = await fetch("tamis.wasm");
  if (!response.ok) throw new Error(`tamis.wasm: ${response.status} ${response.statusText}`);
  const { instance } = await WebAssembly.instantiate(await response.arrayBuffer(), imports);
  return instance.exports;
}
const loading = load();
loading.catch(() => {}); // whoever asks is told

// Addresses beyond 2 GiB are negative numbers at first.
const bytes = (library, at, length) => new Uint8Array(library.memory.buffer, at >>> 0, length >>> 0);

/** Calls a function with text in the library's memory. */
function withText(library, text, call) {
  const encoded = new TextEncoder().encode(text);
  const at = library.allocate(encoded.length);
  if (at === 0) throw new Error("out of memory");
  bytes(library, at, encoded.length).set(encoded);
  const result = call(at, encoded.length);
  library.free(at, encoded.length);
  return result;
}

/** What the last call has left. */
const reply = (library) => new TextDecoder().decode(bytes(library, library.reply_at(), library.reply_length()));

/** Reads a file into the library's memory, piece by piece: it is never there twice. */
async function read(library, file, tell) {
  const at = library.allocate(file.size);
  if (at === 0) throw new Error(`file: expected one that fits into this page's memory, at most 2 GB, got ${file.size} bytes; \`tamis info\` and \`tamis check\` take any size`);
  for (let done = 0; done < file.size; ) {
    const part = new Uint8Array(await file.slice(done, done + piece).arrayBuffer());
    if (part.length === 0) throw new Error("file: expected its whole length, but it became shorter while it was read");
    bytes(library, (at >>> 0) + done, part.length).set(part);
    done += part.length;
    tell(done / file.size);
  }
  opened = { at, length: file.size };
}

/** Opens the file that was read; an empty key is none. */
function open(library, key) {
  const state = withText(library, key, (keyAt, keyLength) => library.page_open(opened.at, opened.length, keyAt, keyLength));
  const text = reply(library);
  return [{ problem: text }, { value: text }, { needsKey: text }][state];
}

/** Reads a file and opens it. One that is refused gives its memory back, for the next. */
async function readAndOpen(library, file, tell) {
  await read(library, file, tell);
  const told = open(library, "");
  if (told.problem !== undefined) {
    library.free(opened.at, opened.length);
    opened = null;
  }
  return told;
}

async function answer({ id, call, text, file, key }) {
  const library = await loading;
  if (file) return readAndOpen(library, file, (part) => postMessage({ id, part }));
  if (key !== undefined) return open(library, key);
  const isAnswer = withText(library, text, (at, length) => library[`page_${call}`](at, length));
  return isAnswer ? { value: reply(library) } : { problem: reply(library) };
}

addEventListener("message", async (event) => {
  const { id } = event.data;
  let told;
  try {
    told = await answer(event.data);
    if (told.value !== undefined) told.value = JSON.parse(told.value);
  } catch (error) {
    // A library that has stopped in the middle is in no state to be asked again.
    told = { problem: error.message, isBroken: error instanceof WebAssembly.RuntimeError };
  }
  postMessage({ id, ...told });
});
