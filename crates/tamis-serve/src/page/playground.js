// Tiny filters, drawn. The library builds them and tells what it set; nothing of a
// filter is computed here.

import { choice, choose, complain, count, h, keysIn, onWidth, put, typing } from "./dom.js";
import { cells, slots } from "./cells.js";
import { nounOf, twinOf, whoSet } from "./steps.js";
import { calculate } from "./tamis.js";
import { language, parts, t } from "./texts.js";
import * as walk from "./walk.js";

// A shape's numbers: the name of its text where that is another, what it begins with, and the most.
const kinds = {
  bloom: { shape: { bits: ["bits", 16, 4096], hashes: ["hashes", 3, 16] } },
  blocked: { shape: { lines: ["lines", 1, 8], hashes_per_line: ["bits_in_line", 2, 8], lines_per_key: ["lines_per_key", 1, 4] } },
  counting: { removes: true, shape: { lines: ["lines", 1, 8], hashes_per_line: ["counters_in_line", 2, 8], lines_per_key: ["lines_per_key", 1, 4] } },
  cuckoo: { removes: true, shape: { slots: ["slots", 16, 512], window: ["window", 2, 4], width: ["width", 8, 16] } },
};
const boxes = { a: "apple\npear\nplum", b: "", removed: "", ask: "apple\nbanana" };
const words = "almond apricot avocado banana bilberry blackberry citron coconut cranberry currant damson date elder gooseberry grape guava hazelnut kiwi lemon lime loquat lychee mango medlar melon mulberry nectarine olive orange papaya peach persimmon pineapple pomelo quince raspberry rowan sloe strawberry tangerine walnut".split(" ");

let root, remember, answer;
let kind = "bloom";
let shapes = defaults();
let texts = { ...boxes };
let looking = null; // { list, index }: the key whose bits are marked
let sequence = 0;
let walking = null; // { list, index }: the key that is taken step by step
let asked = null; // the state that was asked about last
let found = null; // { key, tried }: the false yes that was found, of how many strangers

function defaults() {
  return Object.fromEntries(Object.entries(kinds).map(([name, { shape }]) => [name, Object.fromEntries(Object.entries(shape).map(([what, [, value]]) => [what, value]))]));
}

export function mount(panel, keep) {
  root = panel;
  remember = keep;
  root.append(
    h("h1", { class: "only-read" }, t("tab.playground")),
    h("div", { class: "columns playground" },
      h("form", { class: "side", onsubmit: (event) => event.preventDefault() }, h("div", { class: "card" },
        choice(t("play.kind"), "play-kind", Object.keys(kinds).map((name) => [name, t(`play.${name}`)]), (value) => {
          kind = value;
          if (!kinds[kind].removes) texts.removed = "";
          looking = null;
          walk.forget();
          changed(true);
        }),
        h("p", { id: "play-about", class: "aside" }),
        h("div", { id: "play-shape", class: "numbers-row" }),
        h("div", { class: "buttons" },
          h("button", { type: "button", id: "find", onclick: find }, t("play.find")),
          h("button", { type: "button", id: "more", onclick: more, class: "second" }, t("play.more")),
          h("button", { type: "button", id: "kick", onclick: kick, class: "second" }, t("play.kick")),
          h("button", { type: "button", id: "toy", onclick: toy, class: "second" }, t("play.toy")))),
        h("div", { class: "card lists" }, Object.keys(boxes).map(box))),
      h("div", { class: "results" },
        walk.mount(begin, stepped),
        h("section", { class: "card picture", "aria-labelledby": "picture-title" },
          h("h2", { id: "picture-title" }, t("play.picture")),
          h("p", { id: "play-problem", class: "problem", role: "alert" }),
          h("p", { id: "play-told", role: "status" }),
          h("div", { id: "pictures" })),
        h("section", { class: "card", "aria-labelledby": "asked-title" },
          h("h2", { id: "asked-title" }, t("play.asked")),
          h("div", { id: "asked", "aria-live": "polite" })),
        h("section", { class: "card", id: "keys-card", "aria-labelledby": "keys-title" },
          h("h2", { id: "keys-title" }, t("play.stored")),
          h("div", { id: "keys" })))));
  onWidth(root.querySelector("#pictures"), () => answer && draw());
}

