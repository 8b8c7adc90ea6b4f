// The filters being served: how full, how wrong, what they answered, and a box
// to ask them.

import { ask, count, h, keysIn, lasting, onWidth, percent, put, rate, s, short } from "./dom.js";
import { parts, t } from "./texts.js";

const pause = 3000; // between two looks, while the tab is seen

let root, remember, timer;
let name = "";
let filters = [];
let shown = false;
let looks = 0;

export function mount(panel, keep) {
  root = panel;
  remember = keep;
  root.append(
    h("h1", { class: "only-read" }, t("tab.filters")),
    h("p", { id: "filters-problem", class: "problem", role: "alert" }),
    h("div", { class: "columns" },
      h("nav", { class: "card controls", "aria-labelledby": "filters-title" },
        h("h2", { id: "filters-title" }, t("filters.title")),
        h("ul", { id: "filter-list" })),
      h("div", { class: "results", id: "filter" },
        h("section", { class: "card", "aria-labelledby": "filter-name" },
          h("h2", { id: "filter-name" }),
          h("p", { id: "filter-fault", class: "problem" }),
          h("dl", { id: "filter-facts", class: "facts" })),
        h("section", { class: "card", "aria-labelledby": "check-title" },
          h("h2", { id: "check-title" }, t("filters.ask")),
          h("form", { id: "check", onsubmit: check },
            h("div", { class: "field box" },
              h("label", { for: "check-keys" }, t("filters.keys"), " ", h("small", { id: "check-hint" }, t("filters.one_a_line"))),
              h("textarea", { id: "check-keys", rows: 3, spellcheck: "false", autocomplete: "off" })),
            h("button", { type: "submit" }, t("filters.check"))),
          h("div", { id: "check-answers", role: "status" })),
        h("div", { class: "pair" },
          h("section", { class: "card", "aria-labelledby": "lines-title" },
            h("h2", { id: "lines-title" }, t("filters.lines")),
            h("div", { id: "filter-lines" })),
          h("section", { class: "card", "aria-labelledby": "recent-title" },
            h("h2", { id: "recent-title" }, t("filters.recent")),
            h("div", { id: "filter-recent" }))))));
  onWidth(root.querySelector("#filter-lines"), () => shown && filters.length && draw());
}

document.addEventListener("visibilitychange", () => shown && !document.hidden && look());

export const state = () => (name ? new URLSearchParams({ name }).toString() : "");

export function show(query) {
  name = query.get("name") ?? "";
  shown = true;
  look();
}

export function leave() {
  shown = false;
  clearTimeout(timer);
}

async function look() {
  clearTimeout(timer);
  const mine = ++looks;
  const [told, problem] = await ask("v1/filters");
  if (mine !== looks) return; // a later look has newer numbers, though its answer may be there already
  root.querySelector("#filters-problem").textContent = problem ?? "";
  if (told) {
    filters = told.filters;
    draw();
  }
  root.dataset.looked = String(Number(root.dataset.looked ?? 0) + 1);
  clearTimeout(timer);
  if (shown && !document.hidden) timer = setTimeout(look, pause);
}

const chosen = () => filters.find((filter) => filter.name === name) ?? filters[0];
const known = (number, text) => (number === undefined || number === null ? "–" : text(number));
const share = (filter) => (filter.capacity ? Math.min(1, filter.keys / filter.capacity) : null);

