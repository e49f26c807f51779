// Drives the demo page in headless Chromium, with mouse and keyboard, and compares every digest
// that it shows with one that the machine's own Python makes.
//
//     node wasm/test-demo.mjs                  needs `make wasm` to have been run
//     node wasm/test-demo.mjs --screenshots    writes docs/images/demo-*.png as well
//
// PYTHON names the interpreter with the native onemodel and Pillow (default: python3), and
// CHROMIUM the browser (default: the machine's).

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { prepare } from "./demo/prepare.mjs";
import { exitOnError } from "./lib/errors.mjs";
import { checkout, nodeModules, wasmFolder } from "./lib/paths.mjs";
import { serve } from "./lib/server.mjs";

const LARGEST = String(2n ** 64n - 1n);
const LOADING = 120_000; // milliseconds, on a busy machine
const BUILDING = 30_000;

const CHROMIUM = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser"].find(
  (path) => path && existsSync(path),
);
// Chromium refuses to run as root inside its own sandbox; the page is this folder's own.
const CHROMIUM_ARGUMENTS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-sync", "--no-first-run",
  "--disable-component-update", "--disable-background-networking",
];

// The machine's own Python

function python(code, input = "") {
  return execFileSync(process.env.PYTHON || "python3", ["-c", code], {
    cwd: scratch, // where the pictures lie, and no package that is not built
    input,
    encoding: "utf8",
    stdio: ["pipe", "pipe", "inherit"],
  }).trim();
}

// Written apart from the page's Python, so that a mistake there shows.
const NATIVE = `
import json, sys
import onemodel as om

lines = om.datasets.DigitLines(2000, seed=0)
parts = {
    "gain": om.augment.GainOffset(gain=(0.5, 1.0), offset=(0.0, 0.25)),
    "blur": om.augment.Blur(p=0.75),
    "noise": om.augment.Noise(sigma=0.08),
}
digests = []
for c in json.load(sys.stdin):
    batch = c["batch"]
    sampler = {
        "sequential": lambda: om.SequentialSampler(2000, batch),
        "shuffled": lambda: om.ShuffledSampler(2000, batch),
        "mixing": lambda: om.MixingSampler([1500, 500], [0.5, 0.5], batch),
        "bucketed": lambda: om.BucketedSampler(lines.widths, batch),
    }[c["sampler"]]()
    augment = om.Compose([parts[name] for name in c["augment"]]) if c["augment"] else None
    collate = om.ImageBatchCollator(width_multiple=8, augment=augment)
    loader = om.DataLoader(lines, sampler=sampler, collate=collate, seed=int(c["seed"]))
    digests.append(om.digest(loader[int(c["step"])]))
print(json.dumps(digests))
`;
const native = (configurations) =>
  JSON.parse(python(NATIVE, JSON.stringify(configurations)));

// A picture of "text": lines of dark words with soft edges, some of it see-through.

function png(width, height, rgbaAt) {
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

function pageOfText(x, y) {
  const line = Math.floor(y / 40);
  const inLine = y % 40 >= 10 && y % 40 < 34;
  const word = Math.floor(x / 90);
  const end = 30 + ((line * 37 + word * 53) % 45);
  const inWord = line > 0 && line < 9 && x % 90 >= 8 && x % 90 < end && x % 7 !== 0;
  const level = inLine && inWord ? 20 + ((x * 31 + y * 17) % 60) : 250;
  return [level, level, Math.min(level + 9, 255), 255];
}

// The page

const { chromium } = createRequire(join(nodeModules, "/"))("playwright-core");
prepare();
const demo = join(wasmFolder, "demo");
const server = await serve({ "/": demo });
const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_ARGUMENTS });
const scratch = mkdtempSync(join(tmpdir(), "onemodel-demo-"));
const complaints = [];

// A page of its own, with its errors noted unless they are the test's purpose.
async function openPage(hash = "", { failing = false, prepare: before, ...options } = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    permissions: ["clipboard-read", "clipboard-write"],
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(BUILDING);
  if (!failing) {
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
  }
  page.on("request", (request) => {
    const address = request.url();
    if (!address.startsWith(server.url) && !/^(blob|data):/.test(address)) {
      complaints.push(`the page asked for ${address}`);
    }
  });
  await before?.(page);
  await page.goto(`${server.url}${hash}`);
  return page;
}

const untilShown = (page, hash, timeout = BUILDING) =>
  page.waitForFunction((wanted) => document.body.dataset.shown === wanted, hash, { timeout });
const text = (page, id) => page.locator(`#${id}`).textContent();

