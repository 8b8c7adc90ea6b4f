// What is drawn of one filter: how full its lines are, its generations, and what it answered.

import { count, h, lasting, percent, put, s } from "./dom.js";
import { t } from "./texts.js";

/** A bar a value, from the bottom; `stacks` are lists of [class, value]. */
function columns(target, stacks, labels, described) {
  const width = Math.max(240, Math.min(target.clientWidth || 320, 640));
  const [height, bottom] = [150, 18];
  const most = Math.max(1, ...stacks.map((parts) => parts.reduce((sum, [, value]) => sum + value, 0)));
  const wide = width / stacks.length;
  return s("svg", { class: "columns-chart", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": described },
    s("line", { class: "grid", x1: 0, x2: width, y1: height - bottom, y2: height - bottom }),
    stacks.map((parts, i) => {
      let y = height - bottom;
      return parts.map(([kind, value, text]) => {
        const high = (value / most) * (height - bottom - 6);
        y -= high;
        return value ? s("rect", { class: `column ${kind}`, x: i * wide + 1, y, width: Math.max(1, wide - 2), height: Math.max(1, high) }, s("title", null, text)) : null;
      });
    }),
    labels.map(([at, text, anchor]) => s("text", { class: "tick", x: at * width, y: height - 4, "text-anchor": anchor }, text)));
}

const asTable = (heads, rows) => h("details", null, h("summary", null, t("filters.table")), h("table", { class: "numbers" },
  h("thead", null, h("tr", null, heads.map((text) => h("th", { scope: "col" }, text)))),
  h("tbody", null, rows.map(([first, ...others]) => h("tr", null, h("th", { scope: "row" }, first), others.map((text) => h("td", null, text)))))));

/** Keeps a table open that is drawn anew. */
function replace(target, ...children) {
  const open = target.querySelector("details")?.open;
  put(target, ...children);
  if (open) target.querySelector("details").open = true;
}

/** How many lines are how full. */
export function lines(target, told) {
  if (!told) {
    put(target, h("p", { class: "aside" }, t("filters.no_lines")));
    return;
  }
  const wide = 100 / told.counts.length;
  const from = (i) => t("filters.range", { from: Number((i * wide).toFixed(1)), to: Number(((i + 1) * wide).toFixed(1)) });
  const sampled = told.sampled < told.lines ? t("filters.some_lines", { n: count(told.sampled), all: count(told.lines) }) : t("filters.all_lines", { n: count(told.lines) });
  replace(target,
    h("p", { class: "aside" }, t("filters.set", { lines: sampled, share: percent(told.fill) })),
    columns(target, told.counts.map((n, i) => [["a", n, t("filters.line", { n: count(n), range: from(i) })]]), [[0, t("filters.empty"), "start"], [0.5, t("filters.half"), "middle"], [1, t("filters.full"), "end"]], t("filters.lines.picture")),
    asTable([t("filters.lines.full"), t("filters.lines.lines")], told.counts.map((n, i) => [from(i), count(n)]).filter(([, n]) => n !== "0")));
}

/** What a window remembers, and in which steps it forgets. */
export function windowFacts(window) {
  const meaning = window.by === "keys" ? "last" : window.renewal;
  return [
    ["window", t(`window.${meaning}`, { span: spanning(window, window.span) }), meaning],
    ["generations", t("window.each", { n: count(window.generation_count), span: spanning(window, window.band) }), window.generation_count],
  ];
}

/** So much time, or so many keys. */
const spanning = (window, n) => (window.by === "keys" ? t("filters.n_keys", { n: count(n) }) : lasting(n));

/** A bar for each generation, the newest at the right: how many keys it has. A file that was dropped is
 * described as of its latest key, which is its end. */
export function generations(target, window, isDropped) {
  const all = window.generations;
  const since = (age) => spanning(window, age);
  const text = (one) => t("window.generation", { age: since(one.age), n: count(one.keys) });
  replace(target,
    h("p", { class: "aside" }, t("window.about")),
    columns(target, [...all].reverse().map((one) => [["a", one.keys, text(one)]]),
      all.length ? [[0, since(all.at(-1).age), "start"], [1, isDropped ? t("window.latest", { time: window.latest ?? "" }) : t("filters.now"), "end"]] : [], t("window.picture")),
    asTable(["age", "keys"].map((name) => t(`window.${name}`)), all.map((one) => [since(one.age), count(one.keys)])));
}

const kindsOfAnswer = ["yes", "no", "new", "known"];

/** What was answered in the last minutes. */
export function recent(target, minutes) {
  const clock = (minute) => new Date(minute.at * 1000).toLocaleTimeString("sv", { hour: "2-digit", minute: "2-digit" });
  const sorts = kindsOfAnswer.map((sort) => [sort, t(`filters.${sort}`)]);
  const sum = (sort) => minutes.reduce((all, minute) => all + minute[sort], 0);
  replace(target,
    h("ul", { class: "legend" }, sorts.map(([sort, text]) => h("li", null, h("span", { class: `swatch ${sort}` }), h("span", null, text, " ", h("strong", { "data-recent": sort }, count(sum(sort))))))),
    columns(target, minutes.map((minute) => sorts.map(([sort, text]) => [sort, minute[sort], `${clock(minute)}: ${count(minute[sort])} ${text}`])),
      minutes.length ? [[0, clock(minutes[0]), "start"], [1, t("filters.now"), "end"]] : [], t("filters.recent.picture")),
    asTable([t("filters.minute"), ...sorts.map(([, text]) => text)], minutes.filter((minute) => sorts.some(([sort]) => minute[sort])).map((minute) => [clock(minute), ...sorts.map(([sort]) => count(minute[sort]))])));
}