function box(name) {
  const { typed, done } = typing(changed);
  const look = (event) => {
    const before = event.target.value.slice(0, event.target.selectionStart);
    lookAt(name, keysIn(`${before}x`).length - 1);
  };
  return h("div", { class: "field box", "data-box": name },
    h("label", { for: `box-${name}` }, t(`play.box.${name}`), " ", h("small", null, t("play.one_a_line"))),
    h("textarea", {
      id: `box-${name}`, rows: name === "a" ? 6 : 3, spellcheck: "false", autocomplete: "off",
      oninput: (event) => { texts[name] = event.target.value; look(event); typed(); },
      onchange: done, onkeyup: look, onclick: look,
    }));
}

export function state() {
  const query = new URLSearchParams({ kind, shape: Object.values(shapes[kind]).join(",") });
  for (const name of Object.keys(boxes)) if (texts[name] !== boxes[name]) query.set(name, texts[name]);
  walk.write(query);
  return query.toString();
}

export function show(query) {
  kind = Object.hasOwn(kinds, query.get("kind")) ? query.get("kind") : "bloom";
  shapes = defaults();
  const given = (query.get("shape") ?? "").split(",");
  Object.keys(shapes[kind]).forEach((what, i) => { if (/^\d+$/.test(given[i] ?? "")) shapes[kind][what] = Number(given[i]); });
  for (const name of Object.keys(boxes)) texts[name] = query.get(name) ?? boxes[name];
  if (!kinds[kind].removes) texts.removed = "";
  looking = null;
  walk.read(query);
  update();
}

function changed(finished) {
  remember(state(), finished);
  // Leaving a box is no change: what is drawn anew would slip away from under a click.
  if (state() !== asked) update();
}

function request() {
  const lists = Object.fromEntries(Object.keys(boxes).map((name) => [name, keysIn(texts[name])]));
  walking = walk.walked(lists);
  return { shape: { kind, ...shapes[kind] }, ...lists, trace: walking?.list === "a" ? walking.index : null };
}

/** A key that was typed for a walk joins its list, unless it is there. */
function begin(list, key) {
  if (!keysIn(texts[list]).includes(key)) texts[list] = [...keysIn(texts[list]), key].join("\n");
  walkWith(list, key);
}

function walkWith(list, key) {
  walk.choose(list, key);
  looking = { list, index: keysIn(texts[list]).indexOf(key) };
  changed(true);
}

/** A step asks for nothing: what it shows was told. */
function stepped() {
  asked = state();
  remember(asked, false);
  root.dataset.shown = location.hash;
}

const send = (body) => calculate("playground", JSON.stringify(body));

