// Number fields, and buttons that can be out of use without losing the focus.

import { element } from "./views.js";

export function complainAbout(input, text) {
  const wrong = element(`${input.id}-wrong`);
  wrong.hidden = !text;
  wrong.textContent = text;
  input.setAttribute("aria-invalid", String(Boolean(text)));
}

// A typed number counts as soon as it is one; what is wrong with it is said when it is left.
export function onNumber(id, parse, use) {
  const input = element(id);
  input.addEventListener("input", () => {
    try {
      const value = parse(input.value);
      complainAbout(input, "");
      use(value);
    } catch {
      // Half of a number, perhaps.
    }
  });
  input.addEventListener("change", () => {
    try {
      input.value = parse(input.value);
      complainAbout(input, "");
    } catch (error) {
      complainAbout(input, error.message);
    }
  });
}

// A button that is really disabled drops the focus to the top of the page.
export function setDisabled(button, disabled) {
  button.setAttribute("aria-disabled", String(disabled));
}

addEventListener(
  "click",
  (event) => {
    if (!event.target.closest?.('[aria-disabled="true"]')) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);
