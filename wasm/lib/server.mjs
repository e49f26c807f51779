// A static file server on the loopback address, for pages that load Pyodide.
//
//     const server = await serve({ "/": folder, "/pyodide/": pyodideFolder, "/x.json": file });
//     server.url; await server.close();
//
// A mount is a folder (its address ends in "/") or a single file. The longest address
// that matches wins. With bytesPerSecond all answers together travel at most that fast, as over a
// slow line.

import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";
import { Transform } from "node:stream";

// Browsers refuse a module of another type, and stream-compile WebAssembly of this one.
const types = {
  ".css": "text/css; charset=utf-8",
  ".gz": "application/gzip",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".mjs": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".py": "text/plain; charset=utf-8",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".whl": "application/zip",
  ".zip": "application/zip",
};

function resolveFile(mounts, pathname) {
  const prefixes = Object.keys(mounts).sort((a, b) => b.length - a.length);
  for (const prefix of prefixes) {
    if (pathname === prefix && !prefix.endsWith("/")) return mounts[prefix];
    if (prefix.endsWith("/") && pathname.startsWith(prefix)) {
      const file = normalize(join(mounts[prefix], pathname.slice(prefix.length) || "index.html"));
      return file.startsWith(normalize(mounts[prefix] + sep)) ? file : undefined;
    }
  }
  return undefined;
}

// Makes streams that share a line: each piece waits until those before it have travelled.
function slowLine(bytesPerSecond) {
  let free = 0; // when the line is free again
  return () =>
    new Transform({
      transform(piece, _, done) {
        const now = performance.now();
        free = Math.max(free, now) + (1000 * piece.length) / bytesPerSecond;
        setTimeout(() => done(null, piece), free - now);
      },
    });
}

export async function serve(mounts, { port = 0, bytesPerSecond = Infinity } = {}) {
  const line = slowLine(bytesPerSecond);
  const server = createServer((request, response) => {
    let file;
    let size;
    try {
      const { pathname } = new URL(request.url, "http://localhost");
      file = resolveFile(mounts, decodeURIComponent(pathname));
      const status = statSync(file);
      if (!status.isFile()) throw new Error("not a file");
      size = status.size;
    } catch {
      response.writeHead(404, { "Content-Type": "text/plain" }).end("not found\n");
      return;
    }
    response.writeHead(200, {
      "Content-Type": types[extname(file)] ?? "application/octet-stream",
      "Content-Length": size,
      "Cache-Control": "no-store",
    });
    if (request.method === "HEAD") response.end();
    else if (bytesPerSecond === Infinity) createReadStream(file).pipe(response);
    else createReadStream(file, { highWaterMark: 16_384 }).pipe(line()).pipe(response);
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(resolve);
      }),
  };
}
