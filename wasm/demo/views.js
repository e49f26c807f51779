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

export const milliseconds = (time) => `${time.toFixed(time < 1 ? 2 : time < 10 ? 1 : 0)} ms`;

// A step as people write it: in groups of three, long powers of ten short.
function written(step) {
  if (/^10{6,}$/.test(step)) {
    return `10${String(step.length - 1).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit])}`;
  }
  return step.replace(/\B(?=(\d{3})+$)/g, ",");
}

// The name of a batch, made from what Python built it from, never from the controls.
export const named = ({ seed, step }) => `seed ${seed}, step ${written(step)}`;

export function showBatch({ said, images }) {
  const { of } = said;
  const [count, channels, height, width] = said.shape;
  const waste = `${(100 * said.waste).toFixed(1)} %`;
  element("where").textContent =
    `${named(of)}: epoch ${written(said.epoch)}, step ${said.step} of the ${said.stepsPerEpoch} in it`;
  element("shape").textContent = `${count} × ${channels} × ${height} × ${width}`;
  element("waste").textContent = waste;
  element("waste-meter").value = said.waste;
  element("time").textContent = milliseconds(said.milliseconds);
  element("legend-range").textContent =
    `values ${said.least.toFixed(2)} to ${said.greatest.toFixed(2)}`.replace("-", "−");
  element("digest-of").textContent = `of ${named(of)}; SHA-256 of all six arrays`;
  element("digest").textContent = said.digest;
  element("code").textContent = said.code;
  element("helper-code").textContent = said.helper;
  element("helper").hidden = !said.helper;
  element("reason").hidden = true;
  element("shown").hidden = false;
  drawAgain({ said, images });
  showRows(said);
  const summary =
    `Batch of ${named(of)}: ${count} images, padded to ${width} pixels, ` +
    `${waste} padding, digest ${said.digest.slice(0, 8)}`;
  element("batch-canvas").setAttribute("aria-label", `${summary}. Its rows are listed below.`);
  element("status").textContent = summary;
}

// Say why there is no batch.
export function hideBatch(reason) {
  element("shown").hidden = true;
  element("arrival").hidden = true;
  element("reason").hidden = false;
  element("reason").textContent = reason;
  element("code").textContent = "…";
  element("helper").hidden = true;
}

// After a resize or a change of theme; the batch itself is the same.
export function drawAgain(batch) {
  drawBatch(element("batch-canvas"), batch);
  drawFingerprint(element("fingerprint"), batch.said.digest);
}

function showRows(said) {
  const ofPicture = said.of.data === "picture";
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

let announced = 0; // quarters of the download

export function showProgress({ loaded, total, stage }) {
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);
  element("boot").hidden = false;
  const text = {
    download: "Loading Python, NumPy and onemodel",
    start: "Starting Python",
    import: "Importing NumPy and onemodel",
  }[stage];
  element("boot-text").textContent = text;
  element("boot-bar").hidden = false;
  // Downloading is most of the way, and the rest cannot be measured.
  element("boot-bar").value = stage === "import" ? 0.97 : (loaded / total) * 0.9;
  element("boot-bytes").textContent =
    stage === "import"
      ? ""
      : `${megabytes(loaded)} of ${megabytes(total)} MB, each file checked against its SHA-256`;
  const quarters = Math.floor((4 * loaded) / total);
  if (stage === "import" || quarters !== announced) {
    element("status").textContent = stage === "import" ? text : `${text}: ${25 * quarters} %`;
    announced = quarters;
  }
}