async function update() {
  controls();
  const mine = ++sequence;
  asked = state();
  const address = location.hash;
  const body = request();
  const place = walking;
  const [told, problem] = await send(body);
  if (mine !== sequence) return; // something newer was asked
  if (problem) refuse(problem);
  else {
    answer = { ...told, walking: place };
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
  root.querySelector("#play-about").textContent = t(`play.${kind}.about`);
  const row = root.querySelector("#play-shape");
  if (row.dataset.kind !== kind) {
    row.dataset.kind = kind;
    put(row, ...Object.entries(kinds[kind].shape).map(([what, [name, , most]]) => h("div", { class: "field" },
      h("label", { for: `shape-${what}` }, t(`play.shape.${name}`)),
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
  root.querySelector("#kick").hidden = kind !== "cuckoo";
  root.querySelector("#toy").hidden = kind === "bloom" && shapes.bloom.bits === 16 && shapes.bloom.hashes === 3;
}

/** Marks the bits of a key. */
function lookAt(list, index) {
  if (looking?.list === list && looking.index === index) return;
  looking = { list, index };
  if (answer) marks();
}

/** The key that is looked at; without a choice, the one that is walked with. */
function lookedAt() {
  const lists = { a: answer.a.keys, b: answer.b.keys, removed: answer.removed, ask: answer.asked };
  return (looking && lists[looking.list]?.[looking.index]) ?? (answer.walking && lists[answer.walking.list][answer.walking.index]) ?? answer.a.keys.at(-1) ?? answer.asked.at(-1) ?? null;
}

let pictures = [];

function draw() {
  const width = root.querySelector("#pictures").clientWidth;
  if (width === 0) return; // not seen: drawn when it is
  complain(root, "shape", Object.keys(kinds[kind].shape), "");
  root.querySelector("#play-problem").textContent = "";
  root.querySelector(".results").classList.remove("is-stale");
  const both = answer.b.keys.length > 0;
  const taken = answer.a.cells.filter((cell) => cell).length;
  const refused = answer.a.keys.filter((key) => key.refused).length;
  put(root.querySelector("#play-told"),
    t(`play.told.${nounOf(kind)}`, { keys: count(answer.a.keys.length - refused), refused: refused ? t("play.refused", { n: refused }) : "", taken: count(taken), all: count(answer.a.cells.length), rate: answer.a.rate_text }),
    answer.a.false_no.length > 0 ? h("span", { class: "problem" }, t("play.false_no", { keys: answer.a.false_no.join(", ") })) : "");
  const painter = kind === "cuckoo" ? slots : cells;
  const picture = (name, title, set) => {
    if (set.error) return { figure: h("figure", null, h("figcaption", null, title), h("p", { class: "problem" }, set.error)), mark() {} };
    const drawn = painter({ label: "play.drawn", kind, name, cells: set.cells, width, keys: name === "b" ? answer.b.keys : name === "a" ? answer.a.keys : [...answer.a.keys, ...answer.b.keys], a: name === "union" || name === "intersection" ? answer.a.cells : null, b: answer.b.cells, moves: name === "a" && answer.removed.length === 0 ? answer.a.keys.findLast((key) => !key.refused)?.moves : null });
    const figure = h("figure", { "data-set": name }, h("figcaption", null, title), drawn.svg, legend(name, drawn.moved),
      h("details", null, h("summary", null, t("play.text")), h("pre", { tabindex: "0" }, drawn.text)));
    return { figure, mark: drawn.mark };
  };
  pictures = [picture("a", both ? "A" : t("play.one"), answer.a)];
  if (both) pictures.push(picture("b", "B", answer.b), picture("union", t("play.union"), answer.union), picture("intersection", t("play.intersection"), answer.intersection));
  put(root.querySelector("#pictures"), ...pictures.map(({ figure }) => figure));
  put(root.querySelector("#asked"), ...askedTable(both));
  put(root.querySelector("#keys"), ...[["a", "A", answer.a.keys], ["b", "B", answer.b.keys], ["removed", t("play.box.removed"), answer.removed]].filter(([, , keys]) => keys.length).map(([list, title, keys]) => keyTable(list, title, keys)));
  root.querySelector("#keys-card").hidden = root.querySelector("#keys").children.length === 0;
  walk.draw(kind, answer, answer.walking, width);
  marks();
}

/** What colours and outlines mean. */
function legend(name, moved) {
  const both = name === "union" || name === "intersection";
  const cuckoo = kind === "cuckoo";
  const item = (sort, text) => h("li", null, h("span", { class: `key-${sort}` }), text);
  const isCounting = kind === "counting";
  const by = (who) => t(isCounting ? "play.legend.above_by" : "play.legend.set_by", { who });
  return h("ul", { class: "legend" },
    cuckoo ? [item("taken", t("play.legend.print")), item("free", t("play.legend.free")),
      item("mine", t("play.legend.first")), item("other", t("play.legend.second")), item("here", t("play.legend.here")),
      moved ? item("moved", t("play.legend.moved")) : null]
      : [both ? [item("a", by("A")), item("b", by("B")), item("both", by(t("play.legend.both")))] : item(name === "b" ? "b" : "a", t(isCounting ? "play.legend.above" : "play.legend.set")),
        item("free", isCounting ? "0" : t("play.legend.unset")), item("mine", t("play.legend.mine"))]);
}

function marks() {
  const key = lookedAt();
  for (const { mark } of pictures) mark(key);
  for (const row of root.querySelectorAll("tr[data-key]")) row.classList.toggle("is-shown", key !== null && row.dataset.key === key.key);
  root.dataset.looking = key?.key ?? "";
}

/** A key of a table: pointing at it marks its cells, pressing it begins its walk. */
function keyCell(list, index, key) {
  const look = () => lookAt(list, index);
  const press = () => (list === "a" || list === "ask" ? walkWith(list, key) : look());
  return h("th", { scope: "row" }, h("button", { type: "button", class: "key", onclick: press, onfocus: look, onpointerenter: look }, key));
}

function place(told) {
  if (kind !== "cuckoo") return told.at.join(" ");
  const half = told.at.length / 2;
  return t("play.place", { print: told.fingerprint.toString(16), first: told.at.slice(0, half).join(" "), second: told.at.slice(half).join(" ") });
}

const badge = (verdict) => h("span", { class: "badge", "data-verdict": verdict }, t(`verdict.${verdict}`));

function askedTable(both) {
  if (answer.asked.length === 0) return [h("p", { class: "aside" }, t("play.nothing"))];
  const sets = both ? [["a", "A"], ["b", "B"], ["union", "A ∪ B"], ["intersection", "A ∩ B"]] : [["a", "A"]];
  return [
    h("table", { class: "keys" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, t("play.key")), h("th", { scope: "col" }, t(`play.${nounOf(kind)}`)), sets.map(([, title]) => h("th", { scope: "col" }, title)))),
      h("tbody", null, answer.asked.map((told, i) => h("tr", { "data-key": told.key, "data-at": told.at.join(" ") },
        keyCell("ask", i, told.key), h("td", { class: "at" }, place(told)), sets.map(([name]) => h("td", { "data-set": name }, badge(told[name]))))))),
    answer.asked.filter((told) => told.a === "false yes").map(why),
  ];
}

/** `1st`, `22nd`, `137th`; in Chinese a number is enough. */
function nth(n) {
  if (language() === "zh") return count(n);
  const ending = { one: "st", two: "nd", few: "rd", other: "th" }[new Intl.PluralRules("en", { type: "ordinal" }).select(n)];
  return `${count(n)}${ending}`;
}

/** Who set the bits of a key that was never added. */
function why(told) {
  const stranger = found?.key === told.key ? h("span", null, t("play.stranger", { nth: nth(found.tried) })) : "";
  const twin = kind === "cuckoo" ? twinOf(told, answer.a.keys) : "";
  return h("p", { class: "why" }, parts(`play.why.${nounOf(kind)}`, { key: h("strong", null, told.key), stranger, twin, who: kind === "cuckoo" ? "" : whoSet(told, answer.a.keys) }));
}

function keyTable(list, title, keys) {
  const word = (answer) => t(`play.${list === "removed" ? "remove" : "add"}.${answer}`);
  const outcome = (told) => {
    if (told.refused) return h("td", null, h("span", { class: "badge", "data-verdict": "false no" }, t("play.is_refused")), h("small", { lang: "en" }, ` ${told.refused}`));
    const kicks = told.moves?.filter((step) => step.from !== null) ?? [];
    return h("td", { "data-answer": told.answer }, word(told.answer),
      kicks.length ? h("ol", { class: "kicks" }, told.moves.map((step) => h("li", null, t(step.from === null ? "play.into" : "play.from", { ...step, print: step.fingerprint.toString(16) })))) : null);
  };
  return h("table", { class: "keys", "data-list": list },
    h("caption", null, title),
    h("thead", null, h("tr", null, [t(list === "removed" ? "play.key" : "play.key.ordered"), t(`play.${nounOf(kind)}`), t(list === "removed" ? "play.removed" : "play.added")].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", null, keys.map((told, i) => h("tr", { "data-key": told.key, "data-at": told.at.join(" "), "data-fingerprint": told.fingerprint },
      keyCell(list, i, told.key), h("td", { class: "at" }, place(told)), outcome(told)))));
}

const names = () => [...words, ...Array.from({ length: 1000 }, (_, i) => `key ${i + 1}`)];

/** Five keys more for A, of those that it does not have. */
function more() {
  const has = new Set(keysIn(texts.a));
  const added = names().filter((word) => !has.has(word) && !keysIn(texts.ask).includes(word)).slice(0, 5);
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
    root.querySelector("#play-told").textContent = t("play.nobody", { n: count(tried) });
    return;
  }
  found = { key, tried };
  texts.ask = [...keysIn(texts.ask).filter((other) => other !== key), key].join("\n");
  walkWith("ask", key);
}

/** Keys for A until one finds both its places taken, which is then walked with. */
async function kick() {
  const has = keysIn(texts.a);
  const all = [...has, ...names().filter((word) => !has.includes(word)).slice(0, Math.max(0, shapes.cuckoo.slots - has.length + 8))];
  const [told, problem] = await send({ ...request(), a: all, trace: null });
  if (problem) return refuse(problem);
  const at = told.a.keys.findIndex((key, i) => i >= has.length && key.moves?.some((move) => move.from !== null));
  if (at < 0) {
    root.querySelector("#play-told").textContent = t("play.no_kick");
    return;
  }
  texts.a = all.slice(0, at + 1).join("\n");
  walkWith("a", all[at]);
}

/** The filter of every textbook's picture. */
function toy() {
  kind = "bloom";
  shapes.bloom = defaults().bloom;
  texts = { ...boxes };
  looking = null;
  walk.forget();
  changed(true);
}
