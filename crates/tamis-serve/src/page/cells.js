// Bits, counters and slots as drawings, with the cells of one key marked.

import { s } from "./dom.js";
import { t } from "./texts.js";

/** Who set each cell: three names at most. */
export function setters(keys) {
  const by = new Map();
  for (const key of keys.filter((key) => !key.refused)) for (const i of new Set(key.at)) by.set(i, [...(by.get(i) ?? []), key.key]);
  return (i) => {
    const names = by.get(i) ?? [];
    const some = names.slice(0, 3).join(", ");
    return names.length > 3 ? t("play.cell.more", { keys: some, n: names.length - 3 }) : some;
  };
}

/** Where the cells are: few of them large, each with its number; bits of lines in rows of a word, eight rows a line. */
function layout(kind, count, width) {
  const inLines = kind !== "bloom";
  const few = !inLines && count <= 32;
  const columns = few ? Math.min(16, count) : inLines ? 64 : count <= 256 || width < 500 ? 32 : 64;
  const numbers = few ? 1 : 34; // the numbers at the left
  const side = Math.min(few ? 46 : 26, (width - numbers - 1) / columns);
  const space = 14; // between lines
  const top = (row) => row * (side + (few ? 18 : 0)) + (inLines ? Math.floor(row / 8) * space : 0);
  const rows = Math.ceil(count / columns);
  const step = Math.ceil(11 / side); // a number where there is room for its digits
  const at = (i) => [numbers + (i % columns) * side, top(Math.floor(i / columns))];
  const label = (x, y, anchor, text) => s("text", { class: "tick", x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor }, text);
  const labels = few
    ? Array.from({ length: count }, (_, i) => label(at(i)[0] + side / 2 - 1, at(i)[1] + side + 11, "middle", i))
    : Array.from({ length: rows }, (_, row) => row).filter((row) => (inLines ? row % 8 : row) % step === 0)
      .map((row) => label(numbers - 6, top(row) + side * 0.5 + 4, "end", row * columns));
  return { few, columns, side, rows, at, labels, wide: numbers + columns * side + 1, high: top(rows - 1) + side + (few ? 16 : 1) };
}

/** Bits and counters. `update` shows other values, marks cells, and points at one. */
export function cells({ kind, cells, width, a = null, b = null, name, keys, label }) {
  const { few, columns, side, rows, at, labels, wide, high } = layout(kind, cells.length, width);
  const gap = side > 8 ? 2 : side > 5 ? 1 : 0.5;
  const isCounting = kind === "counting";
  const origin = (i) => (a === null ? (name === "b" ? "b" : "a") : a[i] && b[i] ? "both" : a[i] ? "a" : "b");
  const by = setters(keys);
  const told = (value, i) => {
    const what = isCounting ? value : t(value ? "play.cell.set" : "play.cell.unset");
    const names = value ? by(i) : "";
    return t(isCounting ? "play.cell.counter" : "play.cell.bit", { i, what: names ? t("play.cell.by", { what, keys: names }) : what });
  };
  const hasDigits = few || (isCounting && side >= 11);
  const digit = (value) => (isCounting && !value ? "" : value);
  const drawn = cells.map((value, i) => {
    const [x, y] = at(i);
    const rect = s("rect", { x: x.toFixed(2), y: y.toFixed(2), width: (side - gap).toFixed(2), height: (side - gap).toFixed(2), rx: Math.min(few ? 6 : 3, side / 5).toFixed(1), class: "cell", "data-i": i, "data-v": value, "data-of": value ? origin(i) : null }, s("title", null, told(value, i)));
    const text = hasDigits ? s("text", { class: "counter", x: (x + (side - gap) / 2).toFixed(2), y: (y + side * (few ? 0.6 : 0.66)).toFixed(2), "text-anchor": "middle", "font-size": (side * (few ? 0.42 : 0.62)).toFixed(1) }, digit(value)) : null;
    return { rect, text };
  });
  const svg = s("svg", { class: "cells", viewBox: `0 0 ${wide.toFixed(1)} ${high.toFixed(1)}`, width: wide.toFixed(1), height: high.toFixed(1), role: "img" }, labels, drawn.map(({ rect, text }) => [rect, text]));
  const describe = (values) => svg.setAttribute("aria-label", t(`${label}.${isCounting ? "counters" : "bits"}`, { n: values.filter((value) => value).length, all: cells.length }));
  describe(cells);
  const mark = (key) => {
    const its = new Set(key?.at ?? []);
    drawn.forEach(({ rect }, i) => rect.classList.toggle("mine", its.has(i)));
  };
  const update = ({ values, marked, now }) => {
    values.forEach((value, i) => {
      const { rect, text } = drawn[i];
      rect.classList.toggle("now", i === now);
      rect.dataset.v = value;
      if (value) rect.dataset.of = origin(i);
      else delete rect.dataset.of;
      rect.firstChild.textContent = told(value, i);
      if (text) text.textContent = digit(value);
    });
    mark({ at: marked });
    describe(values);
  };
  const text = Array.from({ length: rows }, (_, row) => `${String(row * columns).padStart(5)}  ${cells.slice(row * columns, (row + 1) * columns).map((value) => value.toString(16)).join("")}`).join("\n");
  return { svg, mark, update, text };
}

