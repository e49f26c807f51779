// Writes the demo page as a folder that any static host serves.
//
//     node wasm/demo/publish.mjs FOLDER       needs `make wasm` to have been run
//
// FOLDER is made anew. PROJECT_URL is the address of the project's repository: the page then links
// to it and installs from it. PAGE_URL is where the page will be: previews of links then show its
// picture. GUIDES_URL is where the guides are, relative to the page or whole. All may be left out.

import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { exitOnError } from "../lib/errors.mjs";
import { prepare } from "./prepare.mjs";

const source = fileURLToPath(new URL(".", import.meta.url));
const AS_THEY_ARE = /\.(css|svg|png|js)$|^pins\.json$/;

const README = `# The demo page, ready to serve

Copy this folder to any static host. It needs https (or localhost), and nothing else: addresses are
relative, so it may lie at any path; large files are packed already, and the page unpacks them. To
try it here:

    python3 -m http.server -d .

A service worker stores the page for the next visit and for when there is no connection. If the
host sends a Content-Security-Policy, it has to allow what the page itself does:
script-src 'self' blob: 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' blob:
`;

function replaced(text, from, to) {
  if (!text.includes(from)) throw new Error(`index.html no longer has ${from}`);
  return text.replace(from, to);
}

const attribute = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");

function index({ projectUrl, pageUrl, guidesUrl }) {
  let html = readFileSync(join(source, "index.html"), "utf8");
  html = replaced(html, '<html lang="en">', '<html lang="en" data-published>');
  if (guidesUrl) html = replaced(html, 'id="guides" hidden', `id="guides" href="${attribute(guidesUrl)}"`);
  if (pageUrl) {
    const picture = attribute(new URL("preview.png", pageUrl).href);
    html = replaced(html, 'content="preview.png"', `content="${picture}"`);
  }
  if (projectUrl) {
    const address = attribute(projectUrl);
    html = replaced(html, 'id="project" hidden', `id="project" href="${address}"`);
    html = replaced(html, "pip install .", `pip install git+${address}`);
    html = replaced(html, " from a checkout of the project", "");
  }
  return html;
}

// Everything below a folder, as paths relative to it.
function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(folder.length + 1).replaceAll("\\", "/"))
    .sort();
}

export function publish(folder, addresses = {}) {
  if (existsSync(folder) && !existsSync(join(folder, "service-worker.js")) && readdirSync(folder).length) {
    throw new Error(`${folder} holds something else: name a new folder`);
  }
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "python"), { recursive: true });
  prepare(join(folder, "vendor"));
  const names = readdirSync(source).filter((name) => AS_THEY_ARE.test(name) && name !== "service-worker.js");
  const modules = readdirSync(join(source, "python")).filter((name) => name.endsWith(".py"));
  for (const name of [...names, ...modules.map((name) => `python/${name}`)]) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    copyFileSync(join(source, name), join(folder, name));
  }
  writeFileSync(join(folder, "index.html"), index(addresses));

  const files = filesIn(folder).filter((name) => name !== "preview.png");
  const hash = createHash("sha256");
  for (const name of files) hash.update(name).update(readFileSync(join(folder, name)));
  const stored = files.map((name) => (name === "index.html" ? "./" : name));
  const worker = readFileSync(join(source, "service-worker.js"), "utf8");
  writeFileSync(
    join(folder, "service-worker.js"),
    `const VERSION = "${hash.digest("hex").slice(0, 16)}";\nconst FILES = ${JSON.stringify(stored, null, 2)};\n\n${worker}`,
  );
  writeFileSync(join(folder, "README.md"), README);
  writeFileSync(join(folder, ".nojekyll"), ""); // GitHub Pages serves the folder as it is
  return files;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const [folder] = process.argv.slice(2);
    if (!folder) throw new Error("usage: node wasm/demo/publish.mjs FOLDER");
    const { PROJECT_URL: projectUrl, PAGE_URL: pageUrl, GUIDES_URL: guidesUrl } = process.env;
    const files = publish(folder.replace(/\/$/, ""), { projectUrl, pageUrl, guidesUrl });
    console.log(`${folder}: ${files.length} files. To try it: python3 -m http.server -d ${folder}`);
  } catch (error) {
    exitOnError(error);
  }
}
