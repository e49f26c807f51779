// What the tests of the demo page share: its server, its browser, pages in it, and the digests
// that the machine's own Python makes.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { prepare } from "../demo/prepare.mjs";
import { launch } from "../lib/browsers.mjs";
import { wasmFolder } from "../lib/paths.mjs";
import { serve } from "../lib/server.mjs";

export const LARGEST = String(2n ** 64n - 1n);
export const LOADING = 120_000; // milliseconds, on a busy machine
export const BUILDING = 30_000;

const flag = process.argv.indexOf("--browser");
export const browserName = flag > 0 ? process.argv[flag + 1] : "chromium";
export const demo = join(wasmFolder, "demo");
export const complaints = new Set();

export const scratch = mkdtempSync(join(tmpdir(), "onemodel-demo-"));
prepare(join(scratch, "vendor"));
export const server = await serve({ "/": demo, "/vendor/": join(scratch, "vendor") });
export const browser = await launch(browserName);

export async function close() {
  await browser.close();
  await server.close();
  rmSync(scratch, { recursive: true, force: true });
}

// The machine's own Python

export function python(code, input = "") {
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
export const native = (configurations) =>
  JSON.parse(python(NATIVE, JSON.stringify(configurations)));

// Pages

// Firefox is driven by the WebDriver standard, which can do less.
const emulated = browserName === "chromium";

// A page of its own, with its errors noted unless they are the test's purpose.
export async function openPage(hash = "", { failing = false, prepare: before, url = server.url, ...options } = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    ...(emulated ? { permissions: ["clipboard-read", "clipboard-write"] } : {}),
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(BUILDING);
  if (!failing) {
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.add(message.text());
    });
    page.on("pageerror", (error) => complaints.add(error.message));
  }
  page.on("request", (request) => {
    const address = request.url();
    if (!address.startsWith(url) && !/^(blob|data):/.test(address)) {
      complaints.add(`the page asked for ${address}`);
    }
  });
  await before?.(page);
  await page.goto(`${url}${hash}`);
  return page;
}

export const untilShown = (page, hash, timeout = BUILDING) =>
  page.waitForFunction((wanted) => document.body.dataset.shown === wanted, hash, { timeout });

export const untilProved = (page) =>
  page.waitForFunction(() => document.querySelector("#verdict").dataset.kind, null, { timeout: LOADING });

export const text = (page, id) => page.locator(`#${id}`).textContent();

export const isOff = async (page, id) =>
  (await page.getAttribute(`#${id}`, "aria-disabled")) === "true";

export async function digestAt(page, hash) {
  await untilShown(page, hash);
  return text(page, "digest");
}

export const hashOf = ({ sampler, batch, seed, step, augment }) =>
  `#data=digits&sampler=${sampler}&batch=${batch}&seed=${seed}` +
  `${augment.length ? `&augment=${augment.join(",")}` : ""}&g=${step}`;

export const START = { sampler: "shuffled", batch: 12, seed: "42", step: "0", augment: [] };

let shared; // the page that most tests use, opened once
let visits = 0;

export async function sharedPage() {
  if (!shared) {
    shared = await openPage();
    await untilProved(shared);
  }
  // Only the hash changes, and it always does.
  visits += 1;
  await shared.goto(`${server.url}${hashOf(START)}&visit=${visits}`);
  await untilShown(shared, hashOf(START), LOADING);
  return shared;
}
