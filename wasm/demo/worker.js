// Python lives here, off the page's own thread, so that the page answers while a batch is
// built. Messages in: { id, ask, ... }; out: { id, ... } answers, and { event, ... } news.

import { Plain } from "./download.js";
import { load } from "./load.js";

let pyodide;
let demo; // a promise of the Python object that builds what is shown

async function begin() {
  const tell = (loaded, total, stage) => postMessage({ event: "progress", loaded, total, stage });
  pyodide = await load(new URL("./", import.meta.url), tell);
  return pyodide.runPythonAsync("import demo; demo.Demo()");
}

const answers = {
  async start() {
    demo = begin();
    const python = await demo;
    return { versions: python.versions() };
  },

  async show({ request }) {
    return taken((await demo).show(JSON.stringify(request)));
  },

  // Two batches of one run, a near and a far one, with build times.
  async pair() {
    const both = (await demo).pair();
    try {
      return { pair: [taken(both.get(0)), taken(both.get(1))] };
    } finally {
      both.destroy();
    }
  },

  async picture({ pixels, width, height, name }) {
    const python = await demo;
    const data = pyodide.toPy(pixels); // a memoryview
    try {
      return JSON.parse(python.use_picture(data, width, height, name));
    } finally {
      data.destroy?.();
    }
  },

  async prove() {
    await (await demo).prove((line) =>
      postMessage({ event: "proved", line: JSON.parse(line) }),
    );
    return {};
  },
};

// Take { said, images } out of Python's pair of a JSON text and an array.
function taken(answer) {
  try {
    const said = JSON.parse(answer.get(0));
    if (said.error) return { said };
    const images = answer.get(1);
    const buffer = images.getBuffer("f32");
    try {
      // A copy: Python takes the memory back.
      return { said, images: buffer.data.slice() };
    } finally {
      buffer.release();
      images.destroy();
    }
  } finally {
    answer.destroy();
  }
}

// Of an error in Python, its last line says what is wrong; the rest is for the console.
function plain(error) {
  if (error instanceof Plain) return error.message;
  const lines = String(error?.message ?? error).trim().split("\n");
  return `Something went wrong inside Python: ${lines.at(-1).slice(0, 300)}`;
}

self.onmessage = async ({ data }) => {
  try {
    const answer = await answers[data.ask](data);
    postMessage({ id: data.id, answer }, answer.images ? [answer.images.buffer] : []);
  } catch (error) {
    postMessage({ id: data.id, error: plain(error) });
  }
};