async function digestAt(page, hash) {
  await untilShown(page, hash);
  return text(page, "digest");
}

const hashOf = ({ sampler, batch, seed, step, augment }) =>
  `#data=digits&sampler=${sampler}&batch=${batch}&seed=${seed}` +
  `${augment.length ? `&augment=${augment.join(",")}` : ""}&g=${step}`;

const START = { sampler: "shuffled", batch: 12, seed: "42", step: "0", augment: [] };

// Tests, in order, on one page unless they need their own

let page;
const tests = {
  async "Python loads, and the progress counts the bytes"() {
    page = await openPage();
    await page.waitForFunction(() => /of \d+\.\d MB/.test(document.querySelector("#boot-bytes").textContent));
    await untilShown(page, hashOf(START), LOADING);
    assert.match(await text(page, "versions"), /onemodel .* on emscripten, 32 bit/);
    assert.equal(await page.locator("#boot").isVisible(), false);
  },

  async "digests are the native ones, for every sampler and augmentation"() {
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
      assert.equal(new URL(page.url()).hash, hashOf(configuration));
    }
  },

  async "the batch is drawn, with its padding, widths and targets"() {
    await page.goto(`${server.url}${hashOf(START)}`); // only the hash changes
    await untilShown(page, hashOf(START));
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
    assert.match(await text(page, "status"), /^Batch of step 0: 12 images, .* digest [0-9a-f]{8}$/);
  },

  async "steps go forwards, back and anywhere, by mouse and by keyboard"() {
    const at = (step) => untilShown(page, hashOf({ ...START, step }));
    const first = await text(page, "digest");
    assert.ok(await page.locator("#back").isDisabled());
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
    assert.ok(await page.locator("#next").isDisabled());
    await page.locator("#step").press("ArrowDown");
    await at(String(BigInt(LARGEST) - 1n));
    await page.click("#far");
    await page.waitForFunction(() => document.body.dataset.state === "ready");
    await page.click("#first");
    await at("0");
  },

  async "everything can be reached and worked with the keyboard alone"() {
    const reached = [];
    for (let presses = 0; presses < 45; presses += 1) {
      await page.keyboard.press("Tab");
      const focus = await page.evaluate(() => {
        const focused = document.activeElement;
        if (focused === document.body) return null;
        const drawn = focused.matches(".segments input, .chips input, #file")
          ? (focused.nextElementSibling ?? focused)
          : focused;
        const visible = getComputedStyle(drawn).outlineStyle !== "none" || focused.id === "file";
        return { name: focused.id || focused.name || focused.textContent.trim(), visible };
      });
      if (!focus) continue; // past the end, before the start
      assert.ok(focus.visible, `the focus on ${focus.name} cannot be seen`);
      reached.push(focus.name);
    }
    for (const name of ["Skip to the batch", "data", "sampler", "batch", "seed", "seed-random",
      "augment", "next", "step", "far", "prove", "other"]) {
      assert.ok(reached.includes(name), `Tab never reaches ${name}: ${reached}`);
    }
    await page.locator("[name=sampler][value=shuffled]").focus();
    await page.keyboard.press("ArrowRight"); // chooses, and does not step
    await untilShown(page, hashOf({ ...START, sampler: "mixing" }));
    await page.keyboard.press("ArrowLeft");
    await page.locator("[name=augment][value=blur]").focus();
    await page.keyboard.press("Space");
    await untilShown(page, hashOf({ ...START, augment: ["blur"] }));
    await page.keyboard.press("Space");
    await untilShown(page, hashOf(START));
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("input, button, progress, [role=region]")]
        .filter((one) => !(one.labels?.length || one.ariaLabel || one.textContent.trim()))
        .map((one) => one.outerHTML),
    );
    assert.deepEqual(nameless, []);
  },

  async "the program that is shown prints the digest that is shown"() {
    await page.locator("[data-copies=code]").click();
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
    const digest = await text(page, "digest");
    for (const [id, wrong, said] of [
      ["batch", "0", /Batch size must be a whole number from 1 to 128/],
      ["batch", "1000", /from 1 to 128/],
      ["batch", "2.5", /from 1 to 128/],
      ["seed", "-1", /Seed must be a whole number from 0 on, not “-1”/],
      ["seed", "18446744073709551616", /Seed must be at most/],
      ["seed", "", /Seed is empty/],
      ["step", "1e3", /Global step must be a whole number/],
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

  async "a picture becomes data, and its program prints the same digest"() {
    await page.locator(".segments label:has([value=picture])").click();
    assert.match(await text(page, "boot-text"), /Choose a picture/);
    await page.setInputFiles("#file", { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no") });
    await page.waitForFunction(() => /“notes.txt” could not be read/.test(document.querySelector("#problem-text").textContent));
    const name = "it's a page.png";
    const content = png(640, 400, pageOfText);
    writeFileSync(join(scratch, name), content);
    await page.setInputFiles("#file", join(scratch, name));
    await page.waitForFunction(() => /cut into \d+ words/.test(document.querySelector("#picture-said").textContent));
    await page.waitForFunction(() => document.body.dataset.shown.startsWith("#data=picture"));
    for (const sampler of ["sequential", "mixing", "bucketed"]) {
      await page.locator(`.segments label:has([value=${sampler}])`).click();
      await page.waitForFunction((wanted) => document.body.dataset.shown.includes(`sampler=${wanted}&`), sampler);
      assert.equal(python(await text(page, "code")), await text(page, "digest"), sampler);
    }
    const address = new URL(page.url()).hash;
    assert.match(address, /^#data=picture&picture=[0-9a-f]{16}&/);
    // A picture without text, dropped on the page.
    const noise = png(100, 90, (x, y) => [(x * x * 7 + y * 31) & 255, (x * y) & 255, (y * y) & 255, 255]);
    const transfer = await page.evaluateHandle((bytes) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(bytes)], "noise.png", { type: "image/png" }));
      return data;
    }, [...noise]);
    await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
    await page.waitForFunction(() => /“noise.png”, 100 × 90: cut into/.test(document.querySelector("#picture-said").textContent));
    await page.waitForFunction((old) => location.hash !== old && document.body.dataset.shown === location.hash, address);
    writeFileSync(join(scratch, "noise.png"), noise);
    assert.equal(python(await text(page, "code")), await text(page, "digest"));
  },

  async "the proof: every canonical batch is the same, and the page stays alive"() {
    await page.goto(`${server.url}${hashOf(START)}`);
    await untilShown(page, hashOf(START));
    await page.click("#prove");
    await page.waitForSelector("#proof tbody tr.same");
    await page.click("#next");
    await untilShown(page, hashOf({ ...START, step: "1" }));
    assert.ok(await page.locator("#prove").isDisabled(), "the proof ended before a batch could be shown");
    await page.waitForFunction(() => document.querySelector("#verdict").dataset.kind, null, { timeout: LOADING });
    const { configurations } = JSON.parse(
      readFileSync(join(checkout, "onemodel", "data", "canonical.json"), "utf8"),
    );
    const expected = configurations.flatMap(({ digests }) => Object.values(digests));
    assert.equal(await text(page, "verdict"), `All ${expected.length} batches are the same, byte for byte.`);
    const shown = await page.locator("#proof tr.same").evaluateAll((rows) =>
      rows.map((row) => [row.cells[1].textContent, row.cells[2].textContent]),
    );
    assert.deepEqual(shown, expected.map((digest) => [digest, digest]));
    assert.equal(await page.locator("#proof tr.different").count(), 0);
  },

  async "a link shows the same batch on a phone, in the dark, without motion"() {
    const configuration = { ...START, sampler: "bucketed", seed: "1234567890123456789", step: LARGEST, augment: ["gain", "noise"] };
    const phone = await openPage(hashOf(configuration), {
      viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true,
      colorScheme: "dark", reducedMotion: "reduce",
    });
    await untilShown(phone, hashOf(configuration), LOADING);
    assert.equal(await text(phone, "digest"), native([configuration])[0]);
    await phone.tap("#prove");
    await phone.waitForFunction(() => document.querySelector("#verdict").dataset.kind, null, { timeout: LOADING });
    await phone.tap("#rows summary");
    const seen = await phone.evaluate(() => ({
      wide: [...document.querySelectorAll("body *")]
        .filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest(".scroll, .visually-hidden"))
        .map((one) => one.outerHTML.slice(0, 100)),
      scroll: document.documentElement.scrollWidth,
      background: getComputedStyle(document.body).backgroundColor,
      motion: getComputedStyle(document.querySelector("#next")).transitionDuration,
    }));
    assert.deepEqual(seen.wide, []);
    assert.ok(seen.scroll <= 360, `${seen.scroll} pixels wide`);
    assert.equal(seen.background, "rgb(20, 23, 26)");
    assert.equal(seen.motion, "0s");
    await phone.context().close();
  },

  async "what is missing or wrong is said in plain words, and can be tried again"() {
    const wheel = "**/vendor/onemodel-*.whl";
    const failure = async (hash, before) => {
      const broken = await openPage(hash, { failing: true, prepare: before });
      await broken.waitForFunction(() => document.body.dataset.state === "failed", null, { timeout: LOADING });
      return broken;
    };
    const missing = await failure("", (one) => one.context().route(wheel, (route) => route.fulfill({ status: 404 })));
    assert.match(await text(missing, "problem-text"), /onemodel-.*\.whl is missing .*prepare\.mjs/);
    await missing.context().unroute(wheel);
    await missing.click("#again");
    await untilShown(missing, hashOf(START), LOADING);
    assert.equal(await missing.locator("#problem").isVisible(), false);
    await missing.goto(`${server.url}#data=picture&picture=0123456789abcdef&seed=5`);
    await missing.waitForFunction(() => /Choose the same file/.test(document.querySelector("#boot-text").textContent));
    assert.match(missing.url(), /picture=0123456789abcdef/);
    await missing.context().close();

    const changed = await failure("", (one) =>
      one.context().route(wheel, (route) => route.fulfill({ body: "another wheel" })),
    );
    assert.match(await text(changed, "problem-text"), /not the file that this page was made for/);
    await changed.context().close();

    const bare = await failure("", (one) =>
      one.context().route("**/worker.js", (route) => route.fulfill({ status: 404 })),
    );
    assert.match(await text(bare, "problem-text"), /could not be started/);
    await bare.context().close();

    // One step of each configuration comes out wrong.
    const loop = "for result in verify.results():";
    const wrong = `for result in (type(r)(r.configuration, r.step, r.expected, r.found[::-1] if r.step == 1 else r.found) for r in verify.results()):`;
    const differing = await openPage("", {
      failing: true,
      prepare: (one) =>
        one.context().route("**/demo.py", async (route) => {
          const body = await (await route.fetch()).text();
          assert.ok(body.includes(loop));
          return route.fulfill({ body: body.replace(loop, wrong) });
        }),
    });
    await untilShown(differing, hashOf(START), LOADING);
    await differing.click("#prove");
    await differing.waitForSelector("#verdict[data-kind=bad]", { timeout: LOADING });
    const count = await differing.locator("#proof tr.different").count();
    assert.ok(count > 0);
    assert.match(await text(differing, "verdict"), new RegExp(`^${count} of \\d+ batches differ\\.$`));
    await differing.context().close();

    const unprepared = await failure("", (one) =>
      one.context().route("**/vendor/wheels.json", (route) => route.fulfill({ status: 404 })),
    );
    assert.match(await text(unprepared, "problem-text"), /could not be found \(wheels\.json\)/);
    await unprepared.context().close();
  },
};

