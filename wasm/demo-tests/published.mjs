// The published folder works at any path, keeps itself for the next visit, and weighs little.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { publish } from "../demo/publish.mjs";
import { serve } from "../lib/server.mjs";
import { demo, hashOf, LOADING, native, openPage, scratch, START, text, untilProved, untilShown } from "./harness.mjs";

const MOST_BYTES = 10_300_000; // of a first visit: 8.3 seconds at 10 Mbit/s

export default {
  async "a published page lies at any path, and the second visit needs no server"() {
    const folder = join(scratch, "published");
    publish(folder, {
      projectUrl: "https://code.example/onemodel?a&b", pageUrl: "https://page.example/one/", guidesUrl: "../",
    });
    const server = await serve({ "/some/where/": folder });
    const url = `${server.url}some/where/`;
    const page = await openPage("", { url });
    await untilProved(page);
    assert.equal(await page.getAttribute("#project", "href"), "https://code.example/onemodel?a&b");
    assert.equal(await page.getAttribute("#guides", "href"), "../");
    assert.equal(await text(page, "install-line"), "pip install git+https://code.example/onemodel?a&b");
    assert.equal(await page.getAttribute("meta[property='og:image']", "content"), "https://page.example/one/preview.png");
    await page.evaluate(async () => (await navigator.serviceWorker.ready).active.state);
    await server.close();
    const configuration = { ...START, step: "77" };
    await page.goto(`${url}index.html${hashOf(configuration)}`);
    await untilShown(page, hashOf(configuration), LOADING);
    assert.equal(await text(page, "digest"), native([configuration])[0]);
    await page.context().close();
  },

  "a published folder says how to serve it, and is not written over another"() {
    const folder = join(scratch, "plain");
    const first = publish(folder);
    const version = () => readFileSync(join(folder, "service-worker.js"), "utf8").split("\n")[0];
    const before = version();
    assert.match(readFileSync(join(folder, "README.md"), "utf8"), /http\.server/);
    assert.deepEqual(publish(folder), first);
    assert.equal(version(), before, "the same files have the same version");
    for (const name of first) {
      const content = readFileSync(join(folder, name), "utf8");
      if (/\.(html|js|css)$/.test(name)) assert.doesNotMatch(content, /(src|href|from|import)\s*[=(]?\s*["']\//, name);
    }
    writeFileSync(join(scratch, "mine.txt"), "");
    assert.throws(() => publish(scratch), /holds something else/);
  },

  "a first visit downloads little, and of NumPy only what a page can use"() {
    const vendor = join(scratch, "vendor");
    const { files } = JSON.parse(readFileSync(join(vendor, "files.json"), "utf8"));
    const own = readdirSync(demo).filter((name) => /\.(html|css|js|json)$/.test(name));
    const bytes = files.reduce((sum, file) => sum + file.travels, 0) +
      own.reduce((sum, name) => sum + readFileSync(join(demo, name)).length, 0);
    assert.ok(bytes < MOST_BYTES, `${bytes} bytes`);
    const numpy = files.find(({ name }) => name.startsWith("numpy-"));
    const wheel = join(scratch, numpy.name);
    writeFileSync(wheel, gunzipSync(readFileSync(join(vendor, numpy.served))));
    const names = execFileSync(process.env.PYTHON || "python3", ["-m", "zipfile", "-l", wheel], { encoding: "utf8" });
    assert.doesNotMatch(names, /\.pyi |\.h |\.pxd |f2py\/|\/tests\//);
    assert.match(names, /numpy\/_core\/_multiarray_umath/);
  },
};
