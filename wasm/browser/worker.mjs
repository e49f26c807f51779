// Loads Pyodide, NumPy and onemodel's wheel, runs `onemodel verify`'s function, and
// recomputes every digest of cases.py. Answers with plain data.

import { loadPyodide } from "/pyodide/pyodide.mjs";

async function bytes(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: HTTP ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function run() {
  const started = performance.now();
  const pyodide = await loadPyodide({ indexURL: "/pyodide/" });
  const extractDir = pyodide.runPython("import site; site.getsitepackages()[0]");
  for (const wheel of ["/numpy.whl", "/onemodel.whl"]) {
    pyodide.unpackArchive(await bytes(wheel), "wheel", { extractDir });
  }
  pyodide.FS.writeFile("/home/pyodide/cases.py", await bytes("/cases.py"));
  const loaded = performance.now();
  const result = JSON.parse(
    await pyodide.runPythonAsync("import cases; await cases.report_as_json()"),
  );
  return { ...result, loadSeconds: (loaded - started) / 1000 };
}

self.onmessage = async () => {
  try {
    self.postMessage({ result: await run() });
  } catch (error) {
    self.postMessage({ error: String(error?.message ?? error).slice(0, 20_000) });
  }
};
