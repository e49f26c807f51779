// The page's end of the worker: questions and answers as promises.

const WORKER = new URL("./worker.js", import.meta.url);

// A worker that did not start tells no reason; whether its file arrives says which it was.
async function whyNoWorker() {
  try {
    const response = await fetch(WORKER);
    if (!response.ok) {
      return "A part of this page is missing on its server: worker.js, which runs Python.";
    }
  } catch {
    return navigator.onLine === false
      ? "There is no connection: the part of this page that runs Python could not be loaded."
      : "The connection was lost: the part of this page that runs Python could not be loaded.";
  }
  return (
    "The part of this page that runs Python could not be started: a content policy or an " +
    "extension blocks workers here, a script of it is missing, or this browser knows no module " +
    "workers."
  );
}

export class Client {
  #worker;
  #waiting = new Map();
  #nextId = 0;
  #broken = null; // the reason, once the worker cannot answer

  // onEvent hears the worker's news: { event: "progress" | "proved", ... }.
  constructor(onEvent) {
    try {
      this.#worker = new Worker(WORKER, { type: "module" });
    } catch {
      this.#fail("A content policy or an extension forbids workers here, and Python runs in one.");
      return;
    }
    this.#worker.onmessage = ({ data }) => {
      if (data.event) return onEvent(data);
      const { resolve, reject } = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if (data.error === undefined) resolve(data.answer);
      else reject(new Error(data.error));
    };
    this.#worker.onerror = async (event) => {
      event.preventDefault();
      this.#fail(
        event.message
          ? `The part that runs Python failed: ${event.message}`
          : await whyNoWorker(),
      );
    };
    this.#worker.onmessageerror = () => this.#fail("An answer of the worker could not be read.");
  }

  ask(ask, details = {}, transfer = []) {
    if (this.#broken) return Promise.reject(new Error(this.#broken));
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, ask, ...details }, transfer);
    });
  }

  close() {
    this.#fail("Python was started again.");
    this.#worker?.terminate();
  }

  #fail(reason) {
    this.#broken = reason;
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
