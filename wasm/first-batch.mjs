// Prints how long a first visit to the published page takes until its batch is there, over a line of
// 10 Mbit/s or of as many as are given.
//
//     node wasm/first-batch.mjs [MEGABITS]       needs `make wasm` to have been run

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publish } from "./demo/publish.mjs";
import { launch } from "./lib/browsers.mjs";
import { exitOnError } from "./lib/errors.mjs";
import { serve } from "./lib/server.mjs";

const megabits = Number(process.argv[2] ?? 10);
const scratch = mkdtempSync(join(tmpdir(), "onemodel-page-"));
try {
  publish(join(scratch, "page"));
  const server = await serve({ "/": join(scratch, "page") }, { bytesPerSecond: (megabits * 1e6) / 8 });
  const browser = await launch("chromium");
  const page = await browser.newPage();
  const started = performance.now();
  await page.goto(server.url);
  await page.waitForFunction(() => document.body.dataset.shown, null, { timeout: 300_000 });
  const seconds = (performance.now() - started) / 1000;
  console.log(`first batch after ${seconds.toFixed(1)} s over ${megabits} Mbit/s`);
  await browser.close();
  await server.close();
} catch (error) {
  exitOnError(error);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
