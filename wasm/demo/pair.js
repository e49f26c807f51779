// Two batches of one run side by side, a near and a far one, with their build times.

import { drawBatch } from "./draw.js";
import { element, milliseconds, named } from "./views.js";

const ROWS = 2; // of images, in each

let pair = [];

const cards = () => element("pair").querySelectorAll("article");

export function showPair(made) {
  pair = made;
  for (const [place, card] of cards().entries()) {
    const { said } = pair[place];
    const part = (name) => card.querySelector(`[data-part=${name}]`);
    part("time").textContent = `built in ${milliseconds(said.milliseconds)}`;
    part("time").dataset.kind = "good";
    part("of").textContent = named(said.of);
    part("digest").textContent = said.digest;
  }
  drawPair();
}

// The first images of each; the digest is that of all of them.
export function drawPair() {
  for (const [place, card] of pair.length ? cards().entries() : []) {
    const canvas = card.querySelector("canvas");
    const { said, images } = pair[place];
    const columns = canvas.parentElement.clientWidth < 420 ? 1 : 2;
    const [, ...rest] = said.shape;
    drawBatch(canvas, { said: { ...said, shape: [ROWS * columns, ...rest] }, images }, columns);
  }
}
