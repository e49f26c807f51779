// Decodes PNG to the numbers in the file. A canvas cannot: it multiplies colours by their
// transparency and back, which rounds, in each browser in another way. What Pillow would turn
// into other numbers is refused by name.

const SIGNATURE = [137, 80, 78, 71, 13, 10, 26, 10];
const CHANNELS = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }; // of each colour type

export const isPng = (bytes) => SIGNATURE.every((byte, place) => bytes[place] === byte);

// Read the header: { width, height, depth, colour }. Throws an Error in plain words.
export function pngHeader(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 33 || chunkName(bytes, 12) !== "IHDR") throw new Error("is cut off");
  const [depth, colour, , , interlaced] = bytes.subarray(24, 29);
  if (depth === 16) throw new Error("has 16 bits a channel: save it with 8");
  if (interlaced) throw new Error("is interlaced: save it without");
  if (!(colour in CHANNELS) || ![1, 2, 4, 8].includes(depth)) throw new Error("is damaged");
  return { width: view.getUint32(16), height: view.getUint32(20), depth, colour };
}

// Return { pixels: Uint8Array in RGBA, width, height }.
export async function decodePng(bytes) {
  const { width, height, depth, colour } = pngHeader(bytes);
  const { palette, alphas, data } = readChunks(bytes);
  if (alphas && colour !== 3) {
    throw new Error("marks one colour as see-through: save it with an alpha channel");
  }
  if (colour === 3 && !palette) throw new Error("is damaged");
  const channels = CHANNELS[colour];
  const stride = Math.ceil((width * channels * depth) / 8);
  const raw = await inflate(data, (stride + 1) * height);
  unfilter(raw, stride, height, Math.max(1, (channels * depth) >> 3));
  const pixels = new Uint8Array(4 * width * height);
  const put = WRITERS[colour]({ palette, alphas, scale: 255 / ((1 << depth) - 1) });
  for (let y = 0, to = 0; y < height; y += 1) {
    const row = raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1));
    const sample = samples(row, depth);
    for (let x = 0; x < width; x += 1, to += 4) put(pixels, to, sample, x * channels);
  }
  return { pixels, width, height };
}

// How a pixel of each colour type is written, from samples at `at` and the next.
const WRITERS = {
  0: ({ scale }) => (pixels, to, sample, at) => {
    pixels.fill(sample(at) * scale, to, to + 3);
    pixels[to + 3] = 255;
  },
  2: () => (pixels, to, sample, at) => {
    for (let part = 0; part < 3; part += 1) pixels[to + part] = sample(at + part);
    pixels[to + 3] = 255;
  },
  3: ({ palette, alphas }) => (pixels, to, sample, at) => {
    const index = sample(at);
    if (3 * index >= palette.length) throw new Error("is damaged");
    for (let part = 0; part < 3; part += 1) pixels[to + part] = palette[3 * index + part];
    pixels[to + 3] = alphas?.[index] ?? 255;
  },
  4: () => (pixels, to, sample, at) => {
    pixels.fill(sample(at), to, to + 3);
    pixels[to + 3] = sample(at + 1);
  },
  6: () => (pixels, to, sample, at) => {
    for (let part = 0; part < 4; part += 1) pixels[to + part] = sample(at + part);
  },
};

function samples(row, depth) {
  if (depth === 8) return (place) => row[place];
  const each = 8 / depth;
  return (place) => {
    const shift = 8 - depth * ((place % each) + 1);
    return (row[Math.floor(place / each)] >> shift) & ((1 << depth) - 1);
  };
}

function readChunks(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = { palette: null, alphas: null, data: [] };
  for (let at = 8; at + 12 <= bytes.length; ) {
    const length = view.getUint32(at);
    const name = chunkName(bytes, at + 4);
    const end = at + 12 + length;
    if (end > bytes.length) break;
    const content = bytes.subarray(at + 8, end - 4);
    // Capital letters begin the chunks that a decoder has to understand.
    if (/^[A-Z]/.test(name) && crc32(bytes.subarray(at + 4, end - 4)) !== view.getUint32(end - 4)) {
      throw new Error("is damaged");
    }
    if (name === "PLTE") found.palette = content;
    if (name === "tRNS") found.alphas = content;
    if (name === "IDAT") found.data.push(content);
    if (name === "IEND") return found;
    at = end;
  }
  throw new Error("is cut off");
}

const chunkName = (bytes, at) => String.fromCharCode(...bytes.subarray(at, at + 4));

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
  return ~crc >>> 0;
}

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, value) => {
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

async function inflate(parts, expected) {
  const raw = new Uint8Array(expected);
  let filled = 0;
  try {
    const stream = new Blob(parts).stream().pipeThrough(new DecompressionStream("deflate"));
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      raw.set(value, filled); // too much is a RangeError
      filled += value.length;
    }
  } catch {
    throw new Error("is damaged");
  }
  if (filled !== expected) throw new Error("is cut off");
  return raw;
}

// Undo the filter of each row, in place; `step` is the distance to the pixel before, in bytes.
function unfilter(raw, stride, height, step) {
  for (let y = 0; y < height; y += 1) {
    const at = y * (stride + 1) + 1;
    const kind = raw[at - 1];
    if (kind > 4) throw new Error("is damaged");
    if (kind === 0) continue;
    for (let x = 0; x < stride; x += 1) {
      const left = x >= step ? raw[at + x - step] : 0;
      const up = y > 0 ? raw[at + x - stride - 1] : 0;
      const corner = x >= step && y > 0 ? raw[at + x - stride - 1 - step] : 0;
      raw[at + x] += predicted(kind, left, up, corner);
    }
  }
}

function predicted(kind, left, up, corner) {
  if (kind === 1) return left;
  if (kind === 2) return up;
  if (kind === 3) return (left + up) >> 1;
  const [toLeft, toUp] = [Math.abs(up - corner), Math.abs(left - corner)];
  const toCorner = Math.abs(left + up - 2 * corner);
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}
