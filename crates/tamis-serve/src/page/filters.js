// The filters being served and the files that were dropped: how full, how wrong, what they answered, and a box
// to ask them.

import { ask, count, h, keysIn, onWidth, percent, put, rate, short } from "./dom.js";
import * as dropped from "./dropped.js";
import { generations, lines, recent, windowFacts } from "./filter.js";
import { parts, t } from "./texts.js";

const pause = 3000; // between two looks, while the tab is seen

let root, remember, timer;
let name = "";
let file = null; // a dropped one, which is chosen instead
let filters = [];
let service = null; // whether there is one; null until it was asked for
let shown = false;
let looks = 0;

export function mount(panel, keep) {
  root = panel;
  remember = keep;
  root.append(
    h("h1", { class: "only-read" }, t("tab.filters")),
    h("p", { id: "filters-problem", class: "problem", role: "alert" }),
    h("div", { class: "columns" },
      h("div", { class: "side" },
        h("nav", { class: "card", id: "filters", "aria-labelledby": "filters-title" },
          h("h2", { id: "filters-title" }, t("filters.title")),
          h("ul", { id: "filter-list" })),
        h("nav", { class: "card", id: "opened", "aria-labelledby": "opened-title" },
          h("h2", { id: "opened-title" }, t("drop.open")),
          h("ul", { id: "opened-list" })),
        dropped.mount(opened)),
      h("div", { class: "results", id: "filter" },
        h("section", { class: "card", "aria-labelledby": "filter-name" },
          h("h2", { id: "filter-name" }),
          h("p", { id: "filter-fault", class: "problem", lang: "en" }),
          h("dl", { id: "filter-facts", class: "facts" }),
          h("details", { id: "filter-info" }, h("summary", null, parts("drop.info", { command: h("code", null, "tamis info") })), h("pre", { lang: "en", tabindex: "0", "aria-label": t("drop.info.text") })),
          h("p", { id: "filter-close" }, h("button", { type: "button", class: "second", onclick: () => dropped.close(file) }, t("drop.close")))),
        h("section", { class: "card", "aria-labelledby": "check-title" },
          h("h2", { id: "check-title" }, t("filters.ask")),
          h("form", { id: "check", onsubmit: check },
            h("div", { class: "field box" },
              h("label", { for: "check-keys" }, t("filters.keys"), " ", h("small", { id: "check-hint" }, t("filters.one_a_line"))),
              h("textarea", { id: "check-keys", rows: 3, spellcheck: "false", autocomplete: "off" })),
            h("p", { id: "check-as" }, h("label", null, h("input", { type: "checkbox", id: "check-hex" }), " ", t("drop.hex"))),
            h("button", { type: "submit" }, t("filters.check"))),
          h("div", { id: "check-answers", role: "status" }),
          h("pre", { id: "check-explained", lang: "en", tabindex: "0", "aria-label": t("drop.explained"), hidden: true })),
        h("div", { class: "pair" },
          h("section", { class: "card", "aria-labelledby": "lines-title" },
            h("h2", { id: "lines-title" }, t("filters.lines")),
            h("div", { id: "filter-lines" })),
          h("section", { class: "card", id: "recent", "aria-labelledby": "recent-title" },
            h("h2", { id: "recent-title" }, t("filters.recent")),
            h("div", { id: "filter-recent" }))))));
  onWidth(root.querySelector("#filter-lines"), () => shown && chosen() && draw());
  draw();
}

document.addEventListener("visibilitychange", () => shown && !document.hidden && look());

export const state = () => (name && !file ? new URLSearchParams({ name }).toString() : "");

export function show(query) {
  name = query.get("name") ?? "";
  if (name) file = null;
  shown = true;
  draw();
  look();
}

export function leave() {
  shown = false;
  clearTimeout(timer);
}

/** A file was opened, or one was closed. */
function opened(one) {
  file = one ?? dropped.open().at(-1) ?? null;
  forget();
  if (shown) remember(state());
  draw();
}

