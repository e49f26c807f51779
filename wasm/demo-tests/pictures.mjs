// A visitor's picture gives the same pixels everywhere, and so the same batches, or is refused.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pageOfText, png } from "../lib/png.mjs";
import {
  browserName, hashOf, python, scratch, server, sharedPage, START, text, untilShown,
} from "./harness.mjs";

const said = (page, pattern) =>
  page.waitForFunction((source) => new RegExp(source).test(document.querySelector("#picture-said").textContent), pattern.source);
const refused = (page, pattern) =>
  page.waitForFunction((source) => new RegExp(source).test(document.querySelector("#problem-text").textContent), pattern.source);
const shownOf = (page, hash) =>
  page.waitForFunction((old) => document.body.dataset.shown.startsWith("#data=picture") && document.body.dataset.shown !== old, hash);

// The whole program, the folded part too.
const program = async (page) => (await text(page, "helper-code")) + (await text(page, "code"));

async function choose(page, name) {
  const before = await page.evaluate(() => document.body.dataset.shown);
  await page.setInputFiles("#file", join(scratch, name));
  await said(page, new RegExp(`“${name.replace(/[.()]/g, "\\$&")}”, \\d+ × \\d+: cut into`));
  await shownOf(page, before);
}

// Pictures of the kinds that PNG has, made by Pillow.
const KINDS = `
from PIL import Image
import numpy as np

y, x = np.mgrid[0:200, 0:320]
ink = ((y % 40 > 10) & (y % 40 < 32) & (x % 60 < 40) & (x % 7 != 0)).astype(np.uint8)
gray = (245 - ink * (150 + (x * 3 + y * 5) % 90)).astype(np.uint8)
rgb = np.stack([gray, np.roll(gray, 2, 1), 255 - ink * 200], -1).astype(np.uint8)
alpha = ((x * 7 + y * 11) % 256).astype(np.uint8)
Image.fromarray(gray).save("gray.png")
Image.fromarray(rgb).save("rgb.png")
Image.fromarray(np.dstack([rgb, alpha])).save("rgba.png")
Image.fromarray(np.dstack([gray, alpha]), "LA").save("gray-alpha.png")
Image.fromarray(rgb).quantize(200).save("palette.png")
Image.fromarray(np.dstack([rgb, alpha])).quantize(64).save("palette-alpha.png")
Image.fromarray(gray).convert("1").save("bits.png")
Image.fromarray(rgb).quantize(3).save("two-bits.png", bits=2)
Image.fromarray(rgb).quantize(14).save("four-bits.png", bits=4)
Image.fromarray(rgb).save("photo.jpg", quality=70)
Image.fromarray(rgb).save("web.webp")
Image.fromarray((gray.astype(np.uint16) * 257)).save("sixteen.png")
Image.fromarray(np.full((64, 64, 3), 200, np.uint8)).save("blank.png")
Image.fromarray(rgb).save("key.png", transparency=(245, 245, 255))
whole = open("rgba.png", "rb").read()
open("cut.png", "wb").write(whole[: len(whole) // 2])
open("damaged.png", "wb").write(whole[:500] + bytes([whole[500] ^ 255]) + whole[501:])
`;

