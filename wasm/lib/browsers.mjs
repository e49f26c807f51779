// Starts the machine's own Chromium or Firefox, without a window. CHROMIUM and FIREFOX name others.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { nodeModules } from "./paths.mjs";

const { chromium, firefox } = createRequire(join(nodeModules, "/"))("playwright-core");

// Chromium refuses to run as root inside its own sandbox; the pages are this project's own.
// The rest keeps it from looking for a network that may not be there.
const CHROMIUM_ARGUMENTS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-sync", "--no-first-run",
  "--disable-component-update", "--disable-background-networking",
];

const existing = (paths) => paths.find((path) => path && existsSync(path));

const FOUND = {
  chromium: () =>
    existing([process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser",
      "/usr/bin/google-chrome"]),
  firefox: () => existing([process.env.FIREFOX, "/usr/bin/firefox-esr", "/usr/bin/firefox"]),
};

export const hasBrowser = (name) => Boolean(FOUND[name]());

export async function launch(name) {
  const executablePath = FOUND[name]();
  if (!executablePath) {
    throw new Error(`no ${name} was found: install it, or name it in ${name.toUpperCase()}`);
  }
  if (name === "chromium") return chromium.launch({ executablePath, args: CHROMIUM_ARGUMENTS });
  // An ordinary Firefox, through WebDriver BiDi.
  return firefox.launch({ executablePath, channel: "moz-firefox" });
}