/** Whether there is a service, found out once: a page in static files is not asked again. */
export async function look() {
  clearTimeout(timer);
  if (service === false) return;
  const mine = ++looks;
  const [told, problem] = await ask("v1/filters");
  if (mine !== looks) return; // a later look has newer numbers, though its answer may be there already
  service ||= Array.isArray(told?.filters);
  document.getElementById("service").hidden = !service;
  root.querySelector("#filters-problem").textContent = service ? problem ?? "" : "";
  if (service && told) filters = told.filters;
  if (told || !service) draw();
  root.dataset.looked = String(Number(root.dataset.looked ?? 0) + 1);
  clearTimeout(timer);
  if (service && shown && !document.hidden) timer = setTimeout(look, pause);
}

const chosen = () => file?.about ?? filters.find((filter) => filter.name === name) ?? filters[0];
const known = (number, text) => (number === undefined || number === null ? "–" : text(number));
const share = (filter) => (filter.capacity ? Math.min(1, filter.keys / filter.capacity) : null);

/** What was answered belongs to another filter. */
function forget() {
  put(root.querySelector("#check-answers"));
  root.querySelector("#check-explained").hidden = true;
}

function draw() {
  const filter = chosen();
  const files = dropped.open();
  const isDropped = filter !== undefined && filter === file?.about;
  root.querySelector("#filter").hidden = !filter;
  // Until a service has answered, nothing is known of it.
  root.querySelector("#filters").hidden = !service;
  root.querySelector("#opened").hidden = files.length === 0;
  const none = service && filters.length === 0 ? [h("li", null, parts("filters.none", { command: h("code", null, "tamis serve seen.tamis") }))] : [];
  list("#filter-list", none, filters.map((each) => item(each, each === filter, () => { name = each.name; file = null; })));
  list("#opened-list", files.map((each) => item(each.about, each === file, () => { file = each; })));
  if (!filter) return;
  root.querySelector("#filter-name").textContent = filter.name;
  root.querySelector("#filter-fault").textContent = filter.fault ?? filter.warning ?? "";
  const least = Math.min(...[filter.rate_now, filter.rate].filter((r) => r > 0));
  const facts = [
    ["kind", known(filter.kind, String)],
    // A count that leaves out keys that were taken for known is no count: the bits say more.
    ["keys", known(filter.keys_estimated ?? filter.keys, (n) => (filter.keys_counted === false || filter.keys_at_least ? t("filters.about", { n: count(n) }) : count(n)))],
    ["capacity", known(filter.capacity, (n) => t("filters.n_keys", { n: count(n) }))],
    ...(filter.window ? windowFacts(filter.window) : [["fill", known(filter.lines?.fill, percent), filter.lines?.fill]]),
    ["rate_now", known(filter.rate_now, (r) => rate(r, least))],
    ["rate", known(filter.rate, (r) => rate(r, least))],
    ["bytes", known(filter.file_bytes ?? filter.bytes, (n) => `${short(n).replace(/(?=[A-Za-z]|$)/, " ")}B`)],
    ...(isDropped ? [
      ["hash", known(filter.hash, String)],
      ["keys_are", filter.keys_are],
    ] : [
      ["writable", t(filter.writable ? "filters.allowed" : "filters.not")],
      ["place", filter.place ?? "–"],
      ["loaded_at", known(filter.loaded_at, (seconds) => new Date(seconds * 1000).toLocaleString("sv"))],
    ]),
  ];
  put(root.querySelector("#filter-facts"), ...facts.map(([fact, text, value]) => h("div", null,
    h("dt", null, t(`filters.${fact}`)),
    h("dd", { "data-fact": fact, "data-value": value ?? filter[fact], lang: fact === "keys_are" ? "en" : null, class: fact === "rate_now" && filter.rate_now > filter.rate * 1.0001 ? "over" : null }, text))));
  root.querySelector("#filter-info").hidden = root.querySelector("#filter-close").hidden = root.querySelector("#check-as").hidden = !isDropped;
  root.querySelector("#filter-info pre").textContent = filter.text ?? "";
  const values = filter.key_rule?.values ?? 1;
  root.querySelector("#check-hint").textContent = [
    values > 1 ? t("filters.values", { n: values }) : t("filters.one_a_line"),
    isDropped && filter.window?.by === "time" ? t("drop.as_of", { time: filter.window.latest ?? "–" }) : "",
  ].filter(Boolean).join("; ");
  root.querySelector("#lines-title").textContent = t(filter.window ? "window.title" : "filters.lines");
  const target = root.querySelector("#filter-lines");
  if (filter.window) generations(target, filter.window, isDropped);
  else lines(target, filter.lines);
  root.querySelector("#recent").hidden = isDropped;
  if (!isDropped) recent(root.querySelector("#filter-recent"), filter.recent ?? []);
}

