// Draws a batch as the tensor that it is: one row a slot, all equally wide, ink on paper, and
// what is padding hatched.

const CAPTION = 18; // pixels above each image
const GAP = 10; // between images; twice as much across
const LEAST_COLUMN = 200; // pixels: what a caption needs
const LARGEST_SCALE = 2.25;
const LARGEST_SIDE = 8192; // device pixels; some phones draw no larger canvas

// Draw batch = { said, images } on the canvas, as wide as the room that it has; the images stand in
// so many columns, or in as many as suit them.
export function drawBatch(canvas, { said, images }, wantedColumns) {
  const [count, , height, width] = said.shape;
  const room = canvas.parentElement.clientWidth;
  if (room === 0) return; // not on show; drawn when it is
  const columns = wantedColumns ?? columnsFor(room, width, count);
  const column = columnWidth(room, columns);
  const scale = Math.min(column / width, LARGEST_SCALE);
  const pitch = CAPTION + height * scale + GAP;
  const total = Math.ceil(Math.ceil(count / columns) * pitch);
  const density = Math.min(devicePixelRatio, LARGEST_SIDE / Math.max(total, room));

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
    const left = (slot % columns) * (column + 2 * GAP);
    const top = Math.floor(slot / columns) * pitch + CAPTION;
    caption(context, colours, said, slot, { left, top, width: width * scale, column });
    const real = said.widths[slot] * scale;
    context.drawImage(
      source, 0, slot * height, said.widths[slot], height, left, top, real, height * scale,
    );
    context.fillStyle = hatch;
    context.fillRect(left + real, top, width * scale - real, height * scale);
    context.strokeStyle = colours.line;
    context.strokeRect(left + 0.5, top + 0.5, width * scale - 1, height * scale - 1);
  }
}

const columnWidth = (room, columns) => (room - 2 * GAP * (columns - 1)) / columns;

// How many images stand side by side: two where they stay legible, more where they stay large.
function columnsFor(room, width, count) {
  for (const [columns, scale] of [[4, 1.75], [3, 1.75], [2, 1.2]]) {
    const column = columnWidth(room, columns);
    if (columns <= count && column >= Math.max(LEAST_COLUMN, scale * width)) return columns;
  }
  return 1;
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
  const pixels = Math.max(1, Math.round(side * density));
  const tile = new OffscreenCanvas(pixels, pixels);
  const brush = tile.getContext("2d");
  brush.scale(pixels / side, pixels / side);
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
  pattern.setTransform(new DOMMatrix().scale(side / pixels, side / pixels));
  return pattern;
}

// Above an image: its target, its dataset index and its real width.
function caption(context, colours, said, slot, { left, top, width, column }) {
  const details = `#${said.indices[slot]} · ${said.widths[slot]} px`;
  const middle = top - CAPTION / 2 + 1;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.font = `12px ${colours.font}`;
  context.fillStyle = colours.text;
  context.fillText(said.targets[slot], left, middle);
  const used = context.measureText(said.targets[slot]).width;
  context.font = `11px ${colours.font}`;
  context.fillStyle = colours.muted;
  const room = width - context.measureText(details).width;
  // At the right end; behind the target where the images are too narrow for that, if it fits.
  const start = used > 0 ? Math.max(room, used + 10) : 0;
  if (start + width - room <= column + 1) context.fillText(details, left + start, middle);
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
