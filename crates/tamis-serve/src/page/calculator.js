// Keys, rate, size: any two. Every number comes from the library.

import { capital, choice, choose, complain, h, put, rate, short, typing } from "./dom.js";
import { curve } from "./curve.js";
import { calculate } from "./tamis.js";
import { said, t } from "./texts.js";

// What sliders reach; numbers beyond can be typed.
const fields = {
  keys: { from: 2, to: 12, text: (n) => short(n) },
  rate: { from: -9, to: -0.5, text: (n) => rate(n) },
  size: { from: 2.5, to: 12, text: (n) => `${short(n)}B` },
};
const needs = ["", "delete", "grow", "finished", "forget"];
const usualGenerations = "8";
const start = { keys: "10M", rate: "0.01", size: "16MB" };

const own = ["bits", "hashes"];

let root, remember, drawing;
let values = { ...start }; // as typed
let typedShape = { bits: "", hashes: "" }; // a Bloom filter of one's own, as typed
let find = "size";
let need = "";
let generations = usualGenerations; // of a window, as typed
let kind = ""; // chosen instead of the advised one
let sequence = 0;
let asked = null; // the state that was asked about last

export function mount(panel, keep) {
  root = panel;
  remember = keep;
  root.append(
    h("h1", { class: "only-read" }, t("tab.calculator")),
    h("div", { class: "columns" },
      h("form", { class: "card controls", onsubmit: (event) => event.preventDefault() },
        choice(t("calculator.find"), "find", ["size", "rate", "keys"].map((name) => [name, t(`calculator.find.${name}`)]), (value) => {
          find = value;
          changed(true);
        }),
        Object.entries(fields).map(([name, field]) => fieldOf(name, field)),
        choice(t("calculator.need"), "need", needs.map((name) => [name, t(`calculator.need.${name}`)]), (value) => {
          need = value;
          kind = "";
          changed(true);
        }),
        boxOf("number", "generations", t("calculator.generations"), t("calculator.generations.hint"), (text) => { generations = text; }),
        h("fieldset", { class: "own" }, h("legend", null, t("calculator.own")),
          h("div", { class: "numbers-row" }, own.map((name) => boxOf("own", name, t(`calculator.own.${name}`), t(`calculator.own.${name}.hint`), (text) => { typedShape[name] = text; }))),
          h("p", { id: "own-told", role: "status" }))),
      h("div", { class: "results" },
        h("p", { id: "plan-problem", class: "problem", role: "alert" }),
        h("section", { class: "card advice", "aria-labelledby": "advice-title" },
          h("h2", { id: "advice-title" }, t("calculator.advice")),
          h("div", { id: "advice", role: "status" }),
          h("div", { class: "command" },
            h("code", { id: "command", tabindex: "0", "aria-label": t("calculator.command") }),
            h("button", { type: "button", id: "copy", onclick: copy }, t("calculator.copy"))),
          h("p", { id: "copied", role: "status", class: "only-read" })),
        h("section", { class: "card", "aria-labelledby": "kinds-title" },
          h("h2", { id: "kinds-title" }, t("calculator.kinds")),
          h("div", { class: "scroll" }, h("table", { class: "kinds" },
            h("thead", null, h("tr", null,
              ["kind", "keys", "size", "bits_per_key", "misses", "rate.short", "own.bits", "own.hashes"].map((name) => h("th", { scope: "col" }, t(`calculator.${name}`))))),
            h("tbody", { id: "kinds" }))),
          h("ul", { id: "left-out", class: "left-out", lang: "en" })),
        h("section", { class: "card", "aria-labelledby": "curve-title" },
          h("h2", { id: "curve-title" }, t("curve.title")),
          h("div", { id: "curve" })),
        h("section", { class: "card", id: "redis", "aria-labelledby": "redis-title" },
          h("h2", { id: "redis-title" }, t("redis.title")),
          h("p", { class: "aside" }, t("redis.lead")),
          h("table", { class: "numbers" },
            h("thead", null, h("tr", null, ["redis.way", "redis.memory", "calculator.bits_per_key", "calculator.own.hashes"].map((name) => h("th", { scope: "col" }, t(name))))),
            h("tbody", { id: "redis-rows" })),
          h("ul", { id: "redis-left-out", class: "left-out", lang: "en" })))));
  drawing = curve(root.querySelector("#curve"));
}

function fieldOf(name, field) {
  const { typed, done } = typing(changed);
  return h("div", { class: "field", "data-field": name },
    h("label", { for: `number-${name}` }, t(`calculator.${name}`)),
    h("input", {
      id: `number-${name}`, type: "text", autocomplete: "off", spellcheck: "false",
      "aria-describedby": `error-number-${name} hint-${name}`,
      oninput: (event) => { values[name] = event.target.value.trim(); typed(); },
      onchange: done,
    }),
    h("output", { id: `found-${name}`, class: "found" }),
    h("input", {
      id: `slider-${name}`, type: "range", min: field.from, max: field.to, step: "0.01", "aria-label": t("calculator.slider", { label: t(`calculator.${name}`) }),
      oninput: (event) => { slide(name, event.target); typed(); },
      onchange: done,
    }),
    h("p", { id: `error-number-${name}`, class: "problem", "aria-live": "polite" }),
    h("small", { id: `hint-${name}` }, t(`calculator.${name}.hint`)));
}

