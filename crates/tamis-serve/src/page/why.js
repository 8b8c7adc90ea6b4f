// Why k = ln 2 · m/n: the rate against k, a filter that fills up, and every m/n and k. Every number comes from the library.

import { count, h, onWidth, percent, put, rate, s, typing } from "./dom.js";
import { frame } from "./frame.js";
import { calculate } from "./tamis.js";
import { parts, t } from "./texts.js";

const start = { m: 10, keys: 1000 };
// Of the table, what fits: the best k of each row is in it.
const rows = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 22];
const columns = 15;
const others = [4, 8, 16, 32]; // m/n of the curves that are drawn for comparison
const lowest = -7; // decades

let root, remember;
let grid = null; // the rates of every m/n and k
let filled = null; // the filling of the filter that is shown
let m = start.m;
let k = null; // null for the best
let keys = start.keys;
let sequence = 0;

export function mount(panel, keep) {
  root = panel;
  remember = keep;
  const slider = (id, from, to, step, label, change) => {
    const { typed, done } = typing(changed);
    return h("div", { class: "field" },
      h("label", { for: id }, label, " ", h("output", { id: `${id}-now`, for: id })),
      h("input", { id, type: "range", min: from, max: to, step, oninput: (event) => { change(Number(event.target.value)); draw(); typed(); }, onchange: done }));
  };
  root.append(
    h("h1", { class: "only-read" }, t("tab.why")),
    h("p", { id: "why-problem", class: "problem", role: "alert" }),
    h("div", { class: "columns reasons" },
      h("div", { class: "side" }, h("form", { class: "card", onsubmit: (event) => event.preventDefault() },
        slider("why-m", 1, 32, 0.5, t("why.m"), (value) => { m = value; }),
        slider("why-k", 1, 24, 1, t("why.k"), (value) => { k = value; }),
        h("p", null, h("button", { type: "button", id: "why-best", onclick: () => { k = null; changed(true); } })),
        h("p", { id: "why-reading", role: "status" })),
      h("section", { class: "card after", "aria-labelledby": "why-follows-title" },
        h("h2", { id: "why-follows-title" }, t("why.follows")),
        h("ol", { id: "why-follows", class: "follows" }))),
      h("div", { class: "results" },
        h("section", { class: "card", "aria-labelledby": "why-curve-title" },
          h("h2", { id: "why-curve-title" }, t("why.curve")),
          h("p", { class: "aside" }, t("why.curve.lead")),
          h("div", { id: "why-curve" })),
        h("section", { class: "card after", "aria-labelledby": "why-fill-title" },
          h("h2", { id: "why-fill-title" }, t("why.fill")),
          h("p", { id: "why-fill-lead", class: "aside" }),
          h("div", { id: "why-fill" }),
          slider("why-keys", 0, 3000, 125, t("why.fill.slider"), (value) => { keys = value; }),
          h("p", { id: "why-fill-reading", class: "reading", role: "status" }),
          h("details", null, h("summary", null, t("why.fill.table")),
            h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("why.fill.table") }, h("table", { id: "why-fill-table", class: "numbers" })))))),
    h("div", { class: "card whole" },
      h("h2", { id: "why-table-title" }, t("why.table")),
      h("p", { class: "aside" }, t("why.table.lead")),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "why-table-title" }, h("table", { id: "why-table", class: "grid-table" }))));
  onWidth(root.querySelector("#why-curve"), draw);
}

export function state() {
  const query = new URLSearchParams({ m });
  if (k !== null) query.set("k", k);
  if (keys !== start.keys) query.set("keys", keys);
  return query.toString();
}

/** A number of the address, if it is one that a slider has. */
function given(query, name, from, to, step) {
  const number = Number(query.get(name) || NaN);
  return number >= from && number <= to && Number.isInteger(number / step) ? number : null;
}

export function show(query) {
  m = given(query, "m", 1, 32, 0.5) ?? start.m;
  k = given(query, "k", 1, 24, 1);
  keys = query.get("keys") === "0" ? 0 : given(query, "keys", 0, 3000, 125) ?? start.keys;
  update();
}

function changed(finished) {
  remember(state(), finished);
  update();
}

const row = () => grid.rows.find((each) => each.bits_per_key === m);
const hashes = () => k ?? row().best;

