// Answers a published page's requests from a copy that was stored whole. VERSION and FILES are
// written above these lines by publish.mjs. A new version is stored beside the old one, and takes
// its place when no page of the old one is open: parts of two versions never meet.

const PREFIX = `onemodel ${self.registration.scope} `;
const CACHE = PREFIX + VERSION;

self.addEventListener("install", (event) => {
  const store = async () => {
    const cache = await caches.open(CACHE);
    // Asks whether a copy that the browser has is still right; unchanged files do not travel again.
    await cache.addAll(FILES.map((name) => new Request(name, { cache: "no-cache" })));
  };
  event.waitUntil(store());
});

self.addEventListener("activate", (event) => {
  const tidy = async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
    await Promise.all(old.map((name) => caches.delete(name)));
  };
  event.waitUntil(tidy());
});

self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  const { scope } = self.registration;
  if (method !== "GET" || !url.startsWith(scope)) return;
  const name = url.slice(scope.length).replace(/[?#].*$/, "").replace(/^(index\.html)?$/, "./");
  if (!FILES.includes(name)) return;
  const answer = async () => {
    const cache = await caches.open(CACHE);
    return (await cache.match(name)) ?? fetch(event.request);
  };
  event.respondWith(answer());
});