/** A box for a number, without a slider. */
function boxOf(prefix, name, label, hint, take) {
  const { typed, done } = typing(changed);
  const id = `${prefix}-${name}`;
  return h("div", { class: "field", "data-box": name },
    h("label", { for: id }, label),
    h("input", {
      id, type: "text", autocomplete: "off", spellcheck: "false", "aria-describedby": `error-${id} hint-${id}`,
      oninput: (event) => { take(event.target.value.trim()); typed(); },
      onchange: done,
    }),
    h("p", { id: `error-${id}`, class: "problem", "aria-live": "polite" }),
    h("small", { id: `hint-${id}` }, hint));
}

/** A slider's place becomes a number of two digits. */
function slide(name, slider) {
  const number = Number((10 ** Number(slider.value)).toPrecision(2));
  values[name] = fields[name].text(number);
  root.querySelector(`#number-${name}`).value = values[name];
  slider.setAttribute("aria-valuetext", values[name]);
}

/** The two numbers that are asked about, and what else is chosen. */
export function state() {
  const query = new URLSearchParams();
  for (const name of Object.keys(fields)) if (name !== find) query.set(name, values[name]);
  if (need) query.set("need", need);
  if (need === "forget" && generations !== usualGenerations) query.set("generations", generations);
  if (kind) query.set("kind", kind);
  for (const name of own) if (typedShape[name]) query.set(name, typedShape[name]);
  return query.toString();
}

export function show(query) {
  const given = Object.keys(fields).filter((name) => query.has(name));
  find = given.length === 2 ? Object.keys(fields).find((name) => !given.includes(name)) : "size";
  values = { ...start };
  for (const name of given) values[name] = query.get(name);
  need = needs.includes(query.get("need")) ? query.get("need") : "";
  kind = query.get("kind") ?? "";
  root.querySelector("#number-generations").value = generations = query.get("generations") ?? usualGenerations;
  for (const name of own) root.querySelector(`#own-${name}`).value = typedShape[name] = query.get(name) ?? "";
  for (const name of Object.keys(fields)) root.querySelector(`#number-${name}`).value = values[name];
  update();
}

function changed(finished) {
  remember(state(), finished);
  // Leaving a box is no change: what is drawn anew would slip away from under a click.
  if (state() !== asked) update();
}

async function update() {
  for (const name of Object.keys(fields)) {
    const input = root.querySelector(`#number-${name}`);
    if (document.activeElement !== input) input.value = values[name];
    root.querySelector(`[data-field="${name}"]`).classList.toggle("is-found", name === find);
  }
  root.classList.toggle("calculates-keys", find === "keys");
  choose(root, "find", find);
  choose(root, "need", need);
  root.querySelector('[data-box="generations"]').hidden = need !== "forget";
  const mine = ++sequence;
  asked = state();
  const address = location.hash;
  const query = new URLSearchParams(asked);
  for (const name of ["kind", ...own]) query.delete(name);
  const [[plan, problem], shape] = await Promise.all([calculate("plan", query.toString()), askOwn()]);
  if (mine !== sequence) return; // something newer was asked
  if (problem) refuse(problem);
  else draw(plan);
  tellOwn(shape);
  root.dataset.shown = address; // that is now shown
}

/** What was drawn stays, dimmed: it belongs to numbers that were there a moment ago. */
function refuse(text) {
  const wrong = complain(root, "number", [...Object.keys(fields).filter((name) => name !== find), "generations"], text);
  root.querySelector("#plan-problem").textContent = wrong ? "" : text;
  root.querySelector(".results").classList.add("is-stale");
  root.querySelector(`#found-${find}`).textContent = "";
  root.querySelector("#copy").disabled = true;
}

/** What the service says of the Bloom filter that was typed; nothing if there is none. */
async function askOwn() {
  if (find === "keys" || !typedShape.bits || !typedShape.hashes) return null;
  return calculate("plan", new URLSearchParams({ keys: values.keys, ...typedShape }).toString());
}

function tellOwn(answered) {
  const [told, problem] = answered ?? [null, null];
  const wrong = complain(root, "own", own, problem ?? "");
  const missing = t(find === "keys" ? "calculator.own.keys" : "calculator.own.both");
  root.querySelector("#own-told").textContent = told ? t("calculator.own.told", told) : wrong ? "" : problem ?? missing;
}

