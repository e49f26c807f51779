// A batch has an address, and what is shown is never under the name of another batch.

import assert from "node:assert/strict";
import {
  digestAt, hashOf, LOADING, native, openPage, server, sharedPage, START, text, untilProved, untilShown,
} from "./harness.mjs";

// Notes every pair of a caption and a digest that a frame shows, from when it is called.
const watchCaptions = () => {
  window.captions = new Map();
  const note = () => {
    const caption = document.querySelector("#digest-of").textContent;
    const digests = window.captions.get(caption) ?? new Set();
    window.captions.set(caption, digests.add(document.querySelector("#digest").textContent));
    requestAnimationFrame(note);
  };
  note();
};

// What WebKit does: more than 100 writes of the address in ten seconds are refused.
const refuseManyWrites = () => {
  const original = history.replaceState;
  const times = [];
  window.refused = 0;
  history.replaceState = function (...given) {
    const now = performance.now();
    while (times.length && now - times[0] > 10_000) times.shift();
    if (times.length >= 100) {
      window.refused += 1;
      throw new DOMException("Attempt to use history.replaceState() more than 100 times", "SecurityError");
    }
    times.push(now);
    return original.apply(this, given);
  };
};

export default {
  async "a caption and a digest are of one batch, however fast the keys"() {
    const page = await openPage("", { prepare: (one) => one.addInitScript(refuseManyWrites) });
    await untilProved(page);
    await page.evaluate(watchCaptions);
    for (let press = 0; press < 150; press += 1) await page.keyboard.press("ArrowRight");
    await untilShown(page, hashOf({ ...START, step: "150" }));
    await page.fill("#seed", "7");
    for (let press = 0; press < 20; press += 1) await page.keyboard.press(press % 3 ? "ArrowLeft" : "Tab");
    await page.locator("h1").click();
    for (let press = 0; press < 150; press += 1) await page.keyboard.press("ArrowLeft");
    await untilShown(page, hashOf({ ...START, seed: "7", step: "0" }));
    const seen = await page.evaluate(() => [...window.captions].map(([caption, digests]) => [caption, [...digests]]));
    assert.ok(seen.length > 5, `${seen.length} captions were seen`);
    const configurations = seen.map(([caption]) => {
      const [, seed, step] = caption.match(/^of seed (\d+), step ([\d,]+);/);
      return { ...START, seed, step: step.replaceAll(",", "") };
    });
    for (const [place, digest] of native(configurations).entries()) {
      assert.deepEqual(seen[place][1], [digest], seen[place][0]);
    }
    assert.equal(await page.evaluate(() => window.refused), 0);
    await page.waitForFunction((hash) => location.hash === hash, hashOf({ ...START, seed: "7" }));
    await page.context().close();
  },

  async "a batch is shown though the browser refuses to write its address"() {
    const page = await openPage("", {
      prepare: (one) =>
        one.addInitScript(() => {
          const original = history.replaceState;
          window.allowed = false;
          history.replaceState = function (...given) {
            if (!window.allowed) throw new DOMException("too many", "SecurityError");
            return original.apply(this, given);
          };
        }),
    });
    await untilShown(page, hashOf(START), LOADING);
    await page.click("#next");
    const second = { ...START, step: "1" };
    assert.equal(await digestAt(page, hashOf(second)), native([second])[0]);
    await page.evaluate(() => (window.allowed = true));
    await page.waitForFunction((hash) => location.hash === hash, hashOf(second)); // tried again
    await page.context().close();
  },

  async "a link to a batch is copied, and whoever opens it sees the same digest"() {
    const page = await sharedPage();
    const configuration = { ...START, seed: "99", step: "1000", augment: ["gain"] };
    await page.goto(`${server.url}${hashOf(configuration)}`);
    const digest = await digestAt(page, hashOf(configuration));
    const link = await text(page, "link");
    assert.equal(link, `${server.url}${hashOf(configuration)}&digest=${digest.slice(0, 16)}`);
    await page.locator("[data-copies=link]").click();
    await page.waitForFunction(() => document.querySelector("[data-copies=link]").textContent === "Copied");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), link);

    const other = await openPage(new URL(link).hash);
    assert.match(await text(other, "sent-text"), /a link to a batch: seed 99, step 1,000\.$/);
    await other.click("#sent-open"); // before Python is there
    assert.equal(await other.evaluate(() => document.activeElement.id), "stage");
    await untilShown(other, hashOf(configuration), LOADING);
    assert.match(await text(other, "arrival-text"), /seed 99, step 1,000\. .* digest is the one in the link/);
    assert.match(other.url(), /&digest=[0-9a-f]{16}$/);
    await other.locator("#arrival-compare").click();
    assert.equal(await other.evaluate(() => document.activeElement.id), "other");
    await other.click("#next");
    await untilShown(other, hashOf({ ...configuration, step: "1001" }));
    assert.equal(await other.locator("#arrival").isVisible(), false);
    await other.waitForFunction(() => !location.hash.includes("digest"));
    await other.click("#back");
    await untilShown(other, hashOf(configuration));
    assert.ok(await other.locator("#arrival").isVisible());

    await other.goto(`${server.url}${hashOf(configuration)}&digest=0123456789abcdef`);
    await other.waitForFunction(() => /is not the one in the link/.test(document.querySelector("#arrival-text").textContent));
    await other.context().close();
  },

  async "a refused clipboard shows and selects what there is to copy"() {
    const page = await openPage(hashOf(START), {
      prepare: (one) =>
        one.addInitScript(() => {
          navigator.clipboard.writeText = () => Promise.reject(new DOMException("no", "NotAllowedError"));
        }),
    });
    await untilShown(page, hashOf(START), LOADING);
    for (const [copies, id] of [["digest", "digest"], ["link", "link"], ["helper-code code", "code"]]) {
      const button = page.locator(`[data-copies="${copies}"]`);
      await button.click();
      await page.waitForFunction((which) => /by hand/.test(document.querySelector(`[data-copies="${which}"]`).textContent), copies);
      const selected = await page.evaluate(() => getSelection().toString().trim());
      assert.ok(selected.endsWith((await text(page, id)).trim()), `${id}: ${selected}`);
      assert.ok(await page.locator(`#${id}`).isVisible());
    }
    await page.context().close();
  },

  async "previews of a link have a title, a text and a picture"() {
    const page = await sharedPage();
    const meta = (name) => page.getAttribute(`meta[property="og:${name}"]`, "content");
    assert.match(await meta("title"), /batch/);
    assert.match(await meta("description"), /replayed/);
    const picture = await page.request.get(new URL(await meta("image"), server.url).href);
    assert.equal(picture.status(), 200);
    const size = Buffer.from(await picture.body());
    assert.deepEqual([size.readUInt32BE(16), size.readUInt32BE(20)], [1200, 630]);
  },
};
