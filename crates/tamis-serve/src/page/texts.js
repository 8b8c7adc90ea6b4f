// The page's texts, in the language that the reader chose; en.js and zh.js hold them.

import en from "./en.js";
import zh from "./zh.js";

const tables = { en, zh };
const memory = "tamis-language";

/** Whether there is a table for it. */
export const isLanguage = (name) => Object.hasOwn(tables, name ?? "");

let chosen = preferred();
export const language = () => chosen;

/** What the reader chose before, or else the browser says. */
export function preferred() {
  let before = null;
  try {
    before = localStorage.getItem(memory);
  } catch {
    // Not allowed here: then nothing is remembered.
  }
  if (isLanguage(before)) return before;
  return navigator.language?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** Takes a language; one that was chosen by hand is kept for the next visit. */
export function speak(name, byHand) {
  chosen = name;
  if (!byHand) return;
  try {
    localStorage.setItem(memory, name);
  } catch {
    // As above.
  }
}

/** A text with its values in place, as strings and elements. */
export function parts(key, values = {}) {
  const text = tables[chosen][key];
  if (text === undefined) {
    console.error(`no text: ${key}`);
    return [key];
  }
  return text.split(/\{(\w+)\}/).map((part, i) => (i % 2 ? values[part] : part));
}

/** The same as one string. */
export const t = (key, values) => parts(key, values).join("");

const isSaid = (key) => key.startsWith("said.");
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
// The longest first: a phrase would also fit the sentence that it is in.
const patterns = Object.keys(en).filter(isSaid).sort((one, other) => en[other].length - en[one].length).map((key) => {
  const names = [];
  const source = en[key].split(/\{(\w+)\}/).map((part, i) => (i % 2 ? (names.push(part), "(.+?)") : escaped(part)));
  return { key, names, pattern: new RegExp(`^${source.join("")}$`, "s") };
});

/** What the service says in English, in the reader's language; a sentence that has no translation stays as it is. */
export function said(text) {
  if (chosen === "en") return text;
  const sentences = text.split(/(?<=\.) (?=[A-Z])/);
  if (sentences.length > 1) return sentences.map(said).join("");
  for (const { key, names, pattern } of patterns) {
    const found = text.match(pattern);
    if (found) return t(key, Object.fromEntries(names.map((name, i) => [name, said(found[i + 1])])));
  }
  return text;
}
