// Bits, counters and slots as drawings, with the cells of one key marked.

import { s } from "./dom.js";

/** Bits in rows; those of lines in rows of a word, eight rows a line. */
export function cells({ kind, cells, width, a, b, name, keys }) {
  const inLines = kind !== "bloom";
  const columns = inLines ? 64 : cells.length <= 256 || width < 500 ? 32 : 64;
  const numbers = 34; // the numbers at the left
  const side = Math.min(26, (width - numbers - (inLines ? 1 : 0)) / columns);
  const gap = side > 8 ? 2 : side > 5 ? 1 : 0.5;
  const rows = Math.ceil(cells.length / columns);
  const space = 14; // between lines
  const top = (row) => row * side + (inLines ? Math.floor(row / 8) * space : 0);
  const origin = (i) => (a === null ? (name === "b" ? "b" : "a") : a[i] && b[i] ? "both" : a[i] ? "a" : "b");
  const what = kind === "counting" ? "counter" : "bit";
  const setters = new Map();
  for (const key of keys.filter((key) => !key.refused)) for (const i of new Set(key.at)) setters.set(i, [...(setters.get(i) ?? []), key.key]);
  const told = (value, i) => {
    const by = setters.get(i) ?? [];
    const names = by.length > 3 ? `${by.slice(0, 3).join(", ")} and ${by.length - 3} more` : by.join(", ");
    return `${what} ${i}: ${kind === "counting" ? value : value ? "set" : "not set"}${value && names ? `, by ${names}` : ""}`;
  };
  const marks = [];
  const drawn = cells.map((value, i) => {
    const x = numbers + (i % columns) * side;
    const y = top(Math.floor(i / columns));
    const rect = s("rect", { x: x.toFixed(2), y: y.toFixed(2), width: (side - gap).toFixed(2), height: (side - gap).toFixed(2), rx: Math.min(3, side / 5).toFixed(1), class: "cell", "data-i": i, "data-v": value, "data-of": value ? origin(i) : null }, s("title", null, told(value, i)));
    marks.push(rect);
    if (kind !== "counting" || !value) return rect;
    return side < 11 ? rect : [rect, s("text", { class: "counter", x: (x + (side - gap) / 2).toFixed(2), y: (y + side * 0.66).toFixed(2), "text-anchor": "middle", "font-size": (side * 0.62).toFixed(1) }, value)];
  });
  // A number where there is room for its digits.
  const step = Math.ceil(11 / side);
  const labels = Array.from({ length: rows }, (_, row) => row).filter((row) => (inLines ? row % 8 : row) % step === 0)
    .map((row) => s("text", { class: "tick", x: numbers - 6, y: (top(row) + side * 0.5 + 4).toFixed(1), "text-anchor": "end" }, row * columns));
  const height = top(rows - 1) + side;
  const wide = numbers + columns * side;
  const svg = s("svg", { class: "cells", viewBox: `0 0 ${wide.toFixed(1)} ${height.toFixed(1)}`, width: wide.toFixed(1), height: height.toFixed(1), role: "img", "aria-label": `${cells.filter((value) => value).length} of ${cells.length} ${kind === "counting" ? "counters are above 0" : "bits are set"}` }, labels, drawn);
  const mark = (key) => {
    const its = new Set(key?.at ?? []);
    marks.forEach((rect, i) => rect.classList.toggle("mine", its.has(i)));
  };
  const text = Array.from({ length: rows }, (_, row) => `${String(row * columns).padStart(5)}  ${cells.slice(row * columns, (row + 1) * columns).map((value) => value.toString(16)).join("")}`).join("\n");
  return { svg, mark, text };
}

/** The slots of a cuckoo filter as boxes, with arrows for what the last key moved. */
export function slots({ cells, width, moves }) {
  const columns = Math.min(cells.length, Math.max(4, Math.floor(width / (cells.length > 64 ? 40 : 52))));
  const wide = Math.min(64, width / columns);
  const high = 36;
  const arch = moves?.some((step) => step.from !== null) ? 26 : 14;
  const pitch = high + arch;
  const rows = Math.ceil(cells.length / columns);
  const at = (slot) => [(slot % columns) * wide, Math.floor(slot / columns) * pitch + arch];
  const marks = [];
  const drawn = cells.map((cell, i) => {
    const [x, y] = at(i);
    const rect = s("rect", { x: x + 1, y, width: wide - 3, height: high - 4, rx: 5, class: "slot", "data-i": i, "data-fingerprint": cell?.fingerprint, "data-places": cell?.places.join(" "), "data-of": cell ? "a" : null });
    marks.push(rect);
    rect.append(s("title", null, cell ? `slot ${i}: fingerprint ${cell.fingerprint.toString(16)}, whose places begin at ${cell.places.join(" and ")}` : `slot ${i}: free`));
    return [rect,
      cell ? s("text", { class: "print", x: x + wide / 2, y: y + 15, "text-anchor": "middle" }, cell.fingerprint.toString(16)) : null,
      s("text", { class: "number", x: x + wide / 2, y: y + 28, "text-anchor": "middle" }, i)];
  });
  const steps = (moves ?? []).filter((step) => step.from !== null);
  const arrows = steps.map((step) => {
    const [x1, y1] = at(step.from);
    const [x2, y2] = at(step.to);
    const [from, to] = [x1 + wide / 2, x2 + wide / 2];
    const lift = Math.min(y1, y2) - arch * 0.85;
    return s("path", { class: "kick", "marker-end": "url(#arrow)", d: `M ${from} ${y1 - 1} C ${from} ${lift}, ${to} ${lift}, ${to} ${y2 - 3}` });
  });
  const [, last] = at(cells.length - 1);
  const height = last + high + 2;
  const taken = cells.filter((cell) => cell).length;
  const svg = s("svg", { class: "cells", viewBox: `0 0 ${width.toFixed(1)} ${height}`, width, height, role: "img", "aria-label": `${taken} of ${cells.length} slots are taken${steps.length ? `; the last key moved ${steps.length} others` : ""}` },
    s("defs", null, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { class: "head", d: "M 0 0.5 L 7 4 L 0 7.5 z" }))),
    drawn, arrows);
  const mark = (key) => {
    const half = (key?.at.length ?? 0) / 2;
    const first = new Set(key?.at.slice(0, half));
    const second = new Set(key?.at.slice(half));
    marks.forEach((rect, i) => {
      rect.classList.toggle("mine", first.has(i));
      rect.classList.toggle("other", second.has(i));
      rect.classList.toggle("here", (first.has(i) || second.has(i)) && cells[i]?.fingerprint === key?.fingerprint);
    });
  };
  const text = cells.map((cell, i) => `${String(i).padStart(4)}  ${cell ? cell.fingerprint.toString(16) : "·"}`).join("\n");
  return { svg, mark, text, moved: steps.length > 0 };
}
