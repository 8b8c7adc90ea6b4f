// Tiny filters, drawn. The service builds them with the library and tells what
// it set; nothing of a filter is computed here.

import { ask, capital, choice, choose, complain, count, h, keysIn, onWidth, put, typing } from "./dom.js";
import { cells, slots } from "./cells.js";

const kinds = {
  bloom: {
    name: "Textbook Bloom", unit: "bits",
    about: "Every key sets a few bits, anywhere. A key whose bits are all set may have been added; a key with a bit that is not set certainly was not.",
    shape: { bits: ["Bits", 64, 4096], hashes: ["Bits of a key", 3, 16] },
  },
  blocked: {
    name: "Lines", unit: "bits",
    about: "All bits of a key are in one line of 64 bytes, at most one in each of its eight words (a row here): one memory access instead of many.",
    shape: { lines: ["Lines", 1, 8], hashes_per_line: ["Bits in a line", 2, 8], lines_per_key: ["Lines of a key", 1, 4] },
  },
  counting: {
    name: "Counting", unit: "counters", removes: true,
    about: "A counter instead of each bit. Adding a key counts up, removing it counts down. Remove only keys that were added.",
    shape: { lines: ["Lines", 1, 8], hashes_per_line: ["Counters in a line", 2, 8], lines_per_key: ["Lines of a key", 1, 4] },
  },
  cuckoo: {
    name: "Cuckoo", unit: "slots", removes: true,
    about: "A fingerprint of the key is stored in one of two places, each of a few neighbouring slots. Where both are taken, it kicks out another, which moves to its own second place, and so on.",
    shape: { slots: ["Slots", 16, 512], window: ["Slots of a place", 2, 4], width: ["Bits of a slot", 8, 16] },
  },
};
const boxes = {
  a: ["Keys of A", "apple\npear\nplum\nfig\ncherry"],
  b: ["Keys of B", ""],
  removed: ["Removed from A", ""],
  ask: ["Ask", "apple\nbanana"],
};
const words = "almond apricot avocado banana bilberry blackberry citron coconut cranberry currant damson date elder gooseberry grape guava hazelnut kiwi lemon lime loquat lychee mango medlar melon mulberry nectarine olive orange papaya peach persimmon pineapple pomelo quince raspberry rowan sloe strawberry tangerine walnut".split(" ");

let root, remember, answer;
let kind = "bloom";
let shapes = defaults();
let texts = Object.fromEntries(Object.entries(boxes).map(([name, [, text]]) => [name, text]));
let looking = null; // { list, index }: the key whose bits are marked
let sequence = 0;
let asked = null; // the state that was asked about last
let found = null; // { key, tried }: the false yes that was found, of how many strangers

function defaults() {
  return Object.fromEntries(Object.entries(kinds).map(([name, { shape }]) => [name, Object.fromEntries(Object.entries(shape).map(([what, [, value]]) => [what, value]))]));
}

export function mount(panel, keep) {
  root = panel;
  remember = keep;
  root.append(
    h("h1", { class: "only-read" }, "Playground"),
    h("div", { class: "columns playground" },
      h("form", { class: "side", onsubmit: (event) => event.preventDefault() }, h("div", { class: "card" },
        choice("Filter", "play-kind", Object.entries(kinds).map(([value, { name }]) => [value, name]), (value) => {
          kind = value;
          if (!kinds[kind].removes) texts.removed = "";
          looking = null;
          changed(true);
        }),
        h("p", { id: "play-about", class: "aside" }),
        h("div", { id: "play-shape", class: "numbers-row" }),
        h("div", { class: "buttons" },
          h("button", { type: "button", id: "find", onclick: find }, "Find a false “yes”"),
          h("button", { type: "button", id: "more", onclick: more }, "Add five keys"))),
        h("div", { class: "card lists" }, Object.entries(boxes).map(([name, [label]]) => box(name, label)))),
      h("div", { class: "results" },
        h("section", { class: "card picture", "aria-labelledby": "picture-title" },
          h("h2", { id: "picture-title" }, "The filter"),
          h("p", { id: "play-problem", class: "problem", role: "alert" }),
          h("p", { id: "play-told", role: "status" }),
          h("div", { id: "pictures" })),
        h("section", { class: "card", "aria-labelledby": "asked-title" },
          h("h2", { id: "asked-title" }, "Asked"),
          h("div", { id: "asked", "aria-live": "polite" })),
        h("section", { class: "card", "aria-labelledby": "keys-title" },
          h("h2", { id: "keys-title" }, "Keys and where they are stored"),
          h("div", { id: "keys" })))));
  onWidth(root.querySelector("#pictures"), () => answer && draw());
}

