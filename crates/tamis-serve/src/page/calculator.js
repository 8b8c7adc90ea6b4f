// Keys, rate, size: any two. Every number comes from /v1/plan.

import { ask, capital, choice, choose, complain, h, put, rate, short, typing } from "./dom.js";
import { curve } from "./curve.js";

// What sliders reach; numbers beyond can be typed.
const fields = {
  keys: { label: "Keys", hint: "e.g. 1000000, 10M", from: 2, to: 12, text: (n) => short(n) },
  rate: { label: "False “yes” rate", hint: "e.g. 0.01, 1%, 1/1000", from: -9, to: -0.5, text: (n) => rate(n) },
  size: { label: "Size", hint: "e.g. 16MB, 2GiB", from: 2.5, to: 12, text: (n) => `${short(n)}B` },
};
const needs = [["", "Nothing more"], ["delete", "Remove keys"], ["grow", "Grow, keys unknown"], ["finished", "A finished list"]];
const start = { keys: "10M", rate: "0.01", size: "16MB" };

const own = { bits: ["Bits (m)", "e.g. 10M"], hashes: ["Hashes (k)", "1 to 64"] };

let root, remember, drawing;
let values = { ...start }; // as typed
let typedShape = { bits: "", hashes: "" }; // a Bloom filter of one's own, as typed
let find = "size";
let need = "";
let kind = ""; // chosen instead of the advised one
let sequence = 0;
let asked = null; // the state that was asked about last

export function mount(panel, keep) {
  root = panel;
  remember = keep;
  root.append(
    h("h1", { class: "only-read" }, "Calculator"),
    h("div", { class: "columns" },
      h("form", { class: "card controls", onsubmit: (event) => event.preventDefault() },
        choice("I want to know", "find", [["size", "the size"], ["rate", "the rate"], ["keys", "how many keys"]], (value) => {
          find = value;
          changed(true);
        }),
        Object.entries(fields).map(([name, field]) => fieldOf(name, field)),
        choice("It must", "need", needs, (value) => {
          need = value;
          kind = "";
          changed(true);
        }),
        h("fieldset", { class: "own" }, h("legend", null, "A Bloom filter with your own m and k"),
          h("div", { class: "numbers-row" }, Object.entries(own).map(([name, [label, hint]]) => ownField(name, label, hint))),
          h("p", { id: "own-told", role: "status" }))),
      h("div", { class: "results" },
        h("p", { id: "plan-problem", class: "problem", role: "alert" }),
        h("section", { class: "card advice", "aria-labelledby": "advice-title" },
          h("h2", { id: "advice-title" }, "Advice"),
          h("div", { id: "advice", role: "status" }),
          h("div", { class: "command" },
            h("code", { id: "command", tabindex: "0", "aria-label": "Command line" }),
            h("button", { type: "button", id: "copy", onclick: copy }, "Copy")),
          h("p", { id: "copied", role: "status", class: "only-read" })),
        h("section", { class: "card", "aria-labelledby": "kinds-title" },
          h("h2", { id: "kinds-title" }, "What every kind costs"),
          h("div", { class: "scroll" }, h("table", { class: "kinds" },
            h("thead", null, h("tr", null,
              ["Kind", "Keys", "Size", "Bits a key", "Cache misses", "Rate", "Bits (m)", "Hashes (k)"].map((text) => h("th", { scope: "col" }, text)))),
            h("tbody", { id: "kinds" })))),
        h("section", { class: "card", "aria-labelledby": "curve-title" },
          h("h2", { id: "curve-title" }, "When it holds more, or fewer"),
          h("div", { id: "curve" })))));
  drawing = curve(root.querySelector("#curve"));
}

function fieldOf(name, field) {
  const { typed, done } = typing(changed);
  return h("div", { class: "field", "data-field": name },
    h("label", { for: `number-${name}` }, field.label),
    h("input", {
      id: `number-${name}`, type: "text", autocomplete: "off", spellcheck: "false",
      "aria-describedby": `error-number-${name} hint-${name}`,
      oninput: (event) => { values[name] = event.target.value.trim(); typed(); },
      onchange: done,
    }),
    h("output", { id: `found-${name}`, class: "found" }),
    h("input", {
      id: `slider-${name}`, type: "range", min: field.from, max: field.to, step: "0.01", "aria-label": `${field.label}, slider`,
      oninput: (event) => { slide(name, event.target); typed(); },
      onchange: done,
    }),
    h("p", { id: `error-number-${name}`, class: "problem", "aria-live": "polite" }),
    h("small", { id: `hint-${name}` }, field.hint));
}