async function takeScreenshots() {
  const folder = join(checkout, "docs", "images");
  mkdirSync(folder, { recursive: true });
  const proved = (one) =>
    one.waitForFunction(() => document.querySelector("#verdict").dataset.kind, null, { timeout: LOADING });
  for (const [name, configuration, options] of [
    ["light", { ...START, step: "1000", augment: ["gain"] }, {}],
    ["dark", { ...START, sampler: "bucketed", seed: "7", step: LARGEST, augment: ["gain", "blur"] }, { colorScheme: "dark" }],
    ["phone", { ...START, sampler: "mixing", step: "31337" }, { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2 }],
  ]) {
    const one = await openPage(hashOf(configuration), options);
    await untilShown(one, hashOf(configuration), LOADING);
    const save = (part) => one.screenshot({ path: join(folder, `demo-${part}.png`) });
    if (name === "phone") await one.evaluate(() => document.querySelector("#stage").scrollIntoView());
    await save(name);
    if (name === "light") {
      await one.click("#prove");
      await proved(one);
      await one.locator("#proof").screenshot({ path: join(folder, "demo-proof.png") });
    }
    await one.context().close();
  }
}

let failed = 0;
try {
  for (const [name, test] of Object.entries(tests)) {
    const started = performance.now();
    try {
      await test();
      console.log(`ok      ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}`);
      console.error(String(error?.stack ?? error).slice(0, 4000));
    }
  }
  if (process.argv.includes("--screenshots")) await takeScreenshots();
} catch (error) {
  exitOnError(error);
} finally {
  await browser.close();
  await server.close();
  rmSync(scratch, { recursive: true, force: true });
}
for (const complaint of new Set(complaints)) {
  failed += 1;
  console.error(`the browser says: ${complaint.slice(0, 2000)}`);
}
console.log(`${Object.keys(tests).length} tests, ${failed} failures; Chromium, page on loopback`);
process.exit(failed === 0 ? 0 : 1);
