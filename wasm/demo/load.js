// Downloads every file that Python needs, counts the bytes, checks each against its SHA-256, and
// starts Pyodide from the very bytes that were checked. Python starts while its packages arrive.

import { assertCapable, download, fetchPart, Plain } from "./download.js";

const MODULES = ["picture_lines.py", "demo.py"];

// What is to be loaded: Pyodide's files, pinned in the repository, and the wheels, hashed when
// they were copied here. Both are listed with the number of bytes that travel.
async function listFiles(root) {
  const [pins, vendor] = await Promise.all(
    ["pins.json", "vendor/files.json"].map(async (name) =>
      (await fetchPart(new URL(name, root))).json(),
    ),
  );
  const pinned = new Map(pins.pyodide.files.map((file) => [file.name, file.sha256]));
  return vendor.files.map((file) => ({
    ...file,
    sha256: pinned.get(file.name) ?? file.sha256,
    ofPyodide: pinned.has(file.name),
    address: new URL(`vendor/${file.served}`, root),
  }));
}

// Return Pyodide with the packages in it; tell(loaded, total, stage) hears how far it is.
export async function load(root, tell) {
  await assertCapable();
  const files = await listFiles(root);
  const total = files.reduce((sum, file) => sum + file.travels, 0);
  let loaded = 0;
  let stage = "download";
  const count = (bytes) => tell((loaded += bytes), total, stage);
  const get = async (file) => [file.name, await download(file, count)];
  const modules = Promise.all(
    MODULES.map(async (name) => [name, await (await fetchPart(new URL(`python/${name}`, root))).text()]),
  );
  modules.catch(() => {}); // what fails is heard where it is awaited, below
  const contents = new Map(await Promise.all(files.filter((file) => file.ofPyodide).map(get)));
  // Only now, so that on a slow line Python starts early.
  const wheels = Promise.all(files.filter((file) => !file.ofPyodide).map(get));
  wheels.catch(() => {});
  stage = "start";
  tell(loaded, total, stage);
  const pyodide = await start(contents);
  for (const [, bytes] of await wheels) pyodide.unpackArchive(bytes, "wheel");
  tell(total, total, "import");
  for (const [name, text] of await modules) pyodide.FS.writeFile(`/home/pyodide/${name}`, text);
  return pyodide;
}

// Pyodide wants a folder to load from. It is given the checked bytes instead: its modules and
// its library from addresses in memory, and its WebAssembly through a fetch that knows it.
async function start(contents) {
  const inMemory = (name, type) => URL.createObjectURL(new Blob([contents.get(name)], { type }));
  const modules = ["pyodide.mjs", "pyodide.asm.mjs"].map(
    (name) => import(inMemory(name, "text/javascript")),
  );
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all(modules).catch(
    () => {
      throw new Plain(
        "This browser was not allowed to run Python’s own scripts: a content policy of this " +
          "server, or an extension, blocks them.",
      );
    },
  );
  const ordinaryFetch = globalThis.fetch;
  globalThis.fetch = (address, options) =>
    new URL(address.url ?? address, self.location).pathname.endsWith("/pyodide.asm.wasm")
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
