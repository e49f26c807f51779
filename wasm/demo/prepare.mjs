// Copies what the page loads into wasm/demo/vendor/: Pyodide's files, the NumPy wheel and the
// onemodel wheel. Then wasm/demo is a plain folder that any web server can serve.
//
//     node wasm/demo/prepare.mjs          needs `make wasm` to have been run
//     node wasm/demo/prepare.mjs --pin    writes pins.json anew, after a change of Pyodide
//
// Pyodide's files must have the SHA-256 that pins.json has. The wheels are made locally, so
// they have no fixed one: theirs is noted in vendor/wheels.json. The page checks both.

import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { exitOnError } from "../lib/errors.mjs";
import { numpyWheel, onemodelWheel, pyodideFolder } from "../lib/paths.mjs";

const folder = fileURLToPath(new URL(".", import.meta.url));
const pinsFile = join(folder, "pins.json");
const FILES = [
  "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json",
];

function described(path) {
  const content = readFileSync(path);
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { name: basename(path), bytes: content.length, sha256 };
}

const asJson = (value) => `${JSON.stringify(value, null, 2)}\n`;

function pin() {
  const { version } = JSON.parse(readFileSync(join(pyodideFolder, "package.json"), "utf8"));
  const files = FILES.map((name) => described(join(pyodideFolder, name)));
  writeFileSync(pinsFile, asJson({ pyodide: { version, files } }));
  console.log(`pinned Pyodide ${version}`);
}

// Put everything into `vendor`, a folder that is made anew.
export function prepare(vendor = join(folder, "vendor")) {
  const { pyodide } = JSON.parse(readFileSync(pinsFile, "utf8"));
  rmSync(vendor, { recursive: true, force: true });
  mkdirSync(vendor, { recursive: true });
  for (const pinned of pyodide.files) {
    const source = join(pyodideFolder, pinned.name);
    if (described(source).sha256 !== pinned.sha256) {
      throw new Error(
        `${source} is not the file of Pyodide ${pyodide.version} that pins.json names: install ` +
          "that version (make wasm), or look at the change and pin it with --pin",
      );
    }
    copyFileSync(source, join(vendor, pinned.name));
  }
  const wheels = [numpyWheel(), onemodelWheel()];
  for (const wheel of wheels) copyFileSync(wheel, join(vendor, basename(wheel)));
  const files = wheels.map(described);
  writeFileSync(join(vendor, "wheels.json"), asJson({ files }));
  return [...pyodide.files, ...files];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    if (process.argv.includes("--pin")) pin();
    for (const { name, bytes } of prepare()) {
      console.log(`${(bytes / 1000).toFixed(1).padStart(9)} kB  ${name}`);
    }
    console.log("Ready: serve wasm/demo, for example with python3 -m http.server -d wasm/demo");
  } catch (error) {
    exitOnError(error);
  }
}