/** Whether a slot holds what is kept of a key: its fingerprint, with the same two places. */
export function isIn(cell, key) {
  if (!cell || !key || cell.fingerprint !== key.fingerprint) return false;
  const places = [key.at[0], key.at[key.at.length / 2]];
  const sorted = (pair) => [...pair].sort((one, other) => one - other).join();
  return sorted(cell.places) === sorted(places);
}

/** Where the slots of a cuckoo filter are: boxes in rows, with room for arrows between them. */
export function slotLayout(count, width, arch) {
  const columns = Math.min(count, Math.max(4, Math.floor(width / (count > 64 ? 40 : 52))));
  const wide = Math.min(64, width / columns);
  const high = 36;
  const at = (slot) => [(slot % columns) * wide, Math.floor(slot / columns) * (high + arch) + arch];
  return { wide, at, height: at(count - 1)[1] + high + 2 };
}

const slotTitle = (cell, i) => (cell ? t("play.cell.slot", { i, print: cell.fingerprint.toString(16), one: cell.places[0], other: cell.places[1] }) : t("play.cell.free", { i }));

/** The boxes of the slots, and what marks those of a key. */
export function boxes(cells, { wide, at }) {
  const rects = cells.map((cell, i) => {
    const [x, y] = at(i);
    return s("rect", { x: x + 1, y, width: wide - 3, height: 32, rx: 5, class: "slot", "data-i": i, "data-fingerprint": cell?.fingerprint, "data-places": cell?.places.join(" "), "data-of": cell ? "a" : null }, s("title", null, slotTitle(cell, i)));
  });
  const numbers = cells.map((_, i) => s("text", { class: "number", x: at(i)[0] + wide / 2, y: at(i)[1] + 28, "text-anchor": "middle" }, i));
  const mark = (key, held = cells) => {
    const half = (key?.at.length ?? 0) / 2;
    const first = new Set(key?.at.slice(0, half));
    const second = new Set(key?.at.slice(half));
    rects.forEach((rect, i) => {
      rect.classList.toggle("mine", first.has(i));
      rect.classList.toggle("other", second.has(i));
      rect.classList.toggle("here", (first.has(i) || second.has(i)) && isIn(held[i], key));
    });
  };
  return { rects, numbers, mark };
}

/** The slots of a cuckoo filter as boxes, with arrows for what the last key moved. */
export function slots({ cells, width, moves }) {
  const arch = moves?.some((step) => step.from !== null) ? 26 : 14;
  const layout = slotLayout(cells.length, width, arch);
  const { wide, at, height } = layout;
  const { rects, numbers, mark } = boxes(cells, layout);
  const print = (cell, i) => cell && s("text", { class: "print", x: at(i)[0] + wide / 2, y: at(i)[1] + 15, "text-anchor": "middle" }, cell.fingerprint.toString(16));
  const steps = (moves ?? []).filter((step) => step.from !== null);
  const arrows = steps.map((step) => {
    const [x1, y1] = at(step.from);
    const [x2, y2] = at(step.to);
    const [from, to] = [x1 + wide / 2, x2 + wide / 2];
    const lift = Math.min(y1, y2) - arch * 0.85;
    return s("path", { class: "kick", "marker-end": "url(#arrow)", d: `M ${from} ${y1 - 1} C ${from} ${lift}, ${to} ${lift}, ${to} ${y2 - 3}` });
  });
  const taken = t("play.drawn.slots", { n: cells.filter((cell) => cell).length, all: cells.length });
  const svg = s("svg", { class: "cells", viewBox: `0 0 ${width.toFixed(1)} ${height}`, width, height, role: "img", "aria-label": steps.length ? t("play.drawn.moved", { what: taken, n: steps.length }) : taken },
    s("defs", null, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { class: "head", d: "M 0 0.5 L 7 4 L 0 7.5 z" }))),
    cells.map((cell, i) => [rects[i], print(cell, i), numbers[i]]), arrows);
  const text = cells.map((cell, i) => `${String(i).padStart(4)}  ${cell ? cell.fingerprint.toString(16) : "·"}`).join("\n");
  return { svg, mark, text, moved: steps.length > 0 };
}
