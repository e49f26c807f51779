// Prints the kernels' rates natively and in WebAssembly, measured in one run.
//
//     node benchmarks/wasm.mjs
//
// Both sides run wasm/kernel_rates.py on one thread, in turns, and the best of each counts:
// what disturbs the machine disturbs both. PYTHON names the interpreter that has the native
// onemodel (default: python3). `make wasm` has to have been run.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startPyodide } from "../wasm/lib/node-pyodide.mjs";
import { numpyWheel, onemodelWheel, wasmFolder } from "../wasm/lib/paths.mjs";

const TURNS = 3;
const script = join(wasmFolder, "kernel_rates.py");

const pyodide = await startPyodide({ wheels: [numpyWheel(), onemodelWheel()] });
pyodide.FS.writeFile("/home/pyodide/kernel_rates.py", readFileSync(script));

const sides = {
  native: () =>
    execFileSync(process.env.PYTHON || "python3", [script], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    }),
  wasm: () => pyodide.runPython("import kernel_rates; kernel_rates.measure_as_json()"),
};

const best = { native: {}, wasm: {} };
for (let turn = 0; turn < TURNS; turn += 1) {
  for (const [side, measure] of Object.entries(sides)) {
    for (const [kernel, rate] of Object.entries(JSON.parse(measure()))) {
      best[side][kernel] = Math.max(best[side][kernel] ?? 0, rate);
    }
  }
}

const millions = (rate) => (rate / 1e6).toFixed(1).padStart(10);
console.log("kernel                          native M/s   wasm M/s   ratio");
for (const [kernel, native] of Object.entries(best.native)) {
  const wasm = best.wasm[kernel];
  const ratio = (wasm / native).toFixed(2).padStart(7);
  console.log(`${kernel.padEnd(32)}${millions(native)} ${millions(wasm)} ${ratio}`);
}
