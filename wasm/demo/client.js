// The page's end of the worker: questions and answers as promises.

const NO_WORKER =
  "The part of this page that runs Python could not be started. The page needs a web server " +
  "(for example “python -m http.server”) and a browser that knows module workers.";

export class Client {
  #worker;
  #waiting = new Map();
  #nextId = 0;

  // onEvent hears the worker's news: { event: "progress" | "proved", ... }.
  constructor(onEvent) {
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data }) => {
      if (data.event) return onEvent(data);
      const { resolve, reject } = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if (data.error === undefined) resolve(data.answer);
      else reject(new Error(data.error));
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#fail(event.message ? `The part that runs Python failed: ${event.message}` : NO_WORKER);
    };
    this.#worker.onmessageerror = () => this.#fail("An answer of the worker could not be read.");
  }

  ask(ask, details = {}, transfer = []) {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, ask, ...details }, transfer);
    });
  }

  // End it; what is still waited for is never answered.
  close() {
    this.#waiting.clear();
    this.#worker.terminate();
  }

  #fail(reason) {
    for (const { reject } of this.#waiting.values()) reject(new Error(reason));
    this.#waiting.clear();
  }
}

// Run the newest of many wishes: while one is answered, later ones replace each other.
export function latest(run) {
  let wanted = null;
  let running = false;
  return async (wish) => {
    wanted = { wish };
    if (running) return;
    running = true;
    try {
      while (wanted) {
        const { wish: next } = wanted;
        wanted = null;
        await run(next);
      }
    } finally {
      running = false;
    }
  };
}
