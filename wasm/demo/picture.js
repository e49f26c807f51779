// A visitor's file, decoded to plain pixels. Everything after this is integer arithmetic.

const MOST_PIXELS = 24_000_000; // four bytes each, and Python has them once more
const LEAST_SIDE = 8;

// Return { pixels: Uint8ClampedArray in RGBA, width, height }. Throws an Error in plain words.
export async function decode(file) {
  let bitmap;
  try {
    // The numbers in the file: colour management differs from one machine to the next.
    bitmap = await createImageBitmap(file, { colorSpaceConversion: "none" });
  } catch {
    throw new Error(
      `“${file.name}” could not be read as a picture. PNG, JPEG, WebP and GIF files work.`,
    );
  }
  const { width, height } = bitmap;
  try {
    if (width * height > MOST_PIXELS) {
      throw new Error(
        `“${file.name}” has ${width} × ${height} pixels; at most ${MOST_PIXELS / 1e6} million ` +
          "can be cut up here. Make it smaller first.",
      );
    }
    if (Math.min(width, height) < LEAST_SIDE) {
      throw new Error(
        `“${file.name}” has ${width} × ${height} pixels; each side needs at least ${LEAST_SIDE}.`,
      );
    }
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(bitmap, 0, 0);
    return { pixels: context.getImageData(0, 0, width, height).data, width, height };
  } finally {
    bitmap.close();
  }
}
