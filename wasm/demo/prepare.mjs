// Puts what the page loads into wasm/demo/vendor/: Pyodide's files, the NumPy wheel without what
// no page uses, and the onemodel wheel, each packed by gzip. Then wasm/demo is a plain folder that
// any web server can serve.
//
//     node wasm/demo/prepare.mjs          needs `make wasm` to have been run
//     node wasm/demo/prepare.mjs --pin    writes pins.json anew, after a change of Pyodide
//
// Pyodide's files must have the SHA-256 that pins.json has. The wheels are made locally, so
// they have no fixed one: theirs is noted in vendor/files.json. The page checks both, of the
// unpacked files. PYTHON names an interpreter (default: python3).

import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { exitOnError } from "../lib/errors.mjs";
import { numpyWheel, onemodelWheel, pyodideFolder } from "../lib/paths.mjs";

const folder = fileURLToPath(new URL(".", import.meta.url));
const pinsFile = join(folder, "pins.json");
const FILES = [
  "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json",
];

const sha256 = (content) => createHash("sha256").update(content).digest("hex");

function described(path) {
  const content = readFileSync(path);
  return { name: basename(path), bytes: content.length, sha256: sha256(content) };
}

const asJson = (value) => `${JSON.stringify(value, null, 2)}\n`;

function pin() {
  const { version } = JSON.parse(readFileSync(join(pyodideFolder, "package.json"), "utf8"));
  const files = FILES.map((name) => described(join(pyodideFolder, name)));
  writeFileSync(pinsFile, asJson({ pyodide: { version, files } }));
  console.log(`pinned Pyodide ${version}`);
}

// Put everything into `vendor`, a folder that is made anew; return what is in it.
export function prepare(vendor = join(folder, "vendor")) {
  const { pyodide } = JSON.parse(readFileSync(pinsFile, "utf8"));
  rmSync(vendor, { recursive: true, force: true });
  mkdirSync(vendor, { recursive: true });
  const files = [];
  const add = (name, content) => {
    const packed = gzipSync(content, { level: 9 });
    const served = `${name}.gz`;
    writeFileSync(join(vendor, served), packed);
    files.push({ name, served, travels: packed.length, sha256: sha256(content) });
  };
  for (const pinned of pyodide.files) {
    const content = readFileSync(join(pyodideFolder, pinned.name));
    if (sha256(content) !== pinned.sha256) {
      throw new Error(
        `${pinned.name} of ${pyodideFolder} is not the file of Pyodide ${pyodide.version} that ` +
          "pins.json names: install that version (make wasm), or look at the change and pin it " +
          "with --pin",
      );
    }
    add(pinned.name, content);
  }
  add(basename(numpyWheel()), trimmed(numpyWheel(), vendor));
  add(basename(onemodelWheel()), readFileSync(onemodelWheel()));
  writeFileSync(join(vendor, "files.json"), asJson({ files }));
  return files;
}

function trimmed(wheel, vendor) {
  const output = join(vendor, "trimmed.whl");
  execFileSync(process.env.PYTHON || "python3", [join(folder, "trim_wheel.py"), wheel, output]);
  const content = readFileSync(output);
  rmSync(output);
  return content;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    if (process.argv.includes("--pin")) pin();
    for (const { served, travels } of prepare()) {
      console.log(`${(travels / 1000).toFixed(1).padStart(9)} kB  ${served}`);
    }
    console.log("Ready: serve wasm/demo, for example with python3 -m http.server -d wasm/demo");
  } catch (error) {
    exitOnError(error);
  }
}
