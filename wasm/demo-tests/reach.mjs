// Everybody reaches everything: by keyboard, on phones, by ear, in the dark and in forced colours.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { nodeModules } from "../lib/paths.mjs";
import {
  hashOf, LARGEST, LOADING, native, openPage, sharedPage, START, text, untilProved, untilShown,
} from "./harness.mjs";

const axe = readFileSync(join(nodeModules, "axe-core", "axe.min.js"), "utf8");

// What axe finds on a page, as texts.
async function findings(page) {
  await page.evaluate(axe); // not as a script element, which the page's policy forbids
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 120)} ${failureSummary}`));
  });
}

const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.tagName);

export default {
  async "everything can be reached and worked with the keyboard alone"() {
    // A page of its own: past its last element, Firefox gives the focus to the browser's own buttons,
    // and no script or click of a test brings it back. So the keys come first, and then Tab.
    const page = await openPage(hashOf(START));
    await untilProved(page);
    await untilShown(page, hashOf(START));
    await page.locator("[name=sampler][value=shuffled]").focus();
    await page.keyboard.press("ArrowRight"); // chooses, and does not step
    await untilShown(page, hashOf({ ...START, sampler: "mixing" }));
    await page.keyboard.press("ArrowLeft");
    await page.locator("[name=augment][value=blur]").focus();
    await page.keyboard.press("Space");
    await untilShown(page, hashOf({ ...START, augment: ["blur"] }));
    await page.keyboard.press("Space");
    await untilShown(page, hashOf(START));
    await page.locator("a").first().focus();
    const reached = [];
    for (let presses = 0; presses < 60; presses += 1) {
      if (presses > 0) await page.keyboard.press("Tab");
      const focus = await page.evaluate(() => {
        const one = document.activeElement;
        if (!document.hasFocus()) return "left";
        if (one === document.body) return null;
        const drawn = one.matches(".segments input, .chips input, #file") ? (one.nextElementSibling ?? one) : one;
        const visible = getComputedStyle(drawn).outlineStyle !== "none" || one.id === "file";
        return { name: one.id || one.name || one.textContent.trim(), visible };
      });
      if (focus === "left") break;
      if (!focus) continue; // past the end, before the start
      assert.ok(focus.visible, `the focus on ${focus.name} cannot be seen`);
      reached.push(focus.name);
    }
    for (const name of ["Skip to the batch", "Install", "spike", "data", "sampler", "batch", "seed", "seed-random",
      "augment", "back", "next", "step", "far", "prove", "other"]) {
      assert.ok(reached.includes(name), `Tab never reaches ${name}: ${reached}`);
    }
    await page.context().close();
  },

  async "the focus stays where it is when a button goes out of use"() {
    const page = await sharedPage();
    await page.click("#next");
    await untilShown(page, hashOf({ ...START, step: "1" }));
    await page.locator("#back").focus();
    await page.keyboard.press("Enter");
    await untilShown(page, hashOf(START));
    assert.equal(await page.getAttribute("#back", "aria-disabled"), "true");
    assert.equal(await focused(page), "back");
    await page.keyboard.press("Enter"); // nothing happens
    await page.locator("#next").focus();
    await page.keyboard.press("Enter");
    await untilShown(page, hashOf({ ...START, step: "1" }));
    await page.locator("#first").focus();
    await page.keyboard.press("Enter");
    await untilShown(page, hashOf(START));
    assert.equal(await focused(page), "first");
    await page.locator("#prove").focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("#prove[aria-disabled=true]");
    assert.equal(await focused(page), "prove");
    await untilProved(page);
    assert.equal(await focused(page), "prove");
  },

  async "axe finds nothing: light, dark, forced colours, a narrow phone"() {
    const hash = hashOf({ ...START, step: "5" });
    const page = await openPage(`${hash}&digest=0123456789abcdef`);
    assert.deepEqual(await findings(page), [], "while it loads");
    await untilProved(page);
    await page.locator("#rows summary").click();
    for (const [name, colours, width] of [
      ["light", { colorScheme: "light" }, 1280],
      ["dark", { colorScheme: "dark" }, 1280],
      ["forced colours", { forcedColors: "active" }, 1280],
      ["a phone", { colorScheme: "light", forcedColors: "none" }, 320],
      ["a dark phone", { colorScheme: "dark" }, 320],
    ]) {
      await page.setViewportSize({ width, height: 860 });
      await page.emulateMedia(colours);
      await page.fill("#step", "-1");
      await page.locator("#step").press("Tab");
      assert.ok(await page.locator("#step-wrong").isVisible());
      assert.deepEqual(await findings(page), [], name);
      await page.fill("#step", "5");
      await page.locator(".segments label:has([value=picture])").click();
      await page.waitForFunction(() => /Choose a picture/.test(document.querySelector("#reason").textContent));
      assert.deepEqual(await findings(page), [], `${name}, picture`);
      const nameless = await page.evaluate(() =>
        [...document.querySelectorAll("input, button, progress, [role=region]")]
          .filter((one) => {
            const labels = [...(one.labels ?? [])].filter((label) => label.checkVisibility());
            return !(labels.length || one.ariaLabel || one.textContent.trim());
          })
          .map((one) => one.outerHTML),
      );
      assert.deepEqual(nameless, [], name);
      await page.locator(".segments label:has([value=digits])").click();
      await untilShown(page, hash);
    }
    await page.context().close();
  },

  async "a link shows the same batch on a phone, in the dark, without motion"() {
    const configuration = { ...START, sampler: "bucketed", seed: "1234567890123456789", step: LARGEST, augment: ["gain", "noise"] };
    const phone = await openPage(hashOf(configuration), {
      viewport: { width: 320, height: 640 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true,
      colorScheme: "dark", reducedMotion: "reduce",
    });
    await untilShown(phone, hashOf(configuration), LOADING);
    assert.equal(await text(phone, "digest"), native([configuration])[0]);
    await untilProved(phone);
    await phone.tap("#rows summary");
    const seen = await phone.evaluate(() => ({
      wide: [...document.querySelectorAll("body *")]
        .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest(".scroll, .visually-hidden, .hint"))
        .map((one) => one.outerHTML.slice(0, 100)),
      scroll: document.documentElement.scrollWidth,
      background: getComputedStyle(document.body).backgroundColor,
      motion: getComputedStyle(document.querySelector("#next")).transitionDuration,
      places: ["verdict", "pair", "stage", "controls"].map((id) => document.getElementById(id).getBoundingClientRect().top),
    }));
    assert.deepEqual(seen.wide, []);
    assert.ok(seen.scroll <= 320, `${seen.scroll} pixels wide`);
    assert.equal(seen.background, "rgb(20, 23, 26)");
    assert.equal(seen.motion, "0s");
    assert.deepEqual(seen.places, seen.places.toSorted((one, other) => one - other), "the batch stands before the controls");
    await phone.context().close();
  },
};