function box(name, label) {
  const { typed, done } = typing(changed);
  const look = (event) => {
    const before = event.target.value.slice(0, event.target.selectionStart);
    lookAt(name, keysIn(`${before}x`).length - 1);
  };
  return h("div", { class: "field box", "data-box": name },
    h("label", { for: `box-${name}` }, label, h("small", null, " one a line")),
    h("textarea", {
      id: `box-${name}`, rows: name === "a" ? 6 : 3, spellcheck: "false", autocomplete: "off",
      oninput: (event) => { texts[name] = event.target.value; look(event); typed(); },
      onchange: done, onkeyup: look, onclick: look,
    }));
}

export function state() {
  const query = new URLSearchParams({ kind, shape: Object.values(shapes[kind]).join(",") });
  for (const name of Object.keys(boxes)) if (texts[name] !== boxes[name][1]) query.set(name, texts[name]);
  return query.toString();
}

export function show(query) {
  kind = Object.hasOwn(kinds, query.get("kind")) ? query.get("kind") : "bloom";
  shapes = defaults();
  const given = (query.get("shape") ?? "").split(",");
  Object.keys(shapes[kind]).forEach((what, i) => { if (/^\d+$/.test(given[i] ?? "")) shapes[kind][what] = Number(given[i]); });
  for (const name of Object.keys(boxes)) texts[name] = query.get(name) ?? boxes[name][1];
  if (!kinds[kind].removes) texts.removed = "";
  looking = null;
  update();
}

function changed(finished) {
  remember(state(), finished);
  // Leaving a box is no change: what is drawn anew would slip away from under a click.
  if (state() !== asked) update();
}

function request() {
  const list = (name) => keysIn(texts[name]);
  return { shape: { kind, ...shapes[kind] }, a: list("a"), b: list("b"), removed: list("removed"), ask: list("ask") };
}

