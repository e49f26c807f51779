// The promise in a real browser: Chromium loads a page that runs onemodel's wheel in a
// worker, recomputes hundreds of batches, and every digest must be the native one.
//
//     node wasm/test-browser.mjs
//
// PYTHON names the interpreter with the native onemodel (default: python3), and CHROMIUM
// the browser (default: the machine's).

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { launch } from "./lib/browsers.mjs";
import { exitOnError } from "./lib/errors.mjs";
import { numpyWheel, onemodelWheel, pyodideFolder, wasmFolder } from "./lib/paths.mjs";
import { serve } from "./lib/server.mjs";

const FEWEST_BATCHES = 200;
const LIMIT_SECONDS = 300;

function nativeReport() {
  const script = join(wasmFolder, "native_digests.py");
  const output = execFileSync(process.env.PYTHON || "python3", [script], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 1 << 26,
  });
  return JSON.parse(output);
}

async function browserReport() {
  const server = await serve({
    "/": join(wasmFolder, "browser"),
    "/pyodide/": pyodideFolder,
    "/numpy.whl": numpyWheel(),
    "/onemodel.whl": onemodelWheel(),
  });
  const browser = await launch("chromium");
  try {
    const page = await browser.newPage();
    const complaints = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(server.url);
    const limit = new Promise((_, reject) => {
      const stop = () => reject(new Error(`the page gave no result in ${LIMIT_SECONDS} s`));
      setTimeout(stop, LIMIT_SECONDS * 1000).unref();
    });
    const report = await Promise.race([page.evaluate(() => window.runInWorker()), limit]);
    return { ...report, complaints, browser: browser.version() };
  } finally {
    await browser.close();
    await server.close();
  }
}

// Compare two reports; return how many batches were the same, and what differs.
function compare(native, found) {
  const differences = [];
  let same = 0;
  for (const name of new Set([...Object.keys(native.digests), ...Object.keys(found.digests)])) {
    const expected = native.digests[name] ?? {};
    const actual = found.digests[name] ?? {};
    for (const step of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      if (expected[step] !== undefined && expected[step] === actual[step]) same += 1;
      else {
        differences.push(`${name}, step ${step}: natively ${expected[step]}, there ${actual[step]}`);
      }
    }
  }
  for (const [where, report] of [["natively", native], ["there", found]]) {
    for (const { case: name, step, same: isSame } of report.verify) {
      if (!isSame) differences.push(`onemodel verify ${where}: ${name}, step ${step} differs`);
    }
    const { batches, beats, right } = report.heartbeat;
    if (!right || beats < batches) {
      differences.push(`async for ${where}: ${batches} batches, ${beats} turns of the event loop`);
    }
    if (report.verify.length === 0) differences.push(`onemodel verify ${where} checked nothing`);
  }
  // A page has no threads: workers are asked for, and quietly not had.
  if (found.workers !== 0) differences.push(`the page's loader has ${found.workers} workers`);
  return { same, differences };
}

try {
  const native = nativeReport();
  const found = await browserReport();
  const { same, differences } = compare(native, found);

  console.log(`native:  ${native.platform}`);
  console.log(`browser: ${found.platform}, Chromium ${found.browser}`);
  console.log(`browser: Pyodide, NumPy and the wheel loaded in ${found.loadSeconds.toFixed(1)} s`);
  console.log(`onemodel verify: ${found.verify.length} canonical batches`);
  for (const text of found.complaints) differences.push(`the browser says: ${text}`);
  if (same < FEWEST_BATCHES) differences.push(`only ${same} batches were compared`);
  for (const difference of differences) console.error(difference);
  // The verify table counts as well: each of its batches was compared with a digest.
  const checked = same + found.verify.filter((result) => result.same).length;
  console.log(`${checked} passed, ${differences.length} failed`);
  process.exit(differences.length === 0 ? 0 : 1);
} catch (error) {
  exitOnError(error);
}