async function update() {
  const mine = ++sequence;
  const address = location.hash;
  let problem = null;
  if (!grid) [grid, problem] = await calculate("why", "");
  if (grid && (filled?.bits_per_key !== m || filled.hashes !== hashes())) {
    draw();
    const [told, wrong] = await calculate("why", new URLSearchParams({ bits_per_key: m, hashes: hashes() }).toString());
    if (mine !== sequence) return; // something newer was asked
    filled = told ?? filled;
    problem = wrong;
  }
  if (mine !== sequence) return;
  root.querySelector("#why-problem").textContent = problem ?? "";
  draw();
  root.dataset.shown = address; // that is now shown
}

function draw() {
  if (!grid || root.hidden) return;
  const { best, exact, rates, set } = row();
  const now = hashes();
  for (const [id, value, text] of [["why-m", m, m], ["why-k", now, now], ["why-keys", keys, count(keys)]]) {
    const slider = root.querySelector(`#${id}`);
    if (Number(slider.value) !== value) slider.value = value;
    slider.setAttribute("aria-valuetext", text);
    root.querySelector(`#${id}-now`).textContent = text;
  }
  const button = root.querySelector("#why-best");
  button.textContent = t(now === best ? "why.is_best" : "why.best", { k: best });
  button.setAttribute("aria-disabled", String(now === best));
  root.querySelector("#why-reading").textContent = t("why.reading", { m, k: now, set: percent(set[now - 1]), rate: rate(rates[now - 1]), n: count(Math.round(1 / rates[now - 1])) });
  put(root.querySelector("#why-follows"), ["bit", "rate", "best", "then"].map((step) => h("li", null, t(`why.follow.${step}`, { exact: Number(exact.toFixed(2)), k: best }))));
  curve(now);
  table(now);
  if (filled) filling();
}

/** The rate against k, with the lowest marked; pressing on it chooses k. */
function curve(now) {
  const target = root.querySelector("#why-curve");
  if (target.clientWidth === 0) return; // not seen: drawn when it is
  const { best, rates } = row();
  const decades = Array.from({ length: 1 - lowest }, (_, i) => -i);
  const { width, x, y, svg } = frame(target, {
    label: t("why.curve.picture", { m, k: best, rate: rate(rates[best - 1]) }),
    xs: grid.hashes.filter((n) => n === 1 || n % 4 === 0).map((n) => [n, n]), across: [1, 24], xTitle: t("why.curve.x"),
    ys: decades.map((d) => [d, d > -4 ? String(Number((10 ** d).toFixed(-d))) : `1e${d}`]), up: [lowest, 0], yTitle: t("curve.y"),
  });
  const line = (of, kind) => {
    const points = of.rates.map((r, i) => [i + 1, Math.log10(r)]).filter(([, r]) => r >= lowest);
    return s("polyline", { class: kind, "data-m": of.bits_per_key, points: points.map(([n, r]) => `${x(n).toFixed(1)},${y(r).toFixed(1)}`).join(" ") });
  };
  const compared = others.filter((each) => each !== m).map((each) => grid.rows.find((of) => of.bits_per_key === each));
  const [at, high] = [x(best), y(Math.log10(rates[best - 1]))];
  svg.append(
    ...compared.flatMap((of) => [line(of, "faint"), s("text", { class: "tick", x: x(24) + 4, y: y(Math.log10(of.rates[23])) + 4 }, of.bits_per_key)]),
    s("line", { class: "marker", x1: x(now), x2: x(now), y1: y(0), y2: y(lowest) }),
    line(row(), "strong"),
    ...rates.map((r, i) => s("circle", { class: i + 1 === now ? "dot is-now" : "dot", "data-k": i + 1, "data-rate": r, cx: x(i + 1), cy: y(Math.log10(r)), r: i + 1 === now ? 5 : 3 }, s("title", null, `k = ${i + 1}: ${rate(r)}`))),
    s("circle", { class: "lowest", "data-k": best, cx: at, cy: high, r: 8 }),
    s("text", { class: "lowest-text", x: Math.min(at, width - 90), y: high + (high > y(lowest) - 40 ? -16 : 26), "text-anchor": "middle" }, t("why.curve.lowest", { k: best })));
  const choose = (event) => {
    const box = svg.getBoundingClientRect();
    const along = (event.clientX - box.left) * (width / box.width);
    k = Math.min(24, Math.max(1, Math.round(1 + ((along - x(1)) / (x(24) - x(1))) * 23)));
    changed(event.type === "pointerdown");
  };
  svg.addEventListener("pointerdown", choose);
  svg.addEventListener("pointermove", (event) => event.buttons === 1 && choose(event));
  put(target, svg);
}