function draw(answer) {
  const { plans, rows, pick } = answer;
  complain(root, "number", [...Object.keys(fields), "generations"], "");
  root.querySelector("#plan-problem").textContent = "";
  root.querySelector(".results").classList.remove("is-stale");
  const shown = rows.some((row) => row.kind === kind) ? kind : pick;
  const at = rows.findIndex((row) => row.kind === shown);
  for (const [name, field] of Object.entries(fields)) {
    const slider = root.querySelector(`#slider-${name}`);
    const number = answer.asked[name] ?? plans[at][name === "size" ? "bytes" : name];
    if (document.activeElement !== slider) slider.value = Math.log10(number);
    slider.setAttribute("aria-valuetext", field.text(number));
    slider.disabled = name === find;
    root.querySelector(`#found-${name}`).textContent = rows[at][name];
  }
  const [first, ...others] = answer.advice;
  const [, name, why] = first.match(/^Pick ([a-z]+): (.*)$/s) ?? [null, pick, first];
  const picked = rows.find((row) => row.kind === pick);
  const hashes = plans[rows.indexOf(picked)].fingerprint_bits === null ? t("calculator.k", { k: picked.hashes }) : t("calculator.fingerprints", { bits: said(picked.hashes) });
  put(root.querySelector("#advice"),
    h("p", { class: "pick" }, h("span", { class: "swatch", "data-kind": name }), h("strong", null, t("calculator.pick", { kind: name })),
      h("span", { class: "figures" }, t("calculator.figures", { ...picked, hashes }))),
    why.split("\n").map((line) => h("p", null, capital(said(line)))),
    others.flatMap((line) => line.split("\n")).map((line) => h("p", { class: "aside" }, said(line))));
  root.querySelector("#command").textContent = rows[at].command;
  root.querySelector("#copy").disabled = false;
  const largest = Math.max(...plans.map((plan) => plan.bytes));
  put(root.querySelector("#kinds"), ...rows.map((row, i) => kindRow(row, plans[i], largest, shown, pick)));
  leaveOut("#left-out", answer.left_out.map((each) => `${each.kind}: ${each.left_out}`));
  inRedis(answer.redis);
  drawing.draw(answer.curve, shown, plans[at].keys);
}

/** Why others are missing, in the service's own words. */
function leaveOut(list, reasons) {
  put(root.querySelector(list), reasons.map((reason) => h("li", null, reason)));
}

/** What a server takes; it is known for keys and a rate alone. */
function inRedis(told) {
  root.querySelector("#redis").hidden = !told;
  if (!told) return;
  put(root.querySelector("#redis-rows"), told.rows.map((row) => h("tr", { "data-way": row.way, "data-kind": row.kind },
    h("th", { scope: "row" }, t(`redis.${row.way}`), " ", h("small", null, row.kind)),
    h("td", { "data-name": "memory" }, said(row.memory)),
    h("td", null, row.bits_per_key.toFixed(2)),
    h("td", null, row.hashes ?? "–"))));
  leaveOut("#redis-left-out", told.left_out.map((each) => `${each.way}, ${each.kind}: ${each.left_out}`));
}

function kindRow(row, plan, largest, shown, pick) {
  const cell = (name, text, ...more) => h("td", { "data-name": name, "data-value": plan[name] }, text, ...more);
  const bar = h("span", { class: "bar", "data-kind": row.kind });
  bar.style.inlineSize = `${Math.max(0.5, (plan.bytes / largest) * 100)}%`;
  return h("tr", {
    "data-kind": row.kind, "data-lines_per_key": plan.lines_per_key,
    "data-hashes_per_line": plan.hashes_per_line, class: row.kind === shown ? "is-shown" : null,
  },
    h("th", { scope: "row" },
      h("button", {
        type: "button", "aria-pressed": String(row.kind === shown), title: t("calculator.show", { kind: row.kind }),
        onclick: () => { kind = row.kind === pick ? "" : row.kind; changed(true); refocus(row.kind); },
      }, h("span", { class: "swatch", "data-kind": row.kind }), row.kind),
      h("small", null, said(row.for), row.kind === pick ? ` · ${t("calculator.advised")}` : "")),
    cell("keys", row.keys),
    cell("bytes", row.size, h("span", { class: "track", "aria-hidden": "true" }, bar)),
    cell("bits_per_key", row.bits_per_key),
    h("td", { "data-name": "cache_misses" }, said(row.cache_misses)),
    cell("rate", row.rate),
    cell("bits", row.bits),
    cell("hashes", said(row.hashes)));
}

/** The table is drawn anew; the focus stays where it was. */
function refocus(of) {
  const observer = new MutationObserver(() => {
    observer.disconnect();
    root.querySelector(`tr[data-kind="${of}"] button`)?.focus();
  });
  observer.observe(root.querySelector("#kinds"), { childList: true });
}

async function copy() {
  const command = root.querySelector("#command");
  const told = root.querySelector("#copied");
  const button = root.querySelector("#copy");
  try {
    await navigator.clipboard.writeText(command.textContent);
  } catch {
    // Not allowed, or not over plain HTTP: select it, so that the keyboard can.
    getSelection().selectAllChildren(command);
    told.textContent = t("calculator.selected");
    return;
  }
  told.textContent = t("calculator.copied");
  button.textContent = t("calculator.copied");
  setTimeout(() => { button.textContent = t("calculator.copy"); told.textContent = ""; }, 1500);
}
