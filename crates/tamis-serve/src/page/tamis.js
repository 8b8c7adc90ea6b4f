// Asks the library, which runs in workers of this page: every number and every answer is its own.

import { t } from "./texts.js";

/** The library in a worker of its own, whose memory is given back at the end. */
export class Library {
  #worker;
  #waiting = new Map(); // what is told of each question
  #last = 0;

  constructor() {
    this.#worker = new Worker(new URL("worker.js", import.meta.url));
    this.#worker.addEventListener("message", ({ data: { id, ...told } }) => {
      if (told.isBroken) this.end();
      else this.#waiting.get(id)?.(told);
    });
    this.#worker.addEventListener("error", () => this.end());
  }

  /** `{ value }`, `{ problem }` or `{ needsKey }`; `tell` gets the part of a file that is read. */
  ask(message, tell = () => {}) {
    if (!this.#worker) return Promise.resolve({ problem: t("page.stopped") });
    const id = ++this.#last;
    return new Promise((done) => {
      this.#waiting.set(id, (told) => {
        if (told.part !== undefined) return tell(told.part);
        this.#waiting.delete(id);
        done(told);
      });
      this.#worker.postMessage({ id, ...message });
    });
  }

  get isAlive() {
    return this.#worker !== null;
  }

  /** Whoever still waits is told that nothing will come. */
  end() {
    this.#worker?.terminate();
    this.#worker = null;
    for (const tell of [...this.#waiting.values()]) tell({ problem: t("page.stopped") });
  }
}

let calculator = null;

/** What is wrong with a browser that can't run the library, or null. */
export const lacking = () => (typeof WebAssembly === "object" && typeof Worker === "function" ? null : t("page.no_wasm"));

/** An answer of the library, and else what is wrong: [value] or [null, problem]. */
export async function calculate(call, text) {
  if (lacking()) return [null, lacking()];
  if (!calculator?.isAlive) calculator = new Library();
  const { value, problem } = await calculator.ask({ call, text });
  return problem === undefined ? [value] : [null, problem];
}
