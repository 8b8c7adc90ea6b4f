// What happens to one key, as a list of steps: a title, a text, and what the drawing shows. The service told all of it.

import { h } from "./dom.js";
import { isIn, setters } from "./cells.js";
import { parts, t } from "./texts.js";

const mono = (text) => h("code", null, text);
const strong = (text) => h("strong", null, text);
export const nounOf = (kind) => ({ cuckoo: "slots", counting: "counters" })[kind] ?? "bits";

/** `{ kind, list, told, cells, keys }`: the key, in which list it is, what the filter held, and the keys that were in it. */
export function stepsOf(walk) {
  const { told } = walk;
  const bytes = [...new TextEncoder().encode(told.key)];
  const hex = bytes.slice(0, 12).map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const shown = { values: walk.cells, marked: [], now: null, placed: 0 };
  const start = [
    { ...shown, title: t("step.bytes"), text: parts("step.bytes.text", { key: strong(told.key), n: bytes.length, bytes: mono(bytes.length > 12 ? `${hex} …` : hex) }) },
    { ...shown, title: t("step.hash"), text: parts("step.hash.text", { hash: mono(told.hash) }) },
    { ...shown, title: t("step.at"), text: positions(walk), marked: told.at },
  ];
  if (walk.kind === "cuckoo") return [...start, ...(walk.list === "a" ? kicked(walk) : searched(walk))];
  return [...start, ...(walk.list === "a" ? added(walk) : asked(walk))];
}

function positions({ kind, told, cells }) {
  const half = told.at.length / 2;
  return parts(`step.at.${kind}`, {
    k: told.at.length, all: cells.length, at: mono(told.at.join(" ")),
    lines: [...new Set(told.at.map((i) => Math.floor(i / 512)))].join(", "),
    print: mono(told.fingerprint?.toString(16)), first: mono(told.at.slice(0, half).join(" ")), second: mono(told.at.slice(half).join(" ")),
  });
}

/** The names of those that set a cell; those of a table that others were removed from may be unknown. */
const namesOf = (by, i) => h("em", null, by(i) || t("step.somebody"));

/** The bits are set, or the counters count up, one after the other. */
function added({ kind, told, cells, keys }) {
  const isCounting = kind === "counting";
  const by = setters(keys);
  const values = [...cells];
  const steps = told.at.map((i, n) => {
    const before = values[i];
    const isAgain = told.at.indexOf(i) < n;
    if (!isCounting || !isAgain) values[i] = isCounting ? Math.min(15, before + 1) : 1;
    const text = isAgain ? parts("step.bit.twice")
      : isCounting ? parts("step.counter.up", { from: before, to: values[i] })
        : before ? parts("step.bit.old", { keys: namesOf(by, i) }) : parts("step.bit.new");
    return { title: t(isCounting ? "step.counter" : "step.bit", { i }), text, values: [...values], marked: told.at.slice(0, n + 1), now: i };
  });
  const sort = { "no": "in", "yes": "twice", "false yes": "seemed" }[told.answer];
  return [...steps, { title: t("step.end.added"), text: parts(`step.${sort}.${nounOf(kind)}`, { key: strong(told.key) }), values, marked: told.at, now: null, verdict: "yes" }];
}

/** The bits are looked at, one after the other, until one is not set. */
function asked({ kind, told, cells, keys }) {
  const noun = nounOf(kind);
  const by = setters(keys);
  const places = [...new Set(told.at)];
  const zero = places.findIndex((i) => !cells[i]);
  const looked = zero < 0 ? places : places.slice(0, zero + 1);
  const steps = looked.map((i, n) => ({
    title: t(noun === "counters" ? "step.counter" : "step.bit", { i }),
    text: noun === "counters" ? (cells[i] ? parts("step.counter.above", { n: cells[i], keys: namesOf(by, i) }) : parts("step.counter.zero"))
      : cells[i] ? parts("step.bit.set", { keys: namesOf(by, i) }) : parts("step.bit.unset"),
    values: cells, marked: looked.slice(0, n + 1), now: i,
  }));
  const text = told.a === "false no" ? parts("step.false_no", { key: strong(told.key) })
    : parts(`step.${told.a.replace(" ", "_")}.${noun}`, { key: strong(told.key), i: places[zero], who: whoSet(told, keys) });
  return [...steps, { title: t("step.end"), text, values: cells, marked: looked, now: null, verdict: told.a }];
}

/** `3 by apple; 7 by pear, plum`. */
export function whoSet(told, keys) {
  const by = setters(keys);
  return h("span", null, [...new Set(told.at)].map((i, n) => [n ? "; " : "", parts("play.by", { i, keys: namesOf(by, i) })]));
}

/** A key that has the same fingerprint and the same places. */
export function twinOf(told, keys) {
  const places = (key) => [key.at[0], key.at[key.at.length / 2]];
  const twin = keys.find((key) => !key.refused && isIn({ fingerprint: key.fingerprint, places: places(key) }, told));
  return strong(twin?.key ?? t("step.somebody"));
}

/** The fingerprint comes in, and what it kicks out moves on. */
function kicked({ told, cells }) {
  const base = { marked: told.at, now: null };
  const end = t("step.end.added");
  if (told.refused) return [{ ...base, title: t("step.end"), text: parts("step.refused", { key: strong(told.key) }), placed: 0, verdict: "no" }];
  const steps = told.moves.map((move, n) => {
    const evicted = cells[move.to] && !told.moves.slice(0, n).some((other) => other.from === move.to) ? cells[move.to] : null;
    const sort = move.from === null ? (evicted ? "kick" : "free") : evicted ? "on" : "end";
    const text = parts(`step.slot.${sort}`, { print: mono(move.fingerprint.toString(16)), from: move.from, to: move.to, other: mono(evicted?.fingerprint.toString(16)) });
    return { ...base, title: t("step.slot", { i: move.to }), text, placed: n + 1, now: move.to };
  });
  const sort = { "no": "in", "yes": "twice", "false yes": "seemed" }[told.answer];
  const text = parts(`step.${sort}.slots`, { key: strong(told.key), print: mono(told.fingerprint.toString(16)), to: told.moves[0].to, moved: told.moves.length - 1 });
  return [...steps, { ...base, title: end, text, placed: told.moves.length, verdict: "yes" }];
}

/** Both places are looked at, if the first does not have it. */
function searched({ told, cells, keys }) {
  const half = told.at.length / 2;
  const print = mono(told.fingerprint.toString(16));
  const base = { marked: told.at, now: null, placed: 0 };
  const steps = [];
  for (const [title, slots] of [["step.first", told.at.slice(0, half)], ["step.second", told.at.slice(half)]]) {
    const found = slots.find((i) => isIn(cells[i], told));
    const sort = found === undefined ? "not" : "here";
    steps.push({ ...base, title: t(title), text: parts(`step.place.${sort}`, { slots: mono(slots.join(" ")), print: print.cloneNode(true), i: found }), now: found ?? null });
    if (found !== undefined) break;
  }
  const text = told.a === "false no" ? parts("step.false_no", { key: strong(told.key) })
    : parts(`step.${told.a.replace(" ", "_")}.slots`, { key: strong(told.key), twin: twinOf(told, keys) });
  return [...steps, { ...base, title: t("step.end"), text, verdict: told.a }];
}
