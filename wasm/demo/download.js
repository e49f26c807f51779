// One file over the network: fetched, unpacked where it was served packed, and checked. Each
// failure is told by its cause.

// A mistake that is told to the visitor as it is written here.
export class Plain extends Error {}

const nameOf = (address) => new URL(address).pathname.split("/").pop();

// Return the response to a request for a part of this page.
export async function fetchPart(address) {
  const name = nameOf(address);
  let response;
  try {
    response = await fetch(address);
  } catch {
    throw lost(name);
  }
  if (response.ok) return response;
  if (response.status === 404) {
    throw new Plain(
      `${name} is missing on this server. Whoever runs it: publish the page’s whole folder ` +
        "(make page), or run “node wasm/demo/prepare.mjs”.",
    );
  }
  throw new Plain(`The server did not hand over ${name}: it answered ${response.status}.`);
}

const lost = (name) =>
  new Plain(
    navigator.onLine === false
      ? `There is no connection: ${name} could not be loaded.`
      : `The connection was lost while ${name} was loading: the server no longer answers, or ` +
          "something on the way blocks it.",
  );

// Return the bytes of file = { name, address, sha256 }; count(bytes) hears what travels.
export async function download(file, count) {
  const response = await fetchPart(file.address);
  const parts = [];
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw lost(file.name);
    });
    if (done) break;
    parts.push(value);
    count(value.length);
  }
  const bytes = await unpacked(new Blob(parts)).catch(() => null);
  if (!bytes || (await sha256(bytes)) !== file.sha256) {
    throw new Plain(
      `${file.name} is not the file that this page was made for: its SHA-256 differs. ` +
        "Reload the page without its cache; if that does not help, it has to be published anew.",
    );
  }
  return bytes;
}

// Files are served packed by gzip. A server may declare that, and then the browser has unpacked
// them already.
async function unpacked(blob) {
  const [first, second] = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  if (first !== 0x1f || second !== 0x8b) return new Uint8Array(await blob.arrayBuffer());
  const stream = blob.stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The smallest module with a vector in it.
const VECTORS = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253,
  15, 253, 98, 11,
);

// Throw a Plain that says what this browser lacks, or what a policy forbids.
export async function assertCapable() {
  if (!globalThis.crypto?.subtle) {
    throw new Plain(
      "This page checks its files before it runs them, and browsers allow that only over " +
        "https or on this machine itself (localhost).",
    );
  }
  if (typeof WebAssembly !== "object") {
    throw new Plain("This browser has no WebAssembly, which Python needs to run in it.");
  }
  if (!WebAssembly.validate(VECTORS)) {
    throw new Plain(
      "This browser’s WebAssembly has no vectors (SIMD), which onemodel is compiled for. " +
        "Browsers have them since 2021 to 2023: Chrome 91, Firefox 89, Safari 16.4.",
    );
  }
  if (typeof DecompressionStream !== "function") {
    throw new Plain(
      "This browser cannot unpack compressed files (DecompressionStream). Newer ones can: " +
        "Chrome 80, Firefox 113, Safari 16.4.",
    );
  }
  try {
    await WebAssembly.compile(VECTORS);
  } catch {
    throw new Plain(
      "A content policy of this server forbids WebAssembly: its Content-Security-Policy lacks " +
        "'wasm-unsafe-eval'.",
    );
  }
}
