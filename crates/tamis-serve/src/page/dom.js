// Elements, requests and numbers as text. Whatever comes from outside becomes
// text nodes and attributes, never markup.

import { t } from "./texts.js";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...nodes(children));
  return node;
}

const nodes = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

/** Gives an element these children instead of its own. */
export function put(target, ...children) {
  target.replaceChildren(...nodes(children));
}

/** An element. */
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An element of a drawing. */
export function s(name, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/** What the service says, and else what is wrong: [value] or [null, problem]. */
export async function ask(path, options) {
  let response, text;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
    text = await response.text();
  } catch {
    return [null, t("page.silent")];
  }
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    // Something between here and the service has answered instead.
  }
  if (response.ok && value !== null) return [value];
  return [null, value?.error ?? `${response.status} ${response.statusText}`];
}

/** The keys in a text box: one a line, empty lines are none. */
export function keysIn(text) {
  return text.split("\n").map((line) => line.replace(/\r$/, "")).filter((line) => line !== "");
}

/** `1,234,567`. */
export const count = (n) => n.toLocaleString("en-US");

/** A rate in up to three digits; `least` is the smallest that stands with it, so that all of a table have one notation. */
export function rate(r, least = r >= 0.0005 ? 1 : 0) {
  if (r === null || r === undefined) return "–";
  if (r === 0) return "0";
  if (least < 1e-6) return r.toExponential(2).replace(/\.?0+e/, "e");
  const places = Math.max(0, 2 - Math.floor(Math.log10(r)));
  return r.toFixed(Math.min(places, 8)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

/** A share in up to three digits: `50.3 %`. */
export const percent = (part) => `${Number((part * 100).toPrecision(3))} %`;

/** A time of so many seconds in its two largest units: `1 d 12 h`. */
export function lasting(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1], ["ms", 0.001]];
  const first = units.findIndex(([, unit]) => seconds >= unit);
  if (first < 0) return t("time.s", { n: 0 });
  let rest = seconds;
  return units.slice(first, first + 2).flatMap(([name, unit]) => {
    const n = Math.floor(rest / unit + 1e-6);
    rest -= n * unit;
    return n ? [t(`time.${name}`, { n })] : [];
  }).join(" ");
}

/** A number of keys or bytes, short: 10M, 1.5k. */
export function short(n) {
  const units = ["", "k", "M", "G", "T", "P", "E"];
  let unit = 0;
  while (n >= 999.5 && unit < units.length - 1) {
    n /= 1000;
    unit += 1;
  }
  return Number(n.toPrecision(3)) + units[unit];
}

/** A group of buttons of which one is chosen. */
export function choice(legend, name, options, onchange) {
  return h("fieldset", { class: "choice" }, h("legend", null, legend),
    h("div", { class: "options" }, options.map(([value, text]) => h("label", null,
      h("input", { type: "radio", name, value, onchange: () => onchange(value) }),
      h("span", null, text)))));
}

/** Checks the option of a group. */
export function choose(root, name, value) {
  for (const input of root.querySelectorAll(`input[name="${name}"]`)) input.checked = input.value === value;
}

/** What a box does: `changed(false)` when nothing was typed for a moment, `changed(true)` when it is left. */
export function typing(changed) {
  let timer;
  return {
    typed() {
      clearTimeout(timer);
      timer = setTimeout(() => changed(false), 120);
    },
    done() {
      clearTimeout(timer);
      changed(true);
    },
  };
}

/** Calls `f` when an element has become wider or narrower. */
export function onWidth(element, f) {
  let before = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth === before) return;
    before = element.clientWidth;
    f();
  }).observe(element);
}

/**
 * Puts what is wrong next to the box that it is about, and says whether there is such a box: problems begin with a name, boxes
 * have it in their id, and the place for the text is called after the box. Without a problem, no box is wrong.
 */
export function complain(root, prefix, names, problem) {
  let found = false;
  for (const name of names) {
    const wrong = problem.startsWith(`${name}:`);
    const input = root.querySelector(`#${prefix}-${name}`);
    root.querySelector(`#error-${prefix}-${name}`).textContent = wrong ? capital(problem.slice(name.length + 1).trim()) : "";
    if (wrong) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    found ||= wrong;
  }
  return found;
}

/** With a capital at the beginning. */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