export default {
  async "a picture becomes data, and its program prints the same digest"() {
    const page = await sharedPage();
    await page.locator(".segments label:has([value=picture])").click();
    assert.match(await text(page, "reason"), /Choose a picture/);
    await page.setInputFiles("#file", { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no") });
    await refused(page, /“notes.txt” could not be read/);
    const name = "it's a page.png";
    writeFileSync(join(scratch, name), png(640, 400, pageOfText));
    await choose(page, name);
    assert.match(await text(page, "picture-said"), /cut into \d+ words/);
    assert.equal(await page.locator("#helper").getAttribute("open"), null, "the helper is folded");
    for (const sampler of ["sequential", "mixing", "bucketed"]) {
      await page.locator(`.segments label:has([value=${sampler}])`).click();
      await page.waitForFunction((wanted) => document.body.dataset.shown.includes(`sampler=${wanted}&`), sampler);
      assert.equal(python(await program(page)), await text(page, "digest"), sampler);
    }
    await page.waitForFunction(() => /^#data=picture&picture=[0-9a-f]{16}&/.test(location.hash));
    // A picture without text, dropped on the page.
    const noise = png(100, 90, (x, y) => [(x * x * 7 + y * 31) & 255, (x * y) & 255, (y * y) & 255, 255]);
    writeFileSync(join(scratch, "noise.png"), noise);
    const before = await page.evaluate(() => document.body.dataset.shown);
    await page.evaluate((bytes) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([new Uint8Array(bytes)], "noise.png", { type: "image/png" }));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }, [...noise]);
    await said(page, /“noise.png”, 100 × 90: cut into/);
    await shownOf(page, before);
    assert.equal(python(await program(page)), await text(page, "digest"));
  },

  async "every kind of PNG gives the pixels that Pillow reads"() {
    const page = await sharedPage();
    python(KINDS);
    for (const kind of ["gray", "rgb", "rgba", "gray-alpha", "palette", "palette-alpha", "bits", "two-bits", "four-bits"]) {
      await choose(page, `${kind}.png`);
      assert.equal(await page.locator("#picture-png").isVisible(), false);
      assert.equal(python(await program(page)), await text(page, "digest"), kind);
    }
  },

  async "another format becomes a PNG that can be saved, and the program opens that"() {
    const page = await sharedPage();
    python(KINDS);
    for (const [name, saved] of [["photo.jpg", "photo.png"], ["web.webp", "web.png"]]) {
      await choose(page, name);
      const [download] = await Promise.all([page.waitForEvent("download"), page.click("#picture-png")]);
      assert.equal(download.suggestedFilename(), saved);
      await download.saveAs(join(scratch, saved));
      assert.equal(python(await program(page)), await text(page, "digest"), name);
    }
  },

  async "what would not give the same pixels everywhere is refused by name"() {
    const page = await sharedPage();
    python(KINDS);
    for (const [name, reason] of [
      ["sixteen.png", /16 bits a channel/],
      ["key.png", /marks one colour as see-through/],
      ["cut.png", /“cut.png” is cut off/],
      ["damaged.png", /“damaged.png” is damaged/],
      ["blank.png", /picture is blank/],
    ]) {
      await page.setInputFiles("#file", join(scratch, name));
      await refused(page, reason);
    }
    const tiny = png(4, 40, () => [0, 0, 0, 255]);
    await page.setInputFiles("#file", { name: "tiny.png", mimeType: "image/png", buffer: tiny });
    await refused(page, /each side needs at least 8/);
    const interlaced = readFileSync(join(scratch, "rgb.png"));
    interlaced[28] = 1;
    await page.setInputFiles("#file", { name: "woven.png", mimeType: "image/png", buffer: interlaced });
    await refused(page, /interlaced/);
    await page.goto(`${server.url}${hashOf(START)}`);
    await untilShown(page, hashOf(START));
  },

  async "of two pictures chosen quickly the later one stays"() {
    const page = await sharedPage();
    const large = png(2400, 1800, (x, y) => pageOfText(x, y % 400));
    const small = png(320, 200, (x, y) => pageOfText(x, y + 40));
    writeFileSync(join(scratch, "large.png"), large);
    writeFileSync(join(scratch, "small.png"), small);
    await page.setInputFiles("#file", join(scratch, "small.png"));
    await page.setInputFiles("#file", join(scratch, "large.png"));
    await page.setInputFiles("#file", join(scratch, "small.png"));
    await page.setInputFiles("#file", join(scratch, "large.png"));
    await page.setInputFiles("#file", join(scratch, "small.png"));
    await said(page, /“small.png”, 320 × 200: cut into/);
    await page.waitForFunction(() => document.body.dataset.state === "ready" && document.body.dataset.shown.startsWith("#data=picture"));
    // Its pixels are those of the file that is named.
    assert.match(await text(page, "code"), /"?'?small\.png/);
    assert.equal(python(await program(page)), await text(page, "digest"), browserName);
  },
};
