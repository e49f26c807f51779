// The first screen says what a batch that replays is good for, and proves it by itself.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkout } from "../lib/paths.mjs";
import {
  digestAt, hashOf, LOADING, native, openPage, sharedPage, START, text, untilProved, untilShown,
} from "./harness.mjs";

const canonical = () =>
  JSON.parse(readFileSync(join(checkout, "onemodel", "data", "canonical.json"), "utf8"))
    .configurations.flatMap(({ digests }) => Object.values(digests));

export default {
  async "loading counts the bytes and is announced, and then the page proves itself"() {
    const page = await openPage("", {
      prepare: (one) =>
        one.addInitScript(() => {
          window.announced = [];
          addEventListener("DOMContentLoaded", () => {
            const status = document.querySelector("#status");
            new MutationObserver(() => window.announced.push(status.textContent)).observe(status, { childList: true });
          });
        }),
    });
    await page.waitForFunction(() => /of \d+\.\d MB/.test(document.querySelector("#boot-bytes").textContent));
    await untilShown(page, hashOf(START), LOADING);
    assert.match(await text(page, "versions"), /onemodel .* on emscripten, 32 bit/);
    assert.equal(await page.locator("#boot").isVisible(), false);
    await untilProved(page);
    const expected = canonical();
    assert.match(await text(page, "verdict"), new RegExp(`^All ${expected.length} canonical batches are the same here, byte for byte\\.`));
    const shown = await page.locator("#proof tr.same").evaluateAll((rows) =>
      rows.map((row) => [row.cells[1].textContent, row.cells[2].textContent]),
    );
    assert.deepEqual(shown, expected.map((digest) => [digest, digest]));
    const announced = await page.evaluate(() => window.announced);
    assert.ok(announced.some((one) => /^(Loading|Starting) Python.*: (25|50|75|100) %$/.test(one)), announced.join("\n"));
    assert.ok(announced.some((one) => /^Batch of seed 42, step 0/.test(one)));
    assert.match(announced.at(-1), /^All \d+ canonical batches/);
    // Claim, verdict, and both steps are seen without scrolling.
    for (const one of ["#headline", "#verdict", "[data-place='0'] [data-part=digest]", "[data-place='1'] [data-part=digest]"]) {
      const { y, height } = await page.locator(one).boundingBox();
      assert.ok(y + height <= 860, `${one} ends at ${y + height}`);
    }
    await page.context().close();
  },

  async "a near and a far step stand side by side, with digests and build times"() {
    const page = await sharedPage();
    const steps = ["0", String(10n ** 18n)];
    const expected = native(steps.map((step) => ({ ...START, step })));
    for (const [place, step] of steps.entries()) {
      const card = page.locator(`#pair [data-place='${place}']`);
      assert.equal(await card.locator("[data-part=digest]").textContent(), expected[place]);
      assert.match(await card.locator("[data-part=time]").textContent(), /^built in \d+(\.\d+)? ms$/);
      assert.match(await card.locator("[data-part=of]").textContent(), place ? /^seed 42, step 10¹⁸$/ : /^seed 42, step 0$/);
      await card.locator("button").click();
      assert.equal(await digestAt(page, hashOf({ ...START, step })), expected[place]);
      assert.equal(await page.evaluate(() => document.activeElement.id), "stage");
    }
    await page.locator("[name=augment][value=blur]").setChecked(true);
    await page.click("#spike");
    const spike = { ...START, step: "31337" };
    assert.equal(await digestAt(page, hashOf(spike)), native([spike])[0]);
    assert.match(await text(page, "digest-of"), /^of seed 42, step 31,337; SHA-256/);
  },

  async "it can be checked again, and the page stays alive meanwhile"() {
    const page = await sharedPage();
    await page.click("#prove");
    await page.waitForSelector("#proof tbody tr.same");
    await page.click("#next");
    await untilShown(page, hashOf({ ...START, step: "1" }));
    assert.equal(await page.getAttribute("#prove", "aria-disabled"), "true", "it ended before a batch could be shown");
    await untilProved(page);
    assert.match(await text(page, "verdict"), /are the same here/);
  },

  async "batches that differ are counted, and the verdict says so"() {
    // One step of each configuration comes out wrong.
    const loop = "for result in verify.results():";
    const wrong = `for result in (type(r)(r.configuration, r.step, r.expected, r.found[::-1] if r.step == 1 else r.found) for r in verify.results()):`;
    const page = await openPage("", {
      failing: true,
      prepare: (one) =>
        one.context().route("**/demo.py", async (route) => {
          const body = await (await route.fetch()).text();
          assert.ok(body.includes(loop));
          return route.fulfill({ body: body.replace(loop, wrong) });
        }),
    });
    await untilProved(page);
    const count = await page.locator("#proof tr.different").count();
    assert.ok(count > 0);
    assert.match(await text(page, "verdict"), new RegExp(`^${count} of \\d+ canonical batches differ here\\.`));
    assert.equal(await page.getAttribute("#verdict", "data-kind"), "bad");
    await page.context().close();
  },
};
