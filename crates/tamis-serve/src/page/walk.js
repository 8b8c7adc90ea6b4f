// The card that takes one key through the filter, step by step.

import { h, put } from "./dom.js";
import { cells } from "./cells.js";
import { table } from "./kicks.js";
import { stepsOf } from "./steps.js";
import { parts, t } from "./texts.js";

let card, stepped; // the card, and what to do when a step was taken
let chosen = null; // { list: "a" or "ask", key }; without a choice, the first key
let step = 0;
let steps = [];
let picture = null;

/** `begin(list, key)` is asked to add a key or to ask for it. */
export function mount(begin, onStep) {
  stepped = onStep;
  const typed = () => card.querySelector("#step-key").value.replace(/[\r\n]/g, "");
  const start = (list) => typed() !== "" && begin(list, typed());
  card = h("section", { class: "card walk", "aria-labelledby": "walk-title", onkeydown: keys },
    h("h2", { id: "walk-title" }, t("step.title")),
    h("form", { class: "walk-key", onsubmit: (event) => { event.preventDefault(); start("ask"); } },
      h("label", { for: "step-key" }, t("step.key")),
      h("input", { id: "step-key", type: "text", maxlength: 1000, autocomplete: "off", spellcheck: "false" }),
      h("button", { type: "button", id: "step-add", onclick: () => start("a") }, t("step.add")),
      h("button", { type: "submit", id: "step-ask", class: "second" }, t("step.ask"))),
    h("p", { id: "step-goal" }),
    h("div", { id: "step-picture" }),
    h("div", { id: "step-told", role: "status" }),
    h("div", { class: "walk-buttons" },
      h("button", { type: "button", id: "step-back", class: "second", onclick: () => go(step - 1) }, t("step.back")),
      h("button", { type: "button", id: "step-next", onclick: () => go(step + 1 < steps.length ? step + 1 : 0) }),
      h("span", { id: "step-count", class: "aside" })),
    h("details", { id: "step-explained" }, h("summary", null, t("step.explained")), h("pre", { tabindex: "0", lang: "en" })));
  return card;
}

/** Arrows do what the buttons do, except where one types. */
function keys(event) {
  if (event.target.matches("input") || event.altKey || event.ctrlKey || event.metaKey) return;
  const to = { ArrowRight: step + 1, ArrowLeft: step - 1, Home: 0, End: steps.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  go(to);
}

function go(to) {
  if (to < 0 || to >= steps.length || to === step) return;
  step = to;
  show();
  stepped();
}

/** Takes another key, from its first step. */
export function choose(list, key) {
  chosen = { list, key };
  step = 0;
}

export function forget() {
  chosen = null;
  step = 0;
}

export function read(query) {
  const [list, key] = [query.get("walk"), query.get("key")];
  chosen = ["a", "ask"].includes(list) && key ? { list, key } : null;
  step = /^\d{1,4}$/.test(query.get("step") ?? "") ? Number(query.get("step")) : 0;
}

export function write(query) {
  if (chosen) {
    query.set("walk", chosen.list);
    query.set("key", chosen.key);
  }
  if (step > 0) query.set("step", step);
}

/** The list and the number of the key that is walked with. */
export function walked(lists) {
  const at = chosen ? lists[chosen.list].indexOf(chosen.key) : -1;
  if (at >= 0) return { list: chosen.list, index: at };
  const list = ["a", "ask"].find((name) => lists[name].length > 0);
  return list ? { list, index: 0 } : null;
}

/** Draws the card for what the service told. */
export function draw(kind, answer, place, width) {
  const isAdded = place?.list === "a";
  const told = place && (isAdded ? answer.a.keys : answer.asked)[place.index];
  for (const id of ["step-picture", "step-told", "step-back", "step-next", "step-count", "step-explained"]) card.querySelector(`#${id}`).hidden = !told;
  if (!told) {
    steps = [];
    card.querySelector("#step-goal").textContent = t("step.none");
    return;
  }
  card.querySelector("#step-explained").hidden = isAdded;
  card.querySelector("#step-explained pre").textContent = told.explained ?? "";
  const before = isAdded ? answer.before : answer.a.cells;
  const inside = isAdded ? answer.a.keys.slice(0, place.index) : answer.a.keys;
  steps = stepsOf({ kind, list: place.list, told, cells: before, keys: inside });
  step = Math.min(step, steps.length - 1);
  put(card.querySelector("#step-goal"), parts(`step.goal.${place.list}`, { key: h("strong", null, told.key) }));
  picture = kind === "cuckoo"
    ? table({ cells: before, moves: (isAdded && told.moves) || [], told, width })
    : cells({ kind, cells: before, width, name: "a", keys: isAdded ? answer.a.keys.slice(0, place.index + 1) : inside, label: "step.picture" });
  put(card.querySelector("#step-picture"), picture.svg);
  show();
}

function show() {
  const { title, text, verdict } = steps[step];
  picture.update(steps[step]);
  put(card.querySelector("#step-told"), h("p", { class: verdict ? "walk-end" : null, "data-verdict": verdict }, h("strong", { class: "walk-title" }, title), " ", text.map((part) => part?.cloneNode?.(true) ?? part)));
  card.querySelector("#step-count").textContent = t("step.count", { n: step + 1, all: steps.length });
  card.querySelector("#step-next").textContent = t(step + 1 < steps.length ? "step.next" : "step.again");
  card.querySelector("#step-back").setAttribute("aria-disabled", String(step === 0));
  card.dataset.step = step;
}