/** A box for a number of a Bloom filter that the user has in mind. */
function ownField(name, label, hint) {
  const { typed, done } = typing(changed);
  return h("div", { class: "field" },
    h("label", { for: `own-${name}` }, label),
    h("input", {
      id: `own-${name}`, type: "text", autocomplete: "off", spellcheck: "false", "aria-describedby": `error-own-${name} hint-own-${name}`,
      oninput: (event) => { typedShape[name] = event.target.value.trim(); typed(); },
      onchange: done,
    }),
    h("p", { id: `error-own-${name}`, class: "problem", "aria-live": "polite" }),
    h("small", { id: `hint-own-${name}` }, hint));
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
  if (kind) query.set("kind", kind);
  for (const name of Object.keys(own)) if (typedShape[name]) query.set(name, typedShape[name]);
  return query.toString();
}

export function show(query) {
  const given = Object.keys(fields).filter((name) => query.has(name));
  find = given.length === 2 ? Object.keys(fields).find((name) => !given.includes(name)) : "size";
  values = { ...start };
  for (const name of given) values[name] = query.get(name);
  need = needs.some(([value]) => value === query.get("need")) ? query.get("need") : "";
  kind = query.get("kind") ?? "";
  for (const name of Object.keys(own)) root.querySelector(`#own-${name}`).value = typedShape[name] = query.get(name) ?? "";
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
  const mine = ++sequence;
  asked = state();
  const address = location.hash;
  const query = new URLSearchParams(asked);
  for (const name of ["kind", ...Object.keys(own)]) query.delete(name);
  const [[plan, problem], shape] = await Promise.all([ask(`v1/plan?${query}`), askOwn()]);
  if (mine !== sequence) return; // something newer was asked
  if (problem) refuse(problem);
  else draw(plan);
  tellOwn(shape);
  root.dataset.shown = address; // that is now shown
}

/** What was drawn stays, dimmed: it belongs to numbers that were there a moment ago. */
function refuse(text) {
  const wrong = complain(root, "number", Object.keys(fields).filter((name) => name !== find), text);
  root.querySelector("#plan-problem").textContent = wrong ? "" : text;
  root.querySelector(".results").classList.add("is-stale");
  root.querySelector(`#found-${find}`).textContent = "";
  root.querySelector("#copy").disabled = true;
}

/** What the service says of the Bloom filter that was typed; nothing if there is none. */
async function askOwn() {
  if (find === "keys" || !typedShape.bits || !typedShape.hashes) return null;
  return ask(`v1/plan?${new URLSearchParams({ keys: values.keys, ...typedShape })}`);
}

function tellOwn(answered) {
  const [told, problem] = answered ?? [null, null];
  const wrong = complain(root, "own", Object.keys(own), problem ?? "");
  const missing = find === "keys" ? "It needs a number of keys: choose another thing to know." : "Type both, for the number of keys above.";
  root.querySelector("#own-told").textContent = told ? `${told.keys} keys in ${told.size}: a false “yes” rate of ${told.rate}.` : wrong ? "" : problem ?? missing;
}

function draw(answer) {
  const { plans, rows, pick } = answer;
  complain(root, "number", Object.keys(fields), "");
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
  const hashes = plans[rows.indexOf(picked)].fingerprint_bits === null ? `k = ${picked.hashes}` : `${picked.hashes} fingerprints`;
  put(root.querySelector("#advice"),
    h("p", { class: "pick" }, h("span", { class: "swatch", "data-kind": name }), h("strong", null, `Pick ${name}`),
      h("span", { class: "figures" }, `${picked.size} · ${picked.keys} keys · rate ${picked.rate} · m = ${picked.bits} · ${hashes}`)),
    why.split("\n").map((line) => h("p", null, capital(line))),
    others.flatMap((line) => line.split("\n")).map((line) => h("p", { class: "aside" }, line)));
  root.querySelector("#command").textContent = rows[at].command;
  root.querySelector("#copy").disabled = false;
  const largest = Math.max(...plans.map((plan) => plan.bytes));
  put(root.querySelector("#kinds"), ...rows.map((row, i) => kindRow(row, plans[i], largest, shown, pick)));
  drawing.draw(answer.curve, shown, plans[at].keys);
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
        type: "button", "aria-pressed": String(row.kind === shown), title: `Show the command line of ${row.kind}`,
        onclick: () => { kind = row.kind === pick ? "" : row.kind; changed(true); refocus(row.kind); },
      }, h("span", { class: "swatch", "data-kind": row.kind }), row.kind),
      h("small", null, row.for, row.kind === pick ? " · advised" : "")),
    cell("keys", row.keys),
    cell("bytes", row.size, h("span", { class: "track", "aria-hidden": "true" }, bar)),
    cell("bits_per_key", row.bits_per_key),
    h("td", { "data-name": "cache_misses" }, row.cache_misses),
    cell("rate", row.rate),
    cell("bits", row.bits),
    cell("hashes", row.hashes));
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
    told.textContent = "Selected; copy it with the keyboard.";
    return;
  }
  told.textContent = "Copied.";
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; told.textContent = ""; }, 1500);
}
