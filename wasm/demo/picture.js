// A visitor's file, decoded to plain pixels. Everything after this is integer arithmetic.
//
// PNG is decoded here, to the numbers in the file, the same in every browser and in Pillow. Other
// formats are decoded by the browser, each in its own way; so they are turned into a PNG first,
// and that PNG is what the batches are made of.

import { decodePng, isPng, pngHeader } from "./png.js";

const MOST_PIXELS = 24_000_000; // four bytes each, and Python has them once more
const LEAST_SIDE = 8;

// Return { pixels: Uint8Array in RGBA, width, height, name, png }; `png` is a Blob where one was
// made. Throws an Error in plain words.
export async function decode(file) {
  let bytes = new Uint8Array(await file.arrayBuffer());
  let { name } = file;
  let png = null;
  if (!isPng(bytes)) {
    png = await asPng(file);
    bytes = new Uint8Array(await png.arrayBuffer());
    name = `${name.replace(/\.\w+$/, "")}.png`;
  }
  try {
    checkSize(file.name, pngHeader(bytes));
    return { ...(await decodePng(bytes)), name, png };
  } catch (error) {
    throw error instanceof RangeError ? error : new Error(`“${file.name}” ${error.message}.`);
  }
}

function checkSize(name, { width, height }) {
  const size = `“${name}” has ${width} × ${height} pixels`;
  if (width * height > MOST_PIXELS) {
    throw new RangeError(
      `${size}; at most ${MOST_PIXELS / 1e6} million can be cut up here. Make it smaller first.`,
    );
  }
  if (Math.min(width, height) < LEAST_SIDE) {
    throw new RangeError(`${size}; each side needs at least ${LEAST_SIDE}.`);
  }
}

// On white paper, so that nothing in the PNG is see-through.
async function asPng(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { colorSpaceConversion: "none" });
  } catch {
    throw new Error(
      `“${file.name}” could not be read as a picture. PNG, JPEG, WebP and GIF files work.`,
    );
  }
  try {
    checkSize(file.name, bitmap);
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    const context = canvas.getContext("2d", { alpha: false });
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, bitmap.width, bitmap.height);
    context.drawImage(bitmap, 0, 0);
    return await canvas.convertToBlob({ type: "image/png" });
  } finally {
    bitmap.close();
  }
}