function draw() {
  const filter = chosen();
  root.querySelector("#filter").hidden = !filter;
  const focused = root.querySelector("#filter-list").contains(document.activeElement) ? document.activeElement.dataset.name : null;
  put(root.querySelector("#filter-list"), ...(filters.length ? filters.map((each) => item(each, each === filter)) : [h("li", null, parts("filters.none", { command: h("code", null, "tamis serve seen.tamis") }))]));
  if (focused !== null) [...root.querySelectorAll("#filter-list button")].find((button) => button.dataset.name === focused)?.focus();
  if (!filter) return;
  root.querySelector("#filter-name").textContent = filter.name;
  root.querySelector("#filter-fault").textContent = filter.fault ?? "";
  const facts = [
    ["kind", known(filter.kind, String)],
    // A count that leaves out keys that were taken for known is no count: the bits say more.
    ["keys", known(filter.keys_estimated ?? filter.keys, (n) => (filter.keys_counted === false || filter.keys_at_least ? t("filters.about", { n: count(n) }) : count(n)))],
    ["capacity", known(filter.capacity, (n) => t("filters.n_keys", { n: count(n) }))],
    ...(filter.window ? windowFacts(filter.window) : [["fill", known(filter.lines?.fill, percent), filter.lines?.fill]]),
    ["rate_now", known(filter.rate_now, rate)],
    ["rate", known(filter.rate, rate)],
    ["bytes", known(filter.bytes, (n) => `${short(n).replace(/(?=[A-Za-z]|$)/, " ")}B`)],
    ["writable", t(filter.writable ? "filters.allowed" : "filters.not")],
    ["place", filter.place ?? "–"],
    ["loaded_at", known(filter.loaded_at, (seconds) => new Date(seconds * 1000).toLocaleString("sv"))],
  ];
  put(root.querySelector("#filter-facts"), ...facts.map(([fact, text, value]) => h("div", null,
    h("dt", null, t(`filters.${fact}`)),
    h("dd", { "data-fact": fact, "data-value": value ?? filter[fact], class: fact === "rate_now" && filter.rate_now > filter.rate * 1.0001 ? "over" : null }, text))));
  root.querySelector("#check-hint").textContent = (filter.key_rule?.values ?? 1) > 1 ? t("filters.values", { n: filter.key_rule.values }) : t("filters.one_a_line");
  root.querySelector("#lines-title").textContent = t(filter.window ? "window.title" : "filters.lines");
  if (filter.window) generations(filter.window);
  else lines(filter.lines);
  recent(filter.recent ?? []);
}

function item(filter, current) {
  const full = share(filter);
  const bar = h("span", { class: filter.over_capacity ? "bar over" : "bar" });
  bar.style.inlineSize = `${(full ?? 0) * 100}%`;
  return h("li", null, h("button", {
    type: "button", class: "filter", "data-name": filter.name, "aria-current": current ? "true" : null,
    onclick: () => { name = filter.name; put(root.querySelector("#check-answers")); remember(state()); draw(); },
  },
    h("span", { class: "name" }, filter.name),
    h("small", null, filter.fault && !filter.kind ? t("filters.missing") : t(full === null ? "filters.holds" : "filters.of", { kind: filter.kind, keys: known(filter.keys, short), capacity: full === null ? "" : short(filter.capacity) })),
    h("span", { class: "track", "aria-hidden": "true" }, bar)));
}

