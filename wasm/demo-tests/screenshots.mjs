// Writes the pictures of the page that the documentation and previews of links show.
//
//     node wasm/demo-tests/screenshots.mjs       needs `make wasm` to have been run

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { exitOnError } from "../lib/errors.mjs";
import { checkout } from "../lib/paths.mjs";
import { browser, close, demo, openPage, untilProved } from "./harness.mjs";

try {
  const images = join(checkout, "docs", "images");
  mkdirSync(images, { recursive: true });
  for (const [path, viewport] of [
    [join(images, "demo.png"), { width: 1280, height: 920 }],
    [join(demo, "preview.png"), { width: 1200, height: 630 }],
  ]) {
    const page = await openPage("", { viewport });
    await untilProved(page);
    await page.screenshot({ path });
    await page.context().close();
    console.log(`${path}, ${browser.browserType().name()}`);
  }
} catch (error) {
  exitOnError(error);
} finally {
  await close();
}
