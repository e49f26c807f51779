// Puts what Python said into the page. Text is set as text, never as markup.

import { drawBatch, drawFingerprint } from "./draw.js";

export const element = (id) => document.getElementById(id);

export function make(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const SAMPLERS = {
  sequential: "Rows in their order, epoch after epoch.",
  shuffled: "A keyed permutation of each epoch; no list of indices is ever made.",
  mixing: "Half of every batch, on average, from the last quarter of the data.",
  bucketed: "Shuffled, but rows of like width together: little padding.",
};

export function describeChoices(state) {
  element("sampler-said").textContent = SAMPLERS[state.sampler];
  const count = state.augment.length;
  element("augment-said").textContent =
    count === 0
      ? "None: the images as they are."
      : count === 1
        ? "Drawn anew for every image of every step."
        : "In this order, as one Compose.";
  for (const part of document.querySelectorAll("[data-for]")) {
    part.hidden = part.dataset.for !== state.data;
  }
}

export function showBatch(state, batch) {
  const { said } = batch;
  const [count, channels, height, width] = said.shape;
  const waste = `${(100 * said.waste).toFixed(1)} %`;
  element("where").textContent =
    `epoch ${said.epoch}, step ${said.step} of the ${said.stepsPerEpoch} in it`;
  element("shape").textContent = `${count} × ${channels} × ${height} × ${width}`;
  element("waste").textContent = waste;
  element("waste-meter").value = said.waste;
  element("time").textContent = `${said.milliseconds.toFixed(said.milliseconds < 10 ? 1 : 0)} ms`;
  element("legend-range").textContent =
    `values ${said.least.toFixed(2)} to ${said.greatest.toFixed(2)}`.replace("-", "−");
  element("digest").textContent = said.digest;
  element("code").textContent = said.code;
  element("boot").hidden = true;
  element("shown").hidden = false;
  drawAgain(batch);
  showRows(state, said);
  const summary =
    `Batch of step ${state.step}: ${count} images, padded to ${width} pixels, ` +
    `${waste} padding, digest ${said.digest.slice(0, 8)}`;
  element("batch-canvas").setAttribute("aria-label", `${summary}. Its rows are listed below.`);
  element("status").textContent = summary;
}

// After a resize or a change of theme; the batch itself is the same.
export function drawAgain(batch) {
  drawBatch(element("batch-canvas"), batch);
  drawFingerprint(element("fingerprint"), batch.said.digest);
}

function showRows(state, said) {
  const ofPicture = state.data === "picture";
  element("target-heading").hidden = ofPicture;
  const padded = said.shape[3];
  element("row-list").replaceChildren(
    ...said.indices.map((index, slot) => {
      const row = make("tr");
      const cells = [index, said.widths[slot], padded - said.widths[slot]];
      if (!ofPicture) cells.push(said.targets[slot]);
      row.append(make("th", slot, { scope: "row" }), ...cells.map((text) => make("td", text)));
      return row;
    }),
  );
}

export function showProgress({ loaded, total, stage }) {
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  element("boot").hidden = false;
  element("boot-text").textContent = {
    download: "Loading Python, NumPy and onemodel",
    start: "Starting Python",
    import: "Importing NumPy and onemodel",
  }[stage];
  element("boot-bar").hidden = false;
  // Downloading is most of the way, and the rest cannot be measured.
  element("boot-bar").value = stage === "import" ? 0.97 : (loaded / total) * 0.9;
  element("boot-bytes").textContent =
    stage === "download"
      ? `${megabytes(loaded)} of ${megabytes(total)} MB, each file checked against its SHA-256`
      : "";
}

// The table of the proof: a body for each configuration, a row for each step.
export class ProofTable {
  #table = element("proof-shown").querySelector("table");
  #body = null;
  #configuration = null;
  #done = 0;
  #same = 0;

  constructor() {
    for (const body of [...this.#table.tBodies]) body.remove();
    element("proof-shown").hidden = false;
    element("proof-bar").hidden = false;
    element("proof-bar").value = 0;
    this.#say("", "Building the first batch …");
  }

  add(line) {
    if (line.configuration !== this.#configuration) {
      this.#configuration = line.configuration;
      this.#body = this.#table.createTBody();
      const heading = make("tr");
      heading.append(make("th", line.configuration, { colspan: 4, scope: "rowgroup" }));
      this.#body.append(heading);
    }
    this.#done += 1;
    this.#same += line.same;
    const row = make("tr", undefined, { class: line.same ? "same" : "different" });
    row.append(
      stepHeading(line.step),
      // What is no digest is an error; it is wrapped, where a digest is cut short by the style.
      make("td", line.found, { class: /^[0-9a-f]{64}$/.test(line.found) ? "digest-cell" : "" }),
      make("td", line.expected, { class: "digest-cell" }),
      make("td", line.same ? "same" : "different"),
    );
    this.#body.append(row);
    element("proof-bar").max = line.total;
    element("proof-bar").value = this.#done;
    // Read out now and then, not ninety times.
    if (this.#done % 15 === 0) this.#say("", `${this.#same} of ${this.#done} the same so far`);
  }

  finish() {
    element("proof-bar").hidden = true;
    if (this.#done > 0 && this.#same === this.#done) {
      this.#say("good", `All ${this.#done} batches are the same, byte for byte.`);
    } else {
      this.#say("bad", `${this.#done - this.#same} of ${this.#done} batches differ.`);
    }
  }

  fail(reason) {
    element("proof-bar").hidden = true;
    this.#say("bad", reason);
  }

  #say(kind, text) {
    element("verdict").dataset.kind = kind;
    element("verdict").textContent = text;
  }
}

// A heading for a step; long powers of ten are written short.
function stepHeading(step) {
  if (!/^10{6,}$/.test(step)) return make("th", step, { scope: "row" });
  const heading = make("th", "10", { scope: "row", "aria-label": step });
  heading.append(make("sup", step.length - 1));
  return heading;
}