const send = (body) => ask("v1/playground", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

async function update() {
  controls();
  const mine = ++sequence;
  asked = state();
  const address = location.hash;
  const [told, problem] = await send(request());
  if (mine !== sequence) return; // something newer was asked
  if (problem) refuse(problem);
  else {
    answer = told;
    draw();
  }
  root.dataset.shown = address; // that is now shown
}

/** What was drawn stays, dimmed: it belongs to what was there a moment ago. */
function refuse(text) {
  const wrong = complain(root, "shape", Object.keys(kinds[kind].shape), text);
  root.querySelector("#play-problem").textContent = wrong ? "" : text;
  root.querySelector(".results").classList.add("is-stale");
}

function controls() {
  choose(root, "play-kind", kind);
  root.querySelector("#play-about").textContent = kinds[kind].about;
  const row = root.querySelector("#play-shape");
  if (row.dataset.kind !== kind) {
    row.dataset.kind = kind;
    put(row, ...Object.entries(kinds[kind].shape).map(([what, [label, , most]]) => h("div", { class: "field" },
      h("label", { for: `shape-${what}` }, label),
      h("input", {
        id: `shape-${what}`, type: "number", min: 1, max: most, step: 1, "aria-describedby": `error-shape-${what}`,
        oninput: (event) => { if (event.target.value !== "") { shapes[kind][what] = Number(event.target.value); changed(false); } },
        onchange: () => changed(true),
      }),
      h("p", { id: `error-shape-${what}`, class: "problem", "aria-live": "polite" }))));
  }
  for (const [what, value] of Object.entries(shapes[kind])) {
    const input = root.querySelector(`#shape-${what}`);
    if (document.activeElement !== input) input.value = value;
  }
  for (const name of Object.keys(boxes)) {
    const input = root.querySelector(`#box-${name}`);
    if (input.value !== texts[name]) input.value = texts[name];
  }
  root.querySelector('[data-box="removed"]').hidden = !kinds[kind].removes;
}

/** Marks the bits of a key. */
function lookAt(list, index) {
  if (looking?.list === list && looking.index === index) return;
  looking = { list, index };
  if (answer) marks();
}

/** The key that is looked at; without a choice, the last that was added. */
function lookedAt() {
  const lists = { a: answer.a.keys, b: answer.b.keys, removed: answer.removed, ask: answer.asked };
  return (looking && lists[looking.list]?.[looking.index]) ?? answer.a.keys.at(-1) ?? answer.asked.at(-1) ?? null;
}

let pictures = [];

function draw() {
  const width = root.querySelector("#pictures").clientWidth;
  if (width === 0) return; // not seen: drawn when it is
  complain(root, "shape", Object.keys(kinds[kind].shape), "");
  root.querySelector("#play-problem").textContent = "";
  root.querySelector(".results").classList.remove("is-stale");
  const both = answer.b.keys.length > 0;
  const unit = kinds[kind].unit;
  const taken = answer.a.cells.filter((cell) => cell).length;
  const refused = answer.a.keys.filter((key) => key.refused).length;
  put(root.querySelector("#play-told"),
    `A: ${count(answer.a.keys.length - refused)} keys${refused ? ` (${refused} more were refused: it is full)` : ""}, ${count(taken)} of ${count(answer.a.cells.length)} ${unit} ${kind === "cuckoo" ? "taken" : kind === "counting" ? "above 0" : "set"}; a stranger gets a false “yes” ${answer.a.rate_text} of the time.`,
    answer.a.false_no.length > 0 ? h("span", { class: "problem" }, ` A false “no”: ${answer.a.false_no.join(", ")} went missing, because a key was removed that had never been added.`) : "");
  const painter = kind === "cuckoo" ? slots : cells;
  const picture = (name, title, set) => {
    if (set.error) return { figure: h("figure", null, h("figcaption", null, title), h("p", { class: "problem" }, set.error)), mark() {} };
    const drawn = painter({ kind, name, cells: set.cells, width, keys: name === "b" ? answer.b.keys : name === "a" ? answer.a.keys : [...answer.a.keys, ...answer.b.keys], a: name === "union" || name === "intersection" ? answer.a.cells : null, b: answer.b.cells, moves: name === "a" && answer.removed.length === 0 ? answer.a.keys.findLast((key) => !key.refused)?.moves : null });
    const figure = h("figure", { "data-set": name }, h("figcaption", null, title), drawn.svg, legend(name, drawn.moved),
      h("details", null, h("summary", null, "as text"), h("pre", { tabindex: "0" }, drawn.text)));
    return { figure, mark: drawn.mark };
  };
  pictures = [picture("a", both ? "A" : "A, with the selected key marked", answer.a)];
  if (both) pictures.push(picture("b", "B", answer.b), picture("union", "A ∪ B: union", answer.union), picture("intersection", "A ∩ B: intersection", answer.intersection));
  put(root.querySelector("#pictures"), ...pictures.map(({ figure }) => figure));
  put(root.querySelector("#asked"), ...askedTable(both));
  put(root.querySelector("#keys"), ...[["a", "A", answer.a.keys], ["b", "B", answer.b.keys], ["removed", "Removed from A", answer.removed]].filter(([, , keys]) => keys.length).map(([list, title, keys]) => keyTable(list, title, keys)));
  marks();
}

/** What colours and outlines mean. */
function legend(name, moved) {
  const both = name === "union" || name === "intersection";
  const cuckoo = kind === "cuckoo";
  const item = (sort, text) => h("li", null, h("span", { class: `key-${sort}` }), text);
  const set = kind === "counting" ? "above 0" : "set";
  return h("ul", { class: "legend" },
    cuckoo ? [item("taken", "a fingerprint, and below it the number of its slot"), item("free", "a free slot"),
      item("mine", "first place of the selected key"), item("other", "its second place"), item("here", "its fingerprint is here"),
      moved ? item("moved", "moved when the last key came") : null]
      : [both ? [item("a", `${set} by A`), item("b", `${set} by B`), item("both", `${set} by both`)] : item(name === "b" ? "b" : "a", set),
        item("free", kind === "counting" ? "0" : "not set"), item("mine", "of the selected key")]);
}

function marks() {
  const key = lookedAt();
  for (const { mark } of pictures) mark(key);
  for (const row of root.querySelectorAll("tr[data-key]")) row.classList.toggle("is-shown", key !== null && row.dataset.key === key.key);
  root.dataset.looking = key?.key ?? "";
}

const keyCell = (list, index, key) => h("th", { scope: "row" }, h("button", { type: "button", class: "key", onclick: () => lookAt(list, index), onfocus: () => lookAt(list, index), onpointerenter: () => lookAt(list, index) }, key));

function place(told) {
  if (kind !== "cuckoo") return told.at.join(" ");
  const half = told.at.length / 2;
  return `${told.fingerprint.toString(16)} in ${told.at.slice(0, half).join(" ")} or ${told.at.slice(half).join(" ")}`;
}

const badge = (verdict) => h("span", { class: "badge", "data-verdict": verdict }, verdict);

function askedTable(both) {
  if (answer.asked.length === 0) return [h("p", { class: "aside" }, "Type a key under “Ask”, or let the page find a false “yes”.")];
  const sets = both ? [["a", "A"], ["b", "B"], ["union", "A ∪ B"], ["intersection", "A ∩ B"]] : [["a", "A"]];
  return [
    h("table", { class: "keys" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Key"), h("th", { scope: "col" }, capital(kinds[kind].unit)), sets.map(([, title]) => h("th", { scope: "col" }, title)))),
      h("tbody", null, answer.asked.map((told, i) => h("tr", { "data-key": told.key, "data-at": told.at.join(" ") },
        keyCell("ask", i, told.key), h("td", { class: "at" }, place(told)), sets.map(([name]) => h("td", { "data-set": name }, badge(told[name]))))))),
    answer.asked.filter((told) => told.a === "false yes").map(why),
  ];
}

/** `1st`, `22nd`, `137th`. */
function nth(n) {
  const ending = { one: "st", two: "nd", few: "rd", other: "th" }[new Intl.PluralRules("en", { type: "ordinal" }).select(n)];
  return `${count(n)}${ending}`;
}

/** Who set the bits of a key that was never added. */
function why(told) {
  const tried = found?.key === told.key ? h("span", null, `, the ${nth(found.tried)} stranger,`) : null;
  const setters = (at) => answer.a.keys.filter((key) => !key.refused && key.at.includes(at)).map((key) => key.key);
  if (kind === "cuckoo") {
    const twin = answer.a.keys.find((key) => !key.refused && key.fingerprint === told.fingerprint && key.at.some((slot) => told.at.includes(slot)));
    return h("p", { class: "why" }, h("strong", null, told.key), tried, " was never added: it has the same fingerprint and a place in common with ", h("strong", null, twin?.key ?? "another key"), ".");
  }
  return h("p", { class: "why" }, h("strong", null, told.key), tried, ` was never added, but others have set all its ${kinds[kind].unit}: `,
    [...new Set(told.at)].map((at, i) => [i ? "; " : "", `${at} by `, h("em", null, setters(at).slice(0, 3).join(", "))]), ".");
}

function keyTable(list, title, keys) {
  const words = { "yes": list === "removed" ? "removed" : "again", "no": list === "removed" ? "was not there" : "new", "false yes": list === "removed" ? "never added: took others’ along" : "seemed present", "false no": "false no" };
  const outcome = (told) => {
    if (told.refused) return h("td", null, h("span", { class: "badge", "data-verdict": "false no" }, "refused"), h("small", null, ` ${told.refused}`));
    const kicks = told.moves?.filter((step) => step.from !== null) ?? [];
    return h("td", { "data-answer": told.answer }, words[told.answer],
      kicks.length ? h("ol", { class: "kicks" }, told.moves.map((step) => h("li", null, `${step.fingerprint.toString(16)}: ${step.from === null ? "into" : `${step.from} →`} ${step.to}`))) : null);
  };
  return h("table", { class: "keys", "data-list": list },
    h("caption", null, title),
    h("thead", null, h("tr", null, [list === "removed" ? "Key" : "Key, in order", capital(kinds[kind].unit), list === "removed" ? "When removed" : "When added"].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", null, keys.map((told, i) => h("tr", { "data-key": told.key, "data-at": told.at.join(" "), "data-fingerprint": told.fingerprint },
      keyCell(list, i, told.key), h("td", { class: "at" }, place(told)), outcome(told)))));
}

/** Five keys more for A, of those that it does not have. */
function more() {
  const has = new Set(keysIn(texts.a));
  const names = [...words, ...Array.from({ length: 1000 }, (_, i) => `key ${i + 1}`)];
  const added = names.filter((word) => !has.has(word) && !keysIn(texts.ask).includes(word)).slice(0, 5);
  texts.a = [...keysIn(texts.a), ...added].join("\n");
  looking = null;
  changed(true);
}

async function find() {
  const button = root.querySelector("#find");
  button.disabled = true;
  const [told, problem] = await send({ ...request(), find: true });
  button.disabled = false;
  if (problem) return refuse(problem);
  const { key, tried } = told.found;
  if (key === null) {
    root.querySelector("#play-told").textContent = `None of ${count(tried)} strangers got a false “yes”. Add more keys, or make the filter smaller.`;
    return;
  }
  found = { key, tried };
  texts.ask = [...keysIn(texts.ask).filter((other) => other !== key), key].join("\n");
  looking = { list: "ask", index: keysIn(texts.ask).length - 1 };
  changed(true);
}
