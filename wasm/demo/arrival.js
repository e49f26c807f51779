// What is said to a visitor who came by a link to a batch: which one it is, and whether the
// digest in the link is the one that was made here.

import { element, named } from "./views.js";

let expected = null; // { hash, digest } of the link; the digest may be empty

// state is what the link says, hash the same in its usual form.
export function arrived(state, hash, digest) {
  expected = { hash, digest };
  element("sent").hidden = false;
  element("sent-text").textContent = `You came by a link to a batch: ${named(state)}.`;
}

// The address of this state: that of the link as it came, as long as it is shown.
export const addressOf = (hash) =>
  expected?.hash === hash && expected.digest ? `${hash}&digest=${expected.digest}` : hash;

export function showArrival(hash, said) {
  const here = expected?.hash === hash;
  element("arrival").hidden = !here;
  if (!here) return;
  const same = said.digest.startsWith(expected.digest);
  const [kind, verdict] = !expected.digest
    ? ["", "It was built here, just now."]
    : same
      ? ["good", "It was built here, and its digest is the one in the link: the same bytes."]
      : ["bad", "It was built here, and its digest is not the one in the link."];
  element("arrival").dataset.kind = kind;
  element("arrival-text").textContent = `Someone’s batch, by a link: ${named(said.of)}. ${verdict}`;
}

element("sent-open").addEventListener("click", () => {
  element("stage").scrollIntoView();
  element("stage").focus({ preventScroll: true });
});

element("arrival-compare").addEventListener("click", () => {
  element("other").scrollIntoView({ block: "center" });
  element("other").focus();
});