/** Draws a list of filters anew; the focus stays where it was. */
function list(which, ...items) {
  const target = root.querySelector(which);
  const focused = [...target.querySelectorAll("button")].indexOf(document.activeElement);
  put(target, ...items);
  if (focused >= 0) target.querySelectorAll("button")[focused]?.focus();
}

function item(filter, current, choose) {
  const full = share(filter);
  const bar = h("span", { class: filter.over_capacity ? "bar over" : "bar" });
  bar.style.inlineSize = `${(full ?? 0) * 100}%`;
  return h("li", null, h("button", {
    type: "button", class: "filter", "data-name": filter.name, "aria-current": current ? "true" : null,
    onclick: () => { choose(); forget(); remember(state()); draw(); },
  },
    h("span", { class: "name" }, filter.name),
    h("small", null, filter.fault && !filter.kind ? t("filters.missing") : t(full === null ? "filters.holds" : "filters.of", { kind: filter.kind, keys: known(filter.keys, short), capacity: full === null ? "" : short(filter.capacity) })),
    h("span", { class: "track", "aria-hidden": "true" }, bar)));
}

/** The file's worker, or the service. */
async function askFor(filter, keys) {
  if (filter === file?.about) {
    const { value, problem } = await file.library.ask({ call: "ask", text: JSON.stringify({ keys, hex: root.querySelector("#check-hex").checked }) });
    return [value, problem];
  }
  return ask(`v1/filters/${encodeURIComponent(filter.name)}/check`, {
    method: "POST", headers: { "content-type": "application/json", accept: "application/json" }, body: JSON.stringify(keys),
  });
}

async function check(event) {
  event.preventDefault();
  const filter = chosen();
  const target = root.querySelector("#check-answers");
  const keys = keysIn(root.querySelector("#check-keys").value);
  forget();
  if (!filter || keys.length === 0) {
    put(target, h("p", { class: "aside" }, t("filters.first")));
    return;
  }
  const asked = (filter.key_rule?.values ?? 1) > 1 ? keys.map((key) => key.split("\t")) : keys;
  const [told, problem] = await askFor(filter, asked);
  if (filter.name !== chosen()?.name) return; // another was chosen meanwhile
  if (problem) {
    put(target, h("p", { class: "problem", lang: "en" }, problem));
    return;
  }
  const { found } = told;
  const isDropped = filter === file?.about;
  put(target, h("table", { class: "keys" },
    h("caption", null, t("filters.found", { n: count(found.filter(Boolean).length), all: count(found.length) })),
    h("thead", null, h("tr", null, ["filters.key", "filters.answer", ...(isDropped ? ["drop.why"] : [])].map((text) => h("th", { scope: "col" }, t(text))))),
    h("tbody", null, keys.slice(0, 1000).map((key, i) => h("tr", { "data-key": key },
      h("th", { scope: "row" }, key),
      h("td", null, h("span", { class: "badge", "data-verdict": found[i] ? "yes" : "no" }, t(found[i] ? "filters.yes" : "filters.no"))),
      isDropped ? h("td", null, h("button", { type: "button", class: "second", "aria-label": t("drop.explain", { key }), onclick: () => explain(asked[i]) }, t("drop.explain.short"))) : null)))));
  if (!isDropped) look();
}

/** What `tamis explain` prints. */
async function explain(key) {
  const { value, problem } = await file.library.ask({ call: "explain", text: JSON.stringify({ keys: [key], hex: root.querySelector("#check-hex").checked }) });
  const target = root.querySelector("#check-explained");
  target.textContent = value?.explained[0] ?? problem;
  target.hidden = false;
}
