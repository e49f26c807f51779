// Pictures for tests, as PNG of 8 bits a channel with transparency.

import { crc32, deflateSync } from "node:zlib";

// rgbaAt(x, y) gives four numbers.
export function png(width, height, rgbaAt) {
  const raw = Buffer.alloc(height * (1 + 4 * width));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) raw.set(rgbaAt(x, y), y * (1 + 4 * width) + 1 + 4 * x);
  }
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const framed = Buffer.alloc(body.length + 8);
    framed.writeUInt32BE(data.length, 0);
    body.copy(framed, 4);
    framed.writeUInt32BE(crc32(body), body.length + 4);
    return framed;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 6, 0, 0, 0], 8); // 8 bits a channel, RGBA
  return Buffer.concat([
    Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(raw)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

// Lines of dark words with soft edges.
export function pageOfText(x, y) {
  const line = Math.floor(y / 40);
  const inLine = y % 40 >= 10 && y % 40 < 34;
  const word = Math.floor(x / 90);
  const end = 30 + ((line * 37 + word * 53) % 45);
  const inWord = line > 0 && line < 9 && x % 90 >= 8 && x % 90 < end && x % 7 !== 0;
  const level = inLine && inWord ? 20 + ((x * 31 + y * 17) % 60) : 250;
  return [level, level, Math.min(level + 9, 255), 255];
}
