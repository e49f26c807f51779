// An ordinary script, which browsers run where they do not run modules. It says why the page
// does not start: it was opened as a file, or a part of it did not arrive.

(() => {
  const say = (text) => {
    document.getElementById("boot").hidden = false;
    document.getElementById("boot-text").textContent = text;
    document.body.dataset.state = "failed";
  };
  if (location.protocol === "file:") {
    addEventListener("DOMContentLoaded", () =>
      say(
        "This page needs a web server: opened as a file, browsers do not run its modules. In its " +
          "folder, run “python -m http.server” and open the address that it prints.",
      ),
    );
    return;
  }
  addEventListener(
    "error",
    ({ target }) => {
      if (!(target instanceof HTMLScriptElement)) return;
      say(
        navigator.onLine
          ? "A part of this page did not arrive: a script is missing on its server, or an " +
              "extension or a policy of this network blocks it. Reload to try again."
          : "There is no connection: the page’s scripts could not be loaded. Reload to try again.",
      );
    },
    true, // errors of loading do not bubble
  );
})();