/** Bits set and rate against the keys: the formula as lines, a real filter as dots. */
function filling() {
  const target = root.querySelector("#why-fill");
  if (target.clientWidth === 0) return;
  const { steps, bits, strangers } = filled;
  put(root.querySelector("#why-fill-lead"), t("why.fill.lead", { bits: count(bits), keys: count(filled.keys), strangers: count(strangers) }));
  const most = steps.at(-1).keys;
  const { x, y, svg } = frame(target, {
    label: t("why.fill.picture"),
    xs: steps.map((step) => step.keys).filter((n) => n % 500 === 0).map((n) => [n, count(n)]), across: [0, most], xTitle: t("why.fill.x"),
    ys: [0, 0.25, 0.5, 0.75, 1].map((part) => [part, percent(part)]), up: [0, 1], yTitle: "",
  });
  const line = (of, kind) => s("polyline", { class: `strong ${kind}`, points: steps.map((step) => `${x(step.keys).toFixed(1)},${y(step[of]).toFixed(1)}`).join(" ") });
  const dots = (share, kind) => steps.map((step) => s("circle", { class: `dot ${kind}`, cx: x(step.keys), cy: y(share(step)), r: 3 }));
  svg.append(
    s("line", { class: "grid planned", x1: x(filled.keys), x2: x(filled.keys), y1: y(0), y2: y(1) }),
    s("text", { class: "tick", x: x(filled.keys) + 6, y: y(1) + 12 }, t("why.fill.planned", { keys: count(filled.keys) })),
    s("line", { class: "marker", x1: x(keys), x2: x(keys), y1: y(0), y2: y(1) }),
    line("set", "set"), line("rate", "rate"),
    ...dots((step) => step.bits_set / bits, "set"), ...dots((step) => step.false_yes / strangers, "rate"));
  put(target, svg, h("ul", { class: "legend" }, ["set", "rate"].map((kind) => h("li", null, h("span", { class: `swatch ${kind}` }), t(`why.fill.${kind}`)))));
  const step = steps.find((each) => each.keys === keys) ?? steps[0];
  const share = (n, all) => percent(n / all);
  put(root.querySelector("#why-fill-reading"), parts("why.fill.reading", {
    keys: h("strong", null, count(step.keys)), bits: count(step.bits_set), all: count(bits), set: share(step.bits_set, bits), expected: percent(step.set),
    yes: count(step.false_yes), strangers: count(strangers), measured: share(step.false_yes, strangers), rate: percent(step.rate),
  }));
  put(root.querySelector("#why-fill-table"),
    h("thead", null, h("tr", null, [t("why.fill.x"), t("why.fill.set"), t("why.fill.counted"), t("why.fill.rate"), t("why.fill.asked", { strangers: count(strangers) })].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", null, steps.map((each) => h("tr", { class: each === step ? "is-shown" : null }, h("th", { scope: "row" }, count(each.keys)),
      [percent(each.set), count(each.bits_set), percent(each.rate), count(each.false_yes)].map((text) => h("td", null, text))))));
}

function table(now) {
  const shown = grid.rows.filter((each) => rows.includes(each.bits_per_key));
  const least = Math.min(...shown.flatMap((each) => each.rates.slice(0, columns)));
  put(root.querySelector("#why-table"),
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "m/n"), grid.hashes.slice(0, columns).map((n) => h("th", { scope: "col" }, `k = ${n}`)))),
    h("tbody", null, shown.map((each) => h("tr", { "data-m": each.bits_per_key, class: each.bits_per_key === m ? "is-shown" : null },
      h("th", { scope: "row" }, each.bits_per_key),
      each.rates.slice(0, columns).map((r, i) => h("td", { "data-k": i + 1, "data-rate": r, class: [i + 1 === each.best ? "is-lowest" : "", each.bits_per_key === m && i + 1 === now ? "is-now" : ""].join(" ").trim() || null },
        rate(r, least), i + 1 === each.best ? h("span", { class: "only-read" }, ` ${t("why.table.lowest")}`) : null))))));
}
