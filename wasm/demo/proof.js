// The canonical batches: a verdict beside the headline, and a table with a body for each
// configuration and a row for each step.

import { element, make } from "./views.js";

export class ProofTable {
  #table = element("proof-shown").querySelector("table");
  #body = null;
  #configuration = null;
  #done = 0;
  #same = 0;

  constructor() {
    for (const body of [...this.#table.tBodies]) body.remove();
    element("proof-shown").hidden = false;
    element("proof-bar").hidden = false;
    element("proof-bar").value = 0;
    this.#say("", "Rebuilding the canonical batches here …");
  }

  add(line) {
    if (line.configuration !== this.#configuration) {
      this.#configuration = line.configuration;
      this.#body = this.#table.createTBody();
      const heading = make("tr");
      heading.append(make("th", line.configuration, { colspan: 4, scope: "rowgroup" }));
      this.#body.append(heading);
    }
    this.#done += 1;
    this.#same += line.same;
    const row = make("tr", undefined, { class: line.same ? "same" : "different" });
    row.append(
      stepHeading(line.step),
      // What is no digest is an error; it is wrapped, where a digest is cut short by the style.
      make("td", line.found, { class: /^[0-9a-f]{64}$/.test(line.found) ? "digest-cell" : "" }),
      make("td", line.expected, { class: "digest-cell" }),
      make("td", line.same ? "same" : "different"),
    );
    this.#body.append(row);
    element("proof-bar").max = line.total;
    element("proof-bar").value = this.#done;
    this.#say("", `${this.#same} of ${line.total} canonical batches are the same so far`);
  }

  // Return the verdict, for those who hear the page.
  finish() {
    element("proof-bar").hidden = true;
    if (this.#done > 0 && this.#same === this.#done) {
      return this.#say("good", `All ${this.#done} canonical batches are the same here, byte for byte.`);
    }
    return this.#say("bad", `${this.#done - this.#same} of ${this.#done} canonical batches differ here.`);
  }

  fail(reason) {
    element("proof-bar").hidden = true;
    return this.#say("bad", `The canonical batches could not be checked: ${reason}`);
  }

  #say(kind, text) {
    element("verdict").dataset.kind = kind;
    const link = make("a", "See each", { href: "#proof" });
    element("verdict").replaceChildren(text, ...(kind ? [" ", link] : []));
    return text;
  }
}

// A heading for a step; long powers of ten are written short.
function stepHeading(step) {
  if (!/^10{6,}$/.test(step)) return make("th", step, { scope: "row" });
  const heading = make("th", "10", { scope: "row", "aria-label": step });
  heading.append(make("sup", step.length - 1));
  return heading;
}
