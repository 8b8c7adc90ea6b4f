// The tabs, the language, and the address bar, which holds what they show:
// #calculator?keys=10M&rate=0.01

import * as why from "./why.js";
import * as calculator from "./calculator.js";
import * as playground from "./playground.js";
import * as filters from "./filters.js";
import { count, h, put } from "./dom.js";
import { listen } from "./dropped.js";
import { isLanguage, language, preferred, speak, t } from "./texts.js";

const pages = { why, calculator, playground, filters };
const first = "calculator";
const longest = 16384; // characters of an address: what is longer is neither written nor read
let current = null;

/** The page and its state in the address bar. */
function address() {
  const isLong = location.hash.length > longest;
  tell(isLong ? t("share.ignored", { n: count(location.hash.length), most: count(longest) }) : "");
  const [name, query = ""] = isLong ? [] : location.hash.slice(1).split(/\?(.*)/s);
  return { name: Object.hasOwn(pages, name ?? "") ? name : first, state: new URLSearchParams(query) };
}

/** The address of a state. The language is part of it where the reader's own is another. */
function hash(name, state, always = false) {
  const query = new URLSearchParams(state);
  query.delete("lang");
  if (always || language() !== preferred()) query.set("lang", language());
  const text = query.toString();
  return text ? `#${name}?${text}` : `#${name}`;
}

// No id is an address, or the browser would go there.
const tab = (name) => document.getElementById(`tab-${name}`);
const panel = (name) => document.getElementById(`panel-${name}`);

/** What is said below the head of the page. */
function tell(...said) {
  put(document.getElementById("shared"), ...said);
}

function show(name, state) {
  const asked = state.get("lang");
  if (isLanguage(asked) && asked !== language()) {
    speak(asked, false);
    mount();
  }
  for (const other of Object.keys(pages)) {
    const selected = other === name;
    tab(other).setAttribute("aria-selected", String(selected));
    tab(other).tabIndex = selected ? 0 : -1;
    panel(other).hidden = !selected;
  }
  document.title = `${tab(name).textContent} – Tamis`;
  if (current && current !== name) pages[current].leave?.();
  current = name;
  pages[name].show(state);
}

/** Shows what the address bar says. */
function follow() {
  const { name, state } = address();
  show(name, state);
}

/** Goes to a page, as a link would. */
function go(name, state) {
  const url = hash(name, state);
  history.pushState(null, "", url.length <= longest ? url : `#${name}`);
  tell();
  show(name, new URLSearchParams(state));
}

// While a slider is dragged or a text typed, its states are one step back.
let unfinished = false;

/** Keeps the state of a page in the address bar. */
function remember(name, state, finished) {
  const url = hash(name, state);
  if (url.length > longest) return;
  if (url !== location.hash) {
    if (unfinished) history.replaceState(null, "", url);
    else history.pushState(null, "", url);
  }
  unfinished = !finished;
}

/** Writes everything in the chosen language. */
function mount() {
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = t(element.dataset.text);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", t(element.dataset.label));
  document.getElementById("language").lang = language() === "zh" ? "en" : "zh-CN";
  for (const [name, page] of Object.entries(pages)) {
    put(panel(name));
    page.mount(panel(name), (state, finished = true) => remember(name, state, finished));
  }
}

/** The other language, for what is shown now. */
function turn() {
  const state = pages[current].state?.() ?? "";
  speak(language() === "zh" ? "en" : "zh", true);
  mount();
  const url = hash(current, state);
  if (url.length <= longest) history.replaceState(null, "", url);
  tell();
  show(current, new URLSearchParams(state));
}

/** A link to what is shown, for the clipboard. */
async function share() {
  const url = new URL(hash(current, pages[current].state?.() ?? "", true), location.href);
  if (url.hash.length > longest) {
    tell(t("share.too_long", { n: count(url.hash.length), most: count(longest) }));
    return;
  }
  try {
    await navigator.clipboard.writeText(url.href);
    tell(t("share.done"));
  } catch {
    // Not allowed, or not over plain HTTP: the keyboard can.
    const box = h("input", { type: "text", id: "shared-link", readonly: true, "aria-label": t("share.by_hand") });
    box.value = url.href;
    tell(t("share.by_hand"), box);
    box.select();
  }
}

for (const name of Object.keys(pages)) {
  tab(name).addEventListener("click", () => {
    unfinished = false;
    if (current !== name) go(name, pages[name].state?.() ?? "");
  });
  tab(name).addEventListener("keydown", (event) => {
    const names = Object.keys(pages);
    const at = names.indexOf(name);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const target = tab(names[(next + names.length) % names.length]);
    target.focus();
    target.click();
  });
}
// A step back or forward; also a link or a changed address.
addEventListener("popstate", () => {
  unfinished = false;
  follow();
});
document.getElementById("language").addEventListener("click", turn);
document.getElementById("share").addEventListener("click", share);
// Not as a link: the address is the state's.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
// A file that is dropped on any tab is opened in that of the filters.
listen(() => current !== "filters" && go("filters", ""));
document.getElementById("waiting").remove();
mount();
follow();
if (current !== "filters") filters.look();
