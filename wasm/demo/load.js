// Downloads every file that Python needs, counts the bytes, checks each against its SHA-256,
// and starts Pyodide from the very bytes that were checked.

// A mistake that is told to the visitor as it is written here.
export class Plain extends Error {}

const PREPARE = "Run “node wasm/demo/prepare.mjs”, which copies them there.";

async function fetchJson(address, what) {
  const response = await fetch(address);
  if (!response.ok) throw new Plain(`${what} could not be found (${nameOf(address)}). ${PREPARE}`);
  return response.json();
}

// What is to be loaded: Pyodide's files, pinned in the repository, and the wheels, hashed
// when they were copied here.
async function listFiles(root) {
  const pins = await fetchJson(new URL("pins.json", root), "The list of Pyodide's files");
  const wheels = await fetchJson(
    new URL("vendor/wheels.json", root),
    "The list of this page's Python packages",
  );
  const all = [...pins.pyodide.files, ...wheels.files];
  return all.map((file) => ({ ...file, address: new URL(`vendor/${file.name}`, root) }));
}

async function download(file, count) {
  let response;
  try {
    response = await fetch(file.address);
  } catch {
    throw new Plain(`${file.name} could not be loaded: the server does not answer.`);
  }
  if (!response.ok) {
    throw new Plain(`${file.name} is missing from wasm/demo/vendor/. ${PREPARE}`);
  }
  const parts = [];
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    count(value.length);
  }
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  if ((await sha256(bytes)) !== file.sha256) {
    throw new Plain(
      `${file.name} is not the file that this page was made for: its SHA-256 differs. ` +
        "Reload the page without its cache; if that does not help, prepare it anew.",
    );
  }
  return bytes;
}

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Return { pyodide, seconds }; tell(loaded, total, stage) hears how far it is.
export async function load(root, tell) {
  if (!globalThis.crypto?.subtle) {
    throw new Plain(
      "This page checks its files before it runs them, and browsers allow that only over " +
        "https or on this machine itself (localhost).",
    );
  }
  if (typeof WebAssembly !== "object") {
    throw new Plain("This browser has no WebAssembly, which Python needs to run in it.");
  }
  const files = await listFiles(root);
  const total = files.reduce((sum, file) => sum + file.bytes, 0);
  let loaded = 0;
  const count = (bytes) => tell((loaded += bytes), total, "download");
  const contents = new Map();
  await Promise.all(
    files.map(async (file) => contents.set(file.name, await download(file, count))),
  );
  tell(total, total, "start");
  const pyodide = await start(contents);
  for (const { name } of files.filter((file) => file.name.endsWith(".whl"))) {
    pyodide.unpackArchive(contents.get(name), "wheel");
  }
  tell(total, total, "import");
  for (const name of ["picture_lines.py", "demo.py"]) {
    const response = await fetch(new URL(`python/${name}`, root));
    if (!response.ok) throw new Plain(`python/${name} is missing from this page's folder.`);
    pyodide.FS.writeFile(`/home/pyodide/${name}`, await response.text());
  }
  return pyodide;
}

// Pyodide wants a folder to load from. It is given the checked bytes instead: its modules and
// its library from addresses in memory, and its WebAssembly through a fetch that knows it.
async function start(contents) {
  const inMemory = (name, type) =>
    URL.createObjectURL(new Blob([contents.get(name)], { type }));
  const script = "text/javascript";
  const { loadPyodide } = await import(inMemory("pyodide.mjs", script));
  const { default: createPyodideModule } = await import(inMemory("pyodide.asm.mjs", script));
  const ordinaryFetch = globalThis.fetch;
  globalThis.fetch = (address, options) =>
    nameOf(address) === "pyodide.asm.wasm"
      ? Promise.resolve(
          new Response(contents.get("pyodide.asm.wasm"), {
            headers: { "Content-Type": "application/wasm" },
          }),
        )
      : ordinaryFetch(address, options);
  try {
    return await loadPyodide({
      indexURL: new URL("vendor/", self.location).href,
      createPyodideModule,
      stdLibURL: inMemory("python_stdlib.zip", "application/zip"),
      lockFileContents: new TextDecoder().decode(contents.get("pyodide-lock.json")),
    });
  } finally {
    globalThis.fetch = ordinaryFetch;
  }
}

function nameOf(address) {
  return new URL(address.url ?? address, self.location).pathname.split("/").pop();
}
