// The axes of a drawing: a grid, its numbers, and where a value lies.

import { s } from "./dom.js";

const margins = { right: 26, top: 14, bottom: 48 };

/** `xs` and `ys` are the marks, as [value, text]; `across` and `up` are the first and the last value. */
export function frame(target, { label, xs, across, xTitle, ys, up, yTitle }) {
  // A title next to the axis needs room of its own, or it lies on the numbers.
  const margin = { ...margins, left: yTitle ? 72 : 58 };
  const width = Math.max(280, target.clientWidth);
  const height = Math.round(Math.min(380, Math.max(250, width * 0.45)));
  const place = (value, [from, to]) => (value - from) / (to - from);
  const x = (value) => margin.left + place(value, across) * (width - margin.left - margin.right);
  const y = (value) => height - margin.bottom - place(value, up) * (height - margin.top - margin.bottom);
  const middle = (y(up[0]) + y(up[1])) / 2;
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, class: "plot" },
    ys.map(([value, text]) => [
      s("line", { class: "grid", x1: x(across[0]), x2: x(across[1]), y1: y(value), y2: y(value) }),
      s("text", { class: "tick", x: margin.left - 8, y: y(value) + 4, "text-anchor": "end" }, text)]),
    xs.map(([value, text]) => [
      s("line", { class: "grid", x1: x(value), x2: x(value), y1: y(up[0]), y2: y(up[1]) }),
      s("text", { class: "tick", x: x(value), y: height - margin.bottom + 17, "text-anchor": "middle" }, text)]),
    s("text", { class: "axis", x: (x(across[0]) + x(across[1])) / 2, y: height - 6, "text-anchor": "middle" }, xTitle),
    yTitle ? s("text", { class: "axis", x: 12, y: middle, transform: `rotate(-90 12 ${middle})`, "text-anchor": "middle" }, yTitle) : null);
  return { width, x, y, svg };
}
