// Pyodide under Node: started, and with wheels unpacked.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import "./errors.mjs"; // keeps uncaught errors short
import { pyodideFolder } from "./paths.mjs";

export async function startPyodide({ wheels, environment = {} }) {
  const { loadPyodide } = await import(pathToFileURL(join(pyodideFolder, "pyodide.mjs")));
  const pyodide = await loadPyodide({
    indexURL: `${pyodideFolder}/`,
    env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1", ...environment },
  });
  const extractDir = pyodide.runPython("import site; site.getsitepackages()[0]");
  for (const wheel of wheels) {
    // A Node Buffer is refused, though it is a Uint8Array too.
    pyodide.unpackArchive(new Uint8Array(readFileSync(wheel)), "wheel", { extractDir });
  }
  return pyodide;
}

// Copy a folder of the machine into Pyodide's own file system. A copy, so that nothing
// that runs inside can write into the checkout.
export function copyFolder(pyodide, source, target) {
  pyodide.FS.mkdirTree(target);
  for (const entry of readdirSync(source, { withFileTypes: true })) {
    if (entry.name.startsWith(".") || entry.name === "__pycache__") continue;
    const from = join(source, entry.name);
    const to = `${target}/${entry.name}`;
    if (entry.isDirectory()) copyFolder(pyodide, from, to);
    else if (entry.isFile()) pyodide.FS.writeFile(to, readFileSync(from));
  }
}
