// The buttons that copy: each names the element whose text it takes in data-copies.

const buttons = () => document.querySelectorAll("[data-copies]");

export function setCopying(possible) {
  for (const button of buttons()) button.disabled = !possible;
}

// announce(text) tells those who hear the page.
export function enableCopying(announce) {
  for (const button of buttons()) {
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copies);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
        announce("Copied");
        setTimeout(() => (button.textContent = label), 1500);
      } catch {
        // Not allowed here: the text is selected, to be copied by hand.
        getSelection().selectAllChildren(source);
        announce("Selected: copy it with your keyboard or menu");
      }
    });
  }
}
