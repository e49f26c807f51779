// The page's own address, written late. Browsers refuse many writes in a row (WebKit: more than
// 100 in ten seconds), and what is shown must neither wait for a write nor fail with it.

const QUIET = 300; // milliseconds without a change
const AGAIN = 5000; // after a refusal

export class Address {
  #timer;

  // Write the hash once nothing has changed for a while; a later one takes its place.
  set(hash) {
    this.#after(QUIET, hash);
  }

  #after(wait, hash) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      try {
        history.replaceState(null, "", hash);
      } catch {
        this.#after(AGAIN, hash);
      }
    }, wait);
  }
}
