// Drives the demo page with mouse and keyboard, without a window, and compares every digest that
// it shows with one that the machine's own Python makes.
//
//     node wasm/test-demo.mjs [--browser firefox] [WORD...]    needs `make wasm` to have been run
//
// Of the tests, those whose names hold one of the words are run; without words, all. PYTHON names
// the interpreter with the native onemodel and Pillow (default: python3), CHROMIUM and FIREFOX the
// browsers (default: the machine's). Firefox runs what WebDriver can do.

import batches from "./demo-tests/batches.mjs";
import failures from "./demo-tests/failures.mjs";
import { browser, browserName, close, complaints } from "./demo-tests/harness.mjs";
import opening from "./demo-tests/opening.mjs";
import pictures from "./demo-tests/pictures.mjs";
import published from "./demo-tests/published.mjs";
import reach from "./demo-tests/reach.mjs";
import sharing from "./demo-tests/sharing.mjs";
import { exitOnError } from "./lib/errors.mjs";

// What needs emulated phones and colours, a clipboard, downloads or replies in the server's place.
const ONLY_CHROMIUM = /axe|phone|clipboard|copied|policy|lacks|missing|another format|published|offline|10 Mbit/;

const words = process.argv.slice(2).filter((word, place, all) => !word.startsWith("--") && all[place - 1] !== "--browser");
const wanted = Object.entries({ ...opening, ...batches, ...sharing, ...reach, ...pictures, ...published, ...failures })
  .filter(([name]) => words.length === 0 || words.some((word) => name.includes(word)))
  .filter(([name]) => browserName === "chromium" || !ONLY_CHROMIUM.test(name));

let failed = 0;
try {
  for (const [name, test] of wanted) {
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
} catch (error) {
  exitOnError(error);
} finally {
  await close();
}
for (const complaint of complaints) {
  failed += 1;
  console.error(`the browser says: ${complaint.slice(0, 2000)}`);
}
console.log(`${wanted.length} tests, ${failed} failures; ${browserName} ${browser.version()}, page on loopback`);
process.exit(failed === 0 ? 0 : 1);
