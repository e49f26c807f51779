// The buttons that copy: each names in data-copies the elements whose texts it takes.

const buttons = () => document.querySelectorAll("[data-copies]");

export function setCopying(possible) {
  for (const button of buttons()) button.setAttribute("aria-disabled", String(!possible));
}

// announce(text) tells those who hear the page.
export function enableCopying(announce) {
  for (const button of buttons()) {
    const label = button.textContent;
    const say = (text, long) => {
      button.textContent = text;
      announce(long);
      setTimeout(() => (button.textContent = label), 2500);
    };
    button.addEventListener("click", async () => {
      const sources = button.dataset.copies.split(" ").map((id) => document.getElementById(id));
      try {
        await navigator.clipboard.writeText(sources.map((one) => one.textContent).join(""));
        say("Copied", "Copied");
      } catch {
        // Not allowed here: the text is shown and selected, to be copied by hand.
        for (const one of sources) {
          one.hidden = false;
          const folded = one.closest("details");
          if (folded) folded.open = true;
        }
        const range = document.createRange();
        range.setStartBefore(sources[0]);
        range.setEndAfter(sources.at(-1));
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        say(
          "Selected: copy it by hand",
          "The browser refused to copy. The text is selected: copy it with your keyboard or menu.",
        );
      }
    });
  }
}
