// Keeps a published page for the next visit, and for when there is no connection. Registered once
// everything has loaded, so that a first visit downloads nothing twice at the same time.

export function keepForLater() {
  if (!document.documentElement.hasAttribute("data-published")) return;
  // Refused in private windows, say: then the page is downloaded again.
  navigator.serviceWorker?.register("service-worker.js").catch(() => {});
}
