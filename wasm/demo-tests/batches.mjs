// The batches that the page shows are the native ones, and can be stepped through.

import assert from "node:assert/strict";
import {
  digestAt, hashOf, isOff, LARGEST, native, python, server, sharedPage, START, text, untilShown,
} from "./harness.mjs";

export default {
  async "digests are the native ones, for every sampler and augmentation"() {
    const page = await sharedPage();
    const configurations = [
      START,
      { ...START, sampler: "sequential", step: "165", augment: ["gain"] },
      { ...START, sampler: "mixing", batch: 7, seed: LARGEST, step: "1000000", augment: ["blur"] },
      { ...START, sampler: "bucketed", batch: 32, seed: "9007199254740993", augment: ["noise"] },
      { ...START, sampler: "bucketed", step: LARGEST, augment: ["gain", "blur", "noise"] },
      { ...START, batch: 128, seed: "0", step: "9007199254740993", augment: ["gain", "noise"] },
    ];
    const expected = native(configurations);
    for (const [position, configuration] of configurations.entries()) {
      const { sampler, batch, seed, step, augment } = configuration;
      await page.locator(`.segments label:has([value=${sampler}])`).click();
      await page.fill("#batch", String(batch));
      await page.fill("#seed", seed);
      await page.fill("#step", step);
      for (const name of ["gain", "blur", "noise"]) {
        await page.locator(`[name=augment][value=${name}]`).setChecked(augment.includes(name));
      }
      assert.equal(await digestAt(page, hashOf(configuration)), expected[position], hashOf(configuration));
      // The address is written late.
      await page.waitForFunction((hash) => location.hash === hash, hashOf(configuration));
    }
  },

  async "the batch is drawn, with its padding, widths and targets"() {
    const page = await sharedPage();
    const seen = await page.evaluate(() => {
      const canvas = document.querySelector("#batch-canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const colours = new Set();
      for (let at = 0; at < data.length; at += 4) {
        colours.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
      }
      const padding = getComputedStyle(canvas).getPropertyValue("--padding").trim();
      return { colours: colours.size, padded: colours.has(Number.parseInt(padding.slice(1), 16)) };
    });
    assert.ok(seen.colours > 50, `${seen.colours} colours`);
    assert.ok(seen.padded, "no pixel has the colour of padding");
    assert.match(await text(page, "waste"), /^\d+\.\d %$/);
    await page.locator("#rows summary").click();
    const rows = await page.locator("#row-list tr").allInnerTexts();
    assert.equal(rows.length, 12);
    for (const row of rows) assert.match(row, /^\d+\t\d+\t\d+\t\d+\t\d{3,12}$/);
    assert.match(await text(page, "status"), /^Batch of seed 42, step 0: 12 images, .* digest [0-9a-f]{8}$/);
  },

  async "steps go forwards, back and anywhere, by mouse and by keyboard"() {
    const page = await sharedPage();
    const at = (step) => untilShown(page, hashOf({ ...START, step }));
    const first = await text(page, "digest");
    assert.ok(await isOff(page, "back"));
    await page.click("#next");
    await at("1");
    await page.locator("h1").click(); // the focus is nowhere in particular
    await page.keyboard.press("ArrowRight");
    await at("2");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await at("0");
    assert.equal(await text(page, "digest"), first, "the same step must be the same batch");
    await page.keyboard.press("ArrowLeft");
    await page.fill("#step", "0xFFFFFFFFFFFFFFFF");
    await at(LARGEST);
    assert.ok(await isOff(page, "next"));
    await page.locator("#step").press("ArrowDown");
    await at(String(BigInt(LARGEST) - 1n));
    await page.click("#far");
    await page.waitForFunction(() => document.body.dataset.state === "ready");
    await page.click("#first");
    await at("0");
  },

  async "the program that is shown prints the digest that is shown"() {
    const page = await sharedPage();
    await page.locator("[data-copies~=code]").click();
    const code = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(code, await text(page, "code"));
    const printed = python(code);
    assert.equal(printed, await text(page, "digest"));
    await page.fill("#other", printed);
    assert.match(await text(page, "other-said"), /^The same/);
    await page.click("#next");
    await untilShown(page, hashOf({ ...START, step: "1" }));
    assert.match(await text(page, "other-said"), /^Different/);
    await page.fill("#other", "abc");
    assert.match(await text(page, "other-said"), /64 hexadecimal digits/);
    await page.fill("#other", "");
    await page.click("#back");
    await untilShown(page, hashOf(START));
  },

  async "wrong numbers are explained, and nothing else changes"() {
    const page = await sharedPage();
    const digest = await text(page, "digest");
    for (const [id, wrong, said] of [
      ["batch", "0", /Batch size must be a whole number from 1 to 128/],
      ["batch", "1000", /from 1 to 128/],
      ["batch", "2.5", /from 1 to 128/],
      ["seed", "-1", /Seed must be a whole number from 0 on, not “-1”/],
      ["seed", "18446744073709551616", /Seed must be at most/],
      ["seed", "", /Seed is empty/],
      ["step", "1.5", /Global step must be a whole number/],
      ["step", "1,00", /Global step must be a whole number/],
      ["step", "10^20", /Global step must be at most/],
      ["step", "1e999", /Global step must be at most/],
      ["step", "0x", /Global step must be a whole number/],
    ]) {
      const before = await page.inputValue(`#${id}`);
      await page.fill(`#${id}`, wrong);
      await page.locator(`#${id}`).press("Tab");
      assert.match(await text(page, `${id}-wrong`), said);
      assert.equal(await page.getAttribute(`#${id}`, "aria-invalid"), "true");
      await page.fill(`#${id}`, before);
      assert.equal(await page.locator(`#${id}-wrong`).isVisible(), false);
    }
    await untilShown(page, hashOf(START));
    assert.equal(await text(page, "digest"), digest);
    await page.goto(`${server.url}#seed=many&batch=16&g=5&sampler=sorted`);
    await untilShown(page, hashOf({ ...START, batch: 16, step: "5" }));
    assert.match(await text(page, "problem-text"), /sampler must be .* not “sorted”.*Seed must be/);
    await page.click("#next");
    await page.waitForFunction(() => document.querySelector("#problem").hidden);
  },

  async "a number can be written as people write one"() {
    const page = await sharedPage();
    for (const [written, step] of [
      ["1e9", "1000000000"], ["10^9", "1000000000"], ["1,000,000", "1000000"], ["2**63", String(2n ** 63n)],
      ["1_000 000", "1000000"], ["0x10", "16"], [" 7 ", "7"], ["10 ^ 18", String(10n ** 18n)],
    ]) {
      await page.fill("#step", written);
      await untilShown(page, hashOf({ ...START, step }));
      await page.locator("#step").press("Tab");
      assert.equal(await page.inputValue("#step"), step, written);
    }
  },
};
