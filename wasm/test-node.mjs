// Runs the project's own test suite, the folder tests/, in Pyodide under Node.
//
//     node wasm/test-node.mjs [pytest's arguments]
//
// The process exits with pytest's code, and pytest's summary is the last line printed.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { copyFolder, startPyodide } from "./lib/node-pyodide.mjs";
import { checkout, numpyWheel, onemodelWheel, testWheels } from "./lib/paths.mjs";

const pyodide = await startPyodide({
  wheels: [numpyWheel(), ...testWheels(), onemodelWheel()],
});

// The package itself stays out, so that only the wheel can be imported.
copyFolder(pyodide, join(checkout, "tests"), "/checkout/tests");
pyodide.FS.writeFile(
  "/checkout/pyproject.toml",
  readFileSync(join(checkout, "pyproject.toml")),
);
pyodide.FS.chdir("/checkout");

const run = pyodide.runPython(`
def run(arguments):
    import sys
    import pytest

    # faulthandler needs signals, and the cache has nowhere to stay.
    return int(pytest.main(["-p", "no:cacheprovider", "-p", "no:faulthandler", *arguments]))

run
`);
const code = run(pyodide.toPy(process.argv.slice(2)));
process.exit(code);