/** A bar a value, from the bottom; `stacks` are lists of [class, value]. */
function columns(stacks, labels, described) {
  const width = Math.max(240, Math.min(root.querySelector("#filter-lines").clientWidth || 320, 640));
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

function lines(told) {
  const target = root.querySelector("#filter-lines");
  if (!told) {
    put(target, h("p", { class: "aside" }, t("filters.no_lines")));
    return;
  }
  const wide = 100 / told.counts.length;
  const from = (i) => t("filters.range", { from: Number((i * wide).toFixed(1)), to: Number(((i + 1) * wide).toFixed(1)) });
  const sampled = told.sampled < told.lines ? t("filters.some_lines", { n: count(told.sampled), all: count(told.lines) }) : t("filters.all_lines", { n: count(told.lines) });
  replace(target,
    h("p", { class: "aside" }, t("filters.set", { lines: sampled, share: percent(told.fill) })),
    columns(told.counts.map((n, i) => [["a", n, t("filters.line", { n: count(n), range: from(i) })]]), [[0, t("filters.empty"), "start"], [0.5, t("filters.half"), "middle"], [1, t("filters.full"), "end"]], t("filters.lines.picture")),
    asTable([t("filters.lines.full"), t("filters.lines.lines")], told.counts.map((n, i) => [from(i), count(n)]).filter(([, n]) => n !== "0")));
}

/** What a window remembers, and in which steps it forgets. */
function windowFacts(window) {
  const meaning = window.by === "keys" ? "last" : window.renewal;
  return [
    ["window", t(`window.${meaning}`, { span: spanning(window, window.span) }), meaning],
    ["generations", t("window.each", { n: count(window.generation_count), span: spanning(window, window.band) }), window.generation_count],
  ];
}

/** So much time, or so many keys. */
const spanning = (window, n) => (window.by === "keys" ? t("filters.n_keys", { n: count(n) }) : lasting(n));

/** A bar for each generation, the newest at the right: how many keys of those that it is made for. */
function generations(window) {
  const all = window.generations;
  const since = (age) => spanning(window, age);
  const full = (one) => one.keys / one.capacity;
  const text = (one) => t("window.generation", { age: since(one.age), n: count(one.keys), capacity: count(one.capacity), fill: percent(one.fill) });
  replace(root.querySelector("#filter-lines"),
    h("p", { class: "aside" }, t("window.about")),
    columns([...all].reverse().map((one) => [[full(one) > 1 ? "over" : "a", full(one), text(one)]]),
      all.length ? [[0, since(all.at(-1).age), "start"], [1, t("filters.now"), "end"]] : [], t("window.picture")),
    asTable(["age", "keys", "capacity", "fill"].map((name) => t(`window.${name}`)), all.map((one) => [since(one.age), count(one.keys), count(one.capacity), percent(one.fill)])));
}

const kindsOfAnswer = ["yes", "no", "new", "known"];

function recent(minutes) {
  const clock = (minute) => new Date(minute.at * 1000).toLocaleTimeString("sv", { hour: "2-digit", minute: "2-digit" });
  const sorts = kindsOfAnswer.map((sort) => [sort, t(`filters.${sort}`)]);
  const sum = (sort) => minutes.reduce((all, minute) => all + minute[sort], 0);
  replace(root.querySelector("#filter-recent"),
    h("ul", { class: "legend" }, sorts.map(([sort, text]) => h("li", null, h("span", { class: `swatch ${sort}` }), h("span", null, text, " ", h("strong", { "data-recent": sort }, count(sum(sort))))))),
    columns(minutes.map((minute) => sorts.map(([sort, text]) => [sort, minute[sort], `${clock(minute)}: ${count(minute[sort])} ${text}`])),
      minutes.length ? [[0, clock(minutes[0]), "start"], [1, t("filters.now"), "end"]] : [], t("filters.recent.picture")),
    asTable([t("filters.minute"), ...sorts.map(([, text]) => text)], minutes.filter((minute) => sorts.some(([sort]) => minute[sort])).map((minute) => [clock(minute), ...sorts.map(([sort]) => count(minute[sort]))])));
}

async function check(event) {
  event.preventDefault();
  const filter = chosen();
  const target = root.querySelector("#check-answers");
  const keys = keysIn(root.querySelector("#check-keys").value);
  if (!filter || keys.length === 0) {
    put(target, h("p", { class: "aside" }, t("filters.first")));
    return;
  }
  const several = (filter.key_rule?.values ?? 1) > 1;
  const [told, problem] = await ask(`v1/filters/${encodeURIComponent(filter.name)}/check`, {
    method: "POST", headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(several ? keys.map((key) => key.split("\t")) : keys),
  });
  if (problem) {
    put(target, h("p", { class: "problem" }, problem));
    return;
  }
  const { found } = told;
  put(target, h("table", { class: "keys" },
    h("caption", null, t("filters.found", { n: count(found.filter(Boolean).length), all: count(found.length) })),
    h("thead", null, h("tr", null, h("th", { scope: "col" }, t("filters.key")), h("th", { scope: "col" }, t("filters.answer")))),
    h("tbody", null, keys.slice(0, 1000).map((key, i) => h("tr", { "data-key": key },
      h("th", { scope: "row" }, key),
      h("td", null, h("span", { class: "badge", "data-verdict": found[i] ? "yes" : "no" }, t(found[i] ? "filters.yes" : "filters.no"))))))));
  look();
}
