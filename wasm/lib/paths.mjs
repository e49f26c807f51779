// Where the scripts find what toolchain.sh and build.sh made. The shell's side of the
// same rules is toolchain/common.sh.

import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const wasmFolder = dirname(dirname(fileURLToPath(import.meta.url)));
export const checkout = dirname(wasmFolder);

const cache =
  process.env.ONEMODEL_WASM_CACHE ||
  join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "onemodel-wasm");

export const nodeModules = join(cache, "node", "node_modules");
export const pyodideFolder = join(nodeModules, "pyodide");

function wheelsIn(folder, prefix, remedy) {
  const names = existsSync(folder)
    ? readdirSync(folder).filter((name) => name.startsWith(prefix) && name.endsWith(".whl"))
    : [];
  if (names.length === 0) {
    throw new Error(`there is no ${prefix || "test"} wheel in ${folder}: run ${remedy} first`);
  }
  return names.sort().map((name) => join(folder, name));
}

export const numpyWheel = () => wheelsIn(join(cache, "wheels"), "numpy-", "make wasm")[0];
export const testWheels = () => wheelsIn(join(cache, "test-wheels"), "", "make wasm");
export const onemodelWheel = () => wheelsIn(join(wasmFolder, "dist"), "onemodel-", "make wasm")[0];
