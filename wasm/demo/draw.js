// Draws a batch as the tensor that it is: one row a slot, all equally wide, ink on paper, and
// what is padding hatched.

const CAPTION = 18; // pixels above each row where there is no room beside it
const BESIDE = 132; // pixels left of each row where there is
const WIDE = 560; // from this width on, captions stand beside
const LARGEST_SCALE = 2;
const LARGEST_SIDE = 8192; // device pixels; some phones draw no larger canvas

// Draw batch = { said, images } on the canvas, as wide as the room that it has.
export function drawBatch(canvas, { said, images }) {
  const [count, , height, width] = said.shape;
  const room = canvas.parentElement.clientWidth;
  const beside = room >= WIDE;
  const left = beside ? BESIDE : 0;
  const scale = Math.min((room - left) / width, LARGEST_SCALE);
  const rowHeight = height * scale;
  const pitch = Math.max(rowHeight, beside ? 30 : 0) + (beside ? 6 : CAPTION + 8);
  const total = Math.ceil(count * pitch);
  const density = Math.min(devicePixelRatio || 1, LARGEST_SIDE / Math.max(total, room));

  canvas.width = Math.round(room * density);
  canvas.height = Math.round(total * density);
  canvas.style.width = `${room}px`;
  canvas.style.height = `${total}px`;
  const context = canvas.getContext("2d");
  context.scale(density, density);
  context.imageSmoothingQuality = "high";

  const colours = themeOf(canvas);
  const source = inked(said, images, colours);
  const hatch = hatching(context, colours, density);
  for (let slot = 0; slot < count; slot += 1) {
    const top = slot * pitch + (beside ? 0 : CAPTION);
    caption(context, colours, said, slot, beside, top, rowHeight, room);
    const real = said.widths[slot] * scale;
    context.drawImage(
      source, 0, slot * height, said.widths[slot], height, left, top, real, rowHeight,
    );
    context.fillStyle = hatch;
    context.fillRect(left + real, top, width * scale - real, rowHeight);
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, top + 0.5, width * scale - 1, rowHeight - 1);
  }
}

// The first channel of the images in the theme's colours, at their own size.
function inked(said, images, colours) {
  const [count, channels, height, width] = said.shape;
  const source = new OffscreenCanvas(width, count * height);
  const context = source.getContext("2d");
  const pixels = context.createImageData(width, count * height);
  const plane = height * width;
  for (let slot = 0; slot < count; slot += 1) {
    const from = slot * channels * plane;
    const to = slot * plane;
    for (let place = 0; place < plane; place += 1) {
      const ink = Math.min(Math.max(images[from + place], 0), 1);
      const byte = 4 * (to + place);
      for (let part = 0; part < 3; part += 1) {
        pixels.data[byte + part] = colours.paper[part] + ink * (colours.ink[part] - colours.paper[part]);
      }
      pixels.data[byte + 3] = 255;
    }
  }
  context.putImageData(pixels, 0, 0);
  return source;
}

function hatching(context, colours, density) {
  const side = 8;
  const tile = new OffscreenCanvas(Math.round(side * density), Math.round(side * density));
  const brush = tile.getContext("2d");
  brush.scale(tile.width / side, tile.height / side);
  brush.fillStyle = colours.padding;
  brush.fillRect(0, 0, side, side);
  brush.strokeStyle = colours.hatch;
  brush.lineWidth = 1;
  brush.beginPath();
  for (const shift of [-side, 0, side]) {
    brush.moveTo(shift - 1, side + 1);
    brush.lineTo(shift + side + 1, -1);
  }
  brush.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(side / tile.width, side / tile.height));
  return pattern;
}

function caption(context, colours, said, slot, beside, top, rowHeight, room) {
  const target = said.targets[slot];
  const details = `#${said.indices[slot]} · ${said.widths[slot]} px`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  if (beside) {
    const middle = top + rowHeight / 2;
    context.font = `13px ${colours.font}`;
    context.fillStyle = colours.text;
    if (target) context.fillText(target, 0, middle - 8);
    context.font = `11px ${colours.font}`;
    context.fillStyle = colours.muted;
    context.fillText(details, 0, target ? middle + 9 : middle);
    return;
  }
  const middle = top - CAPTION / 2 + 1;
  context.font = `12px ${colours.font}`;
  context.fillStyle = colours.text;
  context.fillText(target, 0, middle);
  context.font = `11px ${colours.font}`;
  context.fillStyle = colours.muted;
  if (target) {
    context.textAlign = "right";
    context.fillText(details, room, middle);
  } else {
    context.fillText(details, 0, middle);
  }
}

// A digest as a pattern that eyes compare at a glance: one cell for each of its 64 digits.
export function drawFingerprint(canvas, digest) {
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(8, 8);
  const { accent, paper } = themeOf(canvas);
  for (let cell = 0; cell < 64; cell += 1) {
    const strength = Number.parseInt(digest[cell], 16) / 15;
    for (let part = 0; part < 3; part += 1) {
      pixels.data[4 * cell + part] = paper[part] + strength * (accent[part] - paper[part]);
    }
    pixels.data[4 * cell + 3] = 255;
  }
  context.putImageData(pixels, 0, 0);
}

function themeOf(element) {
  const style = getComputedStyle(element);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    paper: channelsOf(value("paper")),
    ink: channelsOf(value("ink")),
    accent: channelsOf(value("accent")),
    padding: value("padding"),
    hatch: value("hatch"),
    line: value("line"),
    text: value("text"),
    muted: value("muted"),
    font: value("mono"),
  };
}

// The colours are written as #rrggbb in style.css.
function channelsOf(colour) {
  return [1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16));
}
