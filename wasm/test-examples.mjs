// Runs the examples for notebooks and pages, and compares their digests with the native one.
//
//     node wasm/test-examples.mjs       needs `make wasm` to have been run
//
// The notebook's cells run in Pyodide under Node, in order, with the wheels installed before; the
// PyScript page runs in headless Chromium. PYTHON names the interpreter with the native onemodel.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./lib/browsers.mjs";
import { exitOnError } from "./lib/errors.mjs";
import { startPyodide } from "./lib/node-pyodide.mjs";
import { checkout, nodeModules, numpyWheel, onemodelWheel, pyodideFolder } from "./lib/paths.mjs";
import { serve } from "./lib/server.mjs";

const examples = join(checkout, "examples", "browser");
const LIMIT = 240_000; // milliseconds, on a busy machine

const native = execFileSync(
  process.env.PYTHON || "python3",
  ["-c", `
import onemodel as om
lines = om.datasets.DigitLines(2000, seed=0)
sampler = om.BucketedSampler(lines.widths, 12)
collate = om.ImageBatchCollator(width_multiple=8)
print(om.digest(om.DataLoader(lines, sampler=sampler, collate=collate, seed=42)[31337]))
`],
  { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] },
).trim();

// The values of a notebook's code cells; its line magics install what is there already.
async function runNotebook() {
  const { cells } = JSON.parse(readFileSync(join(examples, "onemodel.ipynb"), "utf8"));
  const pyodide = await startPyodide({ wheels: [numpyWheel(), onemodelWheel()] });
  const codes = cells.filter((cell) => cell.cell_type === "code").map((cell) => cell.source.join(""));
  assert.ok(codes.some((code) => code === "%pip install onemodel"), "the notebook installs nothing");
  return codes
    .filter((code) => !code.startsWith("%"))
    .map((code) => String(pyodide.runPython(code)));
}

async function runPyScript() {
  const server = await serve({
    "/": examples,
    "/pyscript/": join(nodeModules, "@pyscript", "core", "dist"),
    "/pyodide/": pyodideFolder,
    "/wheels/numpy.whl": numpyWheel(),
    "/wheels/onemodel.whl": onemodelWheel(),
  });
  const browser = await launch("chromium");
  const complaints = [];
  try {
    const page = await browser.newPage();
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => {
      const address = request.url();
      if (!address.startsWith(server.url) && !/^(blob|data):/.test(address)) complaints.push(`asked for ${address}`);
    });
    await page.goto(`${server.url}pyscript.html`);
    const found = page.waitForFunction(
      () => /^[0-9a-f]{64}$/.test(document.querySelector("#digest").textContent), null, { timeout: LIMIT },
    );
    await found.catch((error) => {
      throw new Error(`PyScript gave no digest: ${complaints.join("; ") || error.message}`);
    });
    assert.deepEqual(complaints, []);
    return await page.locator("#digest").textContent();
  } finally {
    await browser.close();
    await server.close();
  }
}

try {
  const values = await runNotebook();
  assert.ok(values.includes(native), `the notebook gave ${values}, natively ${native}`);
  console.log("ok      the notebook for JupyterLite");
  assert.equal(await runPyScript(), native);
  console.log("ok      the page for PyScript");
  process.exit(0);
} catch (error) {
  exitOnError(error);
}
