// The tabs, and the address bar, which holds what they show:
// #calculator?keys=10M&rate=0.01

import * as calculator from "./calculator.js";
import * as playground from "./playground.js";
import * as filters from "./filters.js";

const pages = { calculator, playground, filters };
const first = "calculator";
let current = null;

/** The page and its state in the address bar. */
function address() {
  const [name, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
  return { name: Object.hasOwn(pages, name) ? name : first, state: new URLSearchParams(query) };
}

// No id is an address, or the browser would go there.
const tab = (name) => document.getElementById(`tab-${name}`);
const panel = (name) => document.getElementById(`panel-${name}`);

function show() {
  const { name, state } = address();
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

/** Goes to a page, as a link would. */
function go(name, state = "") {
  history.pushState(null, "", state ? `#${name}?${state}` : `#${name}`);
  show();
}

// While a slider is dragged or a text typed, its states are one step back.
let unfinished = false;

/** Keeps the state of a page in the address bar. */
function remember(name, state, finished) {
  const url = `#${name}?${state}`;
  if (url !== location.hash) {
    if (unfinished) history.replaceState(null, "", url);
    else history.pushState(null, "", url);
  }
  unfinished = !finished;
}

for (const [name, page] of Object.entries(pages)) {
  page.mount(panel(name), (state, finished = true) => remember(name, state, finished));
  tab(name).addEventListener("click", () => {
    unfinished = false;
    if (current !== name) go(name, page.state?.() ?? "");
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
  show();
});
// Not as a link: the address is the state's.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
show();
