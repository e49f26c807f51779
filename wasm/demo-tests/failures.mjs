// What is missing, blocked or lost is said by its cause, and can be tried again.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import {
  browser, browserName, complaints, demo, hashOf, LOADING, openPage, sharedPage, START, text, untilShown,
} from "./harness.mjs";

async function failing(before, options = {}) {
  const page = await openPage("", { failing: true, prepare: before, ...options });
  await page.waitForFunction(() => document.body.dataset.state === "failed", null, { timeout: LOADING });
  return page;
}

async function assertFails(before, said, options) {
  const page = await failing(before, options);
  const failure = (await text(page, "failure-text")) || (await text(page, "boot-text"));
  assert.match(failure, said);
  assert.doesNotMatch(failure, /web server/);
  assert.equal(await page.locator("#failure, #boot").filter({ visible: true }).count(), 1);
  await page.context().close();
}

const answer = (pattern, reply) => (page) =>
  page.context().route(pattern, (route) => reply === "lost" ? route.abort() : route.fulfill(reply));

// The answer of the server, with a policy added to it.
const policed = (pattern, policy) => (page) =>
  page.context().route(pattern, async (route) => {
    const response = await route.fetch();
    return route.fulfill({ response, headers: { ...response.headers(), "content-security-policy": policy } });
  });

export default {
  async "a missing file is named, and loading can be tried again"() {
    const wheel = "**/vendor/onemodel-*.whl.gz";
    const page = await failing(answer(wheel, { status: 404 }));
    assert.match(await text(page, "failure-text"), /onemodel-.*\.whl\.gz is missing .*prepare\.mjs/);
    assert.ok(await page.locator("#failure").isVisible());
    await page.context().unroute(wheel);
    await page.locator("#again").focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "stage");
    await untilShown(page, hashOf(START), LOADING);
    assert.equal(await page.locator("#failure").isVisible(), false);
    await page.context().close();
    await assertFails(answer("**/vendor/files.json", { status: 404 }), /files\.json is missing/);
    await assertFails(answer("**/demo.py", { status: 404 }), /demo\.py is missing/);
    await assertFails(answer("**/pins.json", { status: 503 }), /did not hand over pins\.json: it answered 503/);
    await assertFails(answer("**/worker.js", { status: 404 }), /missing on its server: worker\.js/);
    await assertFails(answer("**/state.js", { status: 404 }), /A part of this page did not arrive/);
  },

  async "a changed file is not run"() {
    await assertFails(answer("**/vendor/onemodel-*.whl.gz", { body: "another wheel" }), /not the file that this page was made for/);
  },

  async "a lost connection is called so"() {
    await assertFails(answer("**/vendor/numpy-*.whl.gz", "lost"), /The connection was lost while numpy-.* was loading/);
    await assertFails(answer("**/worker.js", "lost"), /The connection was lost/);
  },

  async "a policy that blocks is called so"() {
    const index = (one) => policed(/\/$/, "worker-src 'none'")(one);
    await assertFails(index, /policy.*(blocks|forbids) workers/);
    const scripts = "script-src 'self' blob:";
    await assertFails(policed("**/worker.js", scripts), /forbids WebAssembly/);
    await assertFails(policed("**/worker.js", "script-src 'self' 'wasm-unsafe-eval'"), /not allowed to run Python’s own scripts/);
  },

  async "a browser that lacks something is told what"() {
    const lacking = (code) => (page) =>
      page.context().route("**/worker.js", async (route) => {
        const response = await route.fetch();
        return route.fulfill({ response, body: `${code}\n${await response.text()}` });
      });
    await assertFails(lacking("WebAssembly.validate = () => false;"), /no vectors \(SIMD\)/);
    await assertFails(lacking("delete globalThis.DecompressionStream;"), /cannot unpack compressed files/);
    await assertFails(lacking("delete globalThis.WebAssembly;"), /has no WebAssembly/);
  },

  async "only a page that is opened as a file asks for a web server"() {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(pathToFileURL(join(demo, "index.html")).href);
    await page.waitForFunction(() => /needs a web server/.test(document.querySelector("#boot-text").textContent));
    await context.close();
    if (browserName !== "chromium") return;
    const still = await browser.newContext({ javaScriptEnabled: false });
    const quiet = await still.newPage();
    await quiet.goto((await sharedPage()).url());
    assert.match(await quiet.locator("#boot").innerText(), /needs JavaScript/);
    assert.doesNotMatch(await quiet.locator("#boot").innerText(), /web server/);
    await still.close();
  },

  async "a link to a batch of a picture asks for that picture"() {
    const page = await openPage("#data=picture&picture=0123456789abcdef&seed=5");
    await page.waitForFunction(() => /Choose the same file/.test(document.querySelector("#reason").textContent), null, { timeout: LOADING });
    assert.match(page.url(), /picture=0123456789abcdef/);
    await page.context().close();
  },

  async "the connection may end once the page is there"() {
    if (browserName !== "chromium") return;
    const page = await sharedPage();
    await page.context().setOffline(true);
    await page.click("#next");
    await untilShown(page, hashOf({ ...START, step: "1" }));
    await page.context().setOffline(false);
    complaints.delete("Failed to load resource: net::ERR_INTERNET_DISCONNECTED"); // the tab's icon
  },
};
