// The curve of rate against keys, as a drawing, a reading and a table.

import { count, h, onWidth, put, rate, s, short } from "./dom.js";
import { t } from "./texts.js";

const margin = { left: 72, right: 16, top: 14, bottom: 48 };

export function curve(root) {
  const drawing = h("div", { class: "drawing" });
  const slider = h("input", { type: "range", min: 0, step: 1, id: "curve-at", "aria-describedby": "reading" });
  const reading = h("p", { id: "reading", class: "reading", role: "status" });
  const table = h("table", { class: "numbers" });
  const parts = [
    drawing,
    h("label", { class: "wide", for: "curve-at" }, t("curve.keys")), slider, reading,
    h("details", null, h("summary", null, t("curve.table")), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("curve.table") }, table)),
  ];
  root.append(...parts);
  let data = null;
  let told = null;

  slider.addEventListener("input", () => data && point());
  onWidth(drawing, () => data && picture());

  function clear() {
    data = null;
    put(drawing);
    reading.textContent = "";
    put(table);
  }

  function draw(answer, shown, planned) {
    const before = data ? Number(slider.value) - data.middle : 0;
    data = { ...answer, shown, middle: nearest(answer.keys, planned) };
    slider.max = answer.keys.length - 1;
    slider.value = Math.min(answer.keys.length - 1, Math.max(0, data.middle + before));
    picture();
    point();
    tabulate();
  }

  /** What the filters answer with so many keys. */
  function point() {
    const at = Number(slider.value);
    const keys = data.keys[at];
    const times = keys / data.keys[data.middle];
    const factor = at === data.middle ? t("curve.planned") : times > 1 ? t("curve.more", { n: rate(times) }) : t("curve.fewer", { n: rate(1 / times) });
    put(reading, h("strong", null, t("curve.reading", { keys: count(keys) })), ` (${factor}): `,
      data.rates.map(({ kind, rates }, i) => [i ? ", " : "", h("span", { class: "nowrap" }, h("span", { class: "swatch", "data-kind": kind }), `${kind} ${rates[at] === null ? t("curve.full") : rate(rates[at])}`)]));
    slider.setAttribute("aria-valuetext", t("curve.reading", { keys: short(keys) }));
    told?.(at);
  }

  function tabulate() {
    const steps = data.keys.map((_, i) => i).filter((i) => (i - data.middle) % 6 === 0);
    put(table,
      h("thead", null, h("tr", null, h("th", { scope: "col" }, t("calculator.keys")), data.rates.map(({ kind }) => h("th", { scope: "col" }, kind)))),
      h("tbody", null, steps.map((i) => h("tr", { class: i === data.middle ? "is-shown" : null },
        h("th", { scope: "row" }, count(data.keys[i])),
        data.rates.map(({ rates }) => h("td", null, rates[i] === null ? t("curve.full") : rate(rates[i])))))));
  }

  function picture() {
    if (drawing.clientWidth === 0) return; // not seen: drawn when it is
    const width = Math.max(280, drawing.clientWidth);
    const height = Math.round(Math.min(380, Math.max(240, width * 0.5)));
    const all = data.rates.flatMap(({ rates }) => rates).filter((r) => r > 0);
    const planned = data.rates.map(({ rates }) => rates[data.middle]).filter((r) => r > 0);
    // Far below the planned rate nobody looks.
    const low = Math.floor(Math.max(Math.log10(Math.min(...all)), Math.log10(Math.min(...planned)) - 2));
    const x = (keys) => margin.left + ((Math.log(keys) - Math.log(data.keys[0])) / (Math.log(data.keys.at(-1)) - Math.log(data.keys[0]) || 1)) * (width - margin.left - margin.right);
    const y = (r) => margin.top + (Math.log10(r) / low) * (height - margin.top - margin.bottom);
    const decades = Array.from({ length: -low + 1 }, (_, i) => -i).filter((d) => d % Math.ceil(-low / 6) === 0);
    const ticks = data.keys.map((_, i) => i).filter((i) => (i - data.middle) % (width < 500 ? 12 : 6) === 0);
    const clip = (r) => Math.max(r, 10 ** low);
    const line = ({ kind, rates }) => {
      const points = rates.map((r, i) => [data.keys[i], r]).filter(([, r]) => r !== null && r > 10 ** low);
      if (points.length === 0) return null;
      const [lastKeys, lastRate] = points.at(-1);
      const ends = rates.at(-1) === null;
      return s("g", { class: `line${kind === data.shown ? " is-shown" : ""}`, "data-kind": kind },
        s("polyline", { points: points.map(([keys, r]) => `${x(keys).toFixed(1)},${y(r).toFixed(1)}`).join(" ") }),
        ends ? s("circle", { cx: x(lastKeys), cy: y(clip(lastRate)), r: 4 }) : null);
    };
    const marker = s("line", { class: "marker", y1: margin.top, y2: height - margin.bottom });
    told = (at) => {
      marker.setAttribute("x1", x(data.keys[at]));
      marker.setAttribute("x2", x(data.keys[at]));
    };
    const shownLast = [...data.rates].sort((a, b) => (a.kind === data.shown) - (b.kind === data.shown));
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": t("curve.picture") },
      decades.map((d) => [
        s("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: y(10 ** d), y2: y(10 ** d) }),
        s("text", { class: "tick", x: margin.left - 8, y: y(10 ** d) + 4, "text-anchor": "end" }, d === 0 ? "1" : d > -4 ? String(Number((10 ** d).toFixed(-d))) : `1e${d}`)]),
      ticks.map((i) => [
        s("line", { class: i === data.middle ? "grid planned" : "grid", x1: x(data.keys[i]), x2: x(data.keys[i]), y1: margin.top, y2: height - margin.bottom }),
        s("text", { class: "tick", x: x(data.keys[i]), y: height - margin.bottom + 17, "text-anchor": "middle" }, short(data.keys[i]))]),
      s("text", { class: "axis", x: (margin.left + width - margin.right) / 2, y: height - 6, "text-anchor": "middle" }, t("curve.x")),
      s("text", { class: "axis", x: 12, y: (height - margin.bottom + margin.top) / 2, transform: `rotate(-90 12 ${(height - margin.bottom + margin.top) / 2})`, "text-anchor": "middle" }, t("curve.y")),
      shownLast.map(line), marker);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) * (width / box.width) - margin.left) / (width - margin.left - margin.right);
      slider.value = Math.round(Math.min(1, Math.max(0, at)) * (data.keys.length - 1));
      point();
    });
    put(drawing, svg,
      h("ul", { class: "legend", "aria-hidden": "true" }, data.rates.map(({ kind, rates }) => h("li", null, h("span", { class: "swatch", "data-kind": kind }), kind, rates.at(-1) === null ? h("small", null, t("curve.ends")) : null))));
    told(Number(slider.value));
  }

  return { draw, clear };
}

const nearest = (numbers, n) => numbers.reduce((best, value, i) => (Math.abs(value - n) < Math.abs(numbers[best] - n) ? i : best), 0);
