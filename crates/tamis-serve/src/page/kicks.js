// A cuckoo filter's slots while a key comes in: what is kicked out is lifted, and then moves on.

import { s } from "./dom.js";
import { boxes, slotLayout } from "./cells.js";
import { t } from "./texts.js";

const lift = 26;

/**
 * What lies where after some of the moves: `[entry, slot, isLifted]` of every fingerprint. An entry whose slot was taken by
 * another and that has not moved on is lifted.
 */
export function after(before, moves, done) {
  const made = moves.slice(0, done);
  const to = new Map(made.filter((move) => move.from !== null).map((move) => [move.from, move.to]));
  const taken = new Set(made.map((move) => move.to));
  const old = before.map((cell, i) => cell && [`${i}`, to.get(i) ?? i, taken.has(i) && !to.has(i)]);
  const fresh = moves.length ? [["new", moves[0].to, false]] : [];
  return [...old.filter(Boolean), ...(done > 0 ? fresh : [])];
}

export function table({ cells, moves, told, width }) {
  const layout = slotLayout(cells.length, width, lift + 8);
  const { wide, at, height } = layout;
  const { rects, numbers, mark } = boxes(cells.map(() => null), layout);
  const token = (print) => s("g", { class: "token" },
    s("rect", { x: 3, y: 2, width: wide - 7, height: 17, rx: 4 }),
    s("text", { class: "print", x: wide / 2, y: 15, "text-anchor": "middle" }, print.toString(16)));
  const tokens = new Map(cells.map((cell, i) => [`${i}`, cell && token(cell.fingerprint)]).filter(([, it]) => it));
  tokens.set("new", token(told.fingerprint));
  tokens.get("new").classList.add("is-new");
  const svg = s("svg", { class: "cells", viewBox: `0 0 ${width.toFixed(1)} ${height}`, width, height, role: "img" },
    rects.map((rect, i) => [rect, numbers[i]]), [...tokens.values()]);
  const update = ({ marked, placed, now }) => {
    const here = new Map(after(cells, moves, placed).map(([entry, ...where]) => [entry, where]));
    for (const [entry, element] of tokens) {
      const [slot, isLifted] = here.get(entry) ?? [moves[0]?.to ?? told.at[0], true];
      const [x, y] = at(slot);
      element.classList.toggle("is-lifted", isLifted);
      element.classList.toggle("is-away", !here.has(entry));
      element.style.transform = `translate(${x}px, ${y - (isLifted ? lift : 0)}px)`;
      element.dataset.slot = here.has(entry) && !isLifted ? slot : "";
    }
    const held = rects.map(() => false);
    for (const [slot, isLifted] of here.values()) if (!isLifted) held[slot] = true;
    // A key has two places, which are marked together.
    mark(marked.length > 0 ? told : null);
    rects.forEach((rect, i) => {
      rect.classList.toggle("is-held", held[i]);
      rect.classList.toggle("now", i === now);
    });
    svg.setAttribute("aria-label", t("step.picture.slots", { n: held.filter(Boolean).length, all: rects.length }));
  };
  return { svg, update };
}
