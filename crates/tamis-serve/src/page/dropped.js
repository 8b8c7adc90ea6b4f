// Filter files that somebody drops on the page. Each has a worker of its own, and nothing of it leaves the browser.

import { h, put } from "./dom.js";
import { Library, lacking } from "./tamis.js";
import { parts, t } from "./texts.js";

let root = null;
let changed;
let last = 0; // number of a file
let files = []; // { number, name, stage, part, problem, about, library }, as they came

/** Those that are open, as the service would tell of them. */
export const open = () => files.filter((file) => file.stage === "open");

/** The card with the place to drop files; `f` is called with a file that was opened, or closed. */
export function mount(f) {
  changed = f;
  root = h("section", { class: "card drop", id: "drop", "aria-labelledby": "drop-title" },
    h("h2", { id: "drop-title" }, t("drop.title")),
    h("p", { class: "aside" }, t("drop.lead")),
    h("div", { class: "field" },
      h("label", { for: "drop-file" }, t("drop.choose")),
      h("input", { type: "file", id: "drop-file", multiple: true, onchange: (event) => { take(event.target.files); event.target.value = ""; } })),
    h("ul", { id: "drop-files" }),
    h("p", { id: "drop-told", class: "only-read", role: "status" }));
  draw();
  return root;
}

/** Files that are dropped anywhere on the page; `f` is called when there are some. */
export function listen(f) {
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  // Without these, the browser would leave the page and show the file.
  for (const name of ["dragenter", "dragover"]) addEventListener(name, (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    root?.classList.add("is-over");
  });
  addEventListener("dragleave", (event) => event.relatedTarget === null && root?.classList.remove("is-over"));
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    root?.classList.remove("is-over");
    f();
    take(event.dataTransfer.files);
  });
}

let turn = Promise.resolve(); // files are read one after the other

function take(list) {
  for (const file of list) {
    const mine = { number: ++last, name: file.name, stage: "reading", part: 0, problem: "", about: null, library: null };
    files.push(mine);
    turn = turn.then(() => read(mine, file));
  }
  draw();
}

async function read(mine, file) {
  if (!files.includes(mine)) return; // cancelled before its turn
  if (lacking()) return refuse(mine, lacking());
  mine.library = new Library();
  finish(mine, await mine.library.ask({ file }, (part) => {
    mine.part = part;
    if (part === 1) mine.stage = "checking";
    draw();
  }));
}

/** What opening a file came to. */
function finish(file, { value, problem, needsKey }) {
  if (problem !== undefined && file.stage === "locked" && file.library.isAlive) file.problem = problem; // another key may fit
  else if (problem !== undefined) return refuse(file, problem);
  else if (needsKey !== undefined) file.stage = "locked";
  else {
    file.stage = "open";
    file.about = { ...value, name: file.name };
    changed(file);
  }
  draw();
}

function refuse(file, problem) {
  file.library?.end();
  Object.assign(file, { stage: "wrong", problem });
  draw();
}

/** Forgets a file, and gives its memory back. */
export function close(file) {
  file.library?.end();
  files = files.filter((other) => other !== file);
  draw();
  changed(null);
}

function draw() {
  const list = root.querySelector("#drop-files");
  const shown = files.filter((file) => file.stage !== "open");
  for (const file of shown) {
    if (file.element?.parentElement === list && file.drawn === file.stage) update(file);
    else {
      file.element = item(file);
      file.drawn = file.stage;
    }
  }
  const busy = shown.find((file) => file.stage === "checking") ?? shown.find((file) => file.stage === "reading");
  const told = busy ? t(`drop.${busy.stage}`, { name: busy.name }) : "";
  if (root.querySelector("#drop-told").textContent !== told) root.querySelector("#drop-told").textContent = told;
  // What stays in place keeps the focus.
  if (shown.length !== list.children.length || shown.some((file, i) => file.element !== list.children[i])) put(list, shown.map((file) => file.element));
}

/** The moving parts of an item. */
function update(file) {
  const bar = file.element.querySelector("progress");
  if (bar && file.stage === "reading") bar.value = file.part;
  const problem = file.element.querySelector(".problem");
  if (problem) problem.textContent = file.problem;
}

const label = (file) => h("strong", { class: "name" }, file.name);

function item(file) {
  const away = h("button", { type: "button", class: "second", onclick: () => close(file) }, t(file.stage === "wrong" ? "drop.dismiss" : "drop.cancel"));
  if (file.stage === "wrong") {
    const other = h("p", { class: "aside" }, parts("drop.other", { command: h("code", null, `tamis info ${file.name}`) }));
    return h("li", { "data-stage": "wrong" }, label(file), h("p", { class: "problem", role: "alert", lang: "en" }, file.problem), other, away);
  }
  if (file.stage === "locked") return h("li", { "data-stage": "locked" }, label(file), lock(file), away);
  const bar = h("progress", { "aria-label": t(`drop.${file.stage}`, { name: file.name }), max: 1 });
  if (file.stage === "reading") bar.value = file.part;
  return h("li", { "data-stage": file.stage }, label(file), h("span", { class: "aside" }, t(`drop.${file.stage}`, { name: file.name })), bar, away);
}

/** Asks for the secret key, as a file or typed. */
function lock(file) {
  const unlock = async (key) => {
    file.problem = "";
    update(file);
    finish(file, await file.library.ask({ key }));
  };
  const { number } = file;
  const typed = h("input", { type: "text", id: `drop-key-${number}`, autocomplete: "off", spellcheck: "false", "aria-describedby": `drop-key-hint-${number}` });
  return h("form", { class: "field", onsubmit: (event) => { event.preventDefault(); unlock(typed.value.trim() || "?"); } },
    h("p", { class: "aside", id: `drop-key-hint-${number}` }, t("drop.locked")),
    h("label", { for: `drop-key-${number}` }, t("drop.key")), typed,
    h("label", { for: `drop-key-file-${number}` }, t("drop.key_file")),
    h("input", { type: "file", id: `drop-key-file-${number}`, onchange: async (event) => {
      // A key file is one short line: of another one nothing is read.
      const text = await event.target.files[0]?.slice(0, 1000).text();
      if (text !== undefined) unlock(text.trim() || "?");
    } }),
    h("p", { class: "problem", role: "alert", lang: "en" }, file.problem),
    h("button", { type: "submit" }, t("drop.unlock")));
}
