// The visitor's picture: chosen or dropped, decoded, handed to Python. Pictures go through one at
// a time, and of those that wait the latest goes next: so it is the one that stays.

import { latest } from "./client.js";
import { decode } from "./picture.js";
import { element } from "./views.js";

const NONE = "or drop one anywhere on this page. It stays on your machine.";

export class Chooser {
  #file = null; // the picture that Python should have
  #ask = null; // hands a picture to Python
  #said = NONE;

  // onPicture(sha256, size) hears that Python has a picture; the rest of what is said about it may
  // follow from what it returns. onProblem(text) hears what is wrong with one.
  constructor(onPicture, onProblem) {
    const use = latest(async (file) => {
      if (file !== this.#file || !this.#ask) return;
      this.#say(`Cutting up “${file.name}” …`);
      onProblem("");
      try {
        const { pixels, width, height, name, png } = await decode(file);
        const cut = await this.#ask({ pixels, width, height, name }, [pixels.buffer]);
        if (cut.error) throw new Error(cut.error);
        this.#said = `“${file.name}”, ${width} × ${height}: cut into ${cut.pieces} ${cut.isText ? "words" : "pieces"}.`;
        if (png) this.#said += " Its pixels as this browser decodes them became a PNG.";
        this.#offer(png, name);
        if (onPicture(cut.sha256)) {
          this.#said += " These are not the pixels that the link was made with.";
        }
        this.#say(this.#said);
      } catch (error) {
        if (!this.#ask) return; // Python is being started again, and then has the picture next
        this.#say(this.#said);
        onProblem(error.message);
      }
    });
    const choose = (file) => {
      this.#file = file;
      if (!this.#ask) this.#say(`“${file.name}” is cut up as soon as Python runs.`);
      else use(file);
    };
    this.restart = async (ask) => {
      this.#ask = ask;
      this.#said = NONE;
      if (ask && this.#file) await use(this.#file);
    };
    listen(choose);
  }

  #say(text) {
    element("picture-said").textContent = text;
  }

  // What the program opens is the PNG, so the visitor can have it.
  #offer(png, name) {
    const link = element("picture-png");
    URL.revokeObjectURL(link.href);
    link.hidden = !png;
    if (!png) return;
    link.href = URL.createObjectURL(png);
    link.download = name;
  }
}

function listen(choose) {
  element("file").addEventListener("change", ({ target }) => {
    if (target.files.length > 0) choose(target.files[0]);
    target.value = ""; // so that the same file can be chosen again
  });
  document.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    choose(event.dataTransfer.files[0]);
  });
}
