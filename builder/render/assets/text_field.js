// The editor's field for the text: the textarea of the page, or one that marks variables and
// Markdown, whose library is loaded only then.

// The user's choice in this browser: "plain" or "marked".
const CHOSEN = "hub-text-field";
const OTHER = { marked: "Use a plain text field", plain: "Mark variables and Markdown" };

/**
 * Gives a textarea the field that the user has chosen, and a button to choose the other one.
 * `shown(marked)` is called after each change with the result of markText, or null. Returns a function
 * that calls another one while the textarea has no other field.
 */
export function offerField(textarea, button, storage, shown) {
  // Touch keyboards and screen readers of phones work best with the browser's own field.
  const usual = matchMedia("(pointer: fine)").matches ? "marked" : "plain";
  let chosen = storage?.getItem(CHOSEN) ?? usual;
  let marked = null;
  const take = async () => {
    marked?.remove();
    marked = chosen === "marked" ? (await import("./marked_text.js")).markText(textarea) : null;
    button.textContent = OTHER[chosen];
    shown(marked);
  };
  let taken = take();
  button.addEventListener("click", () => {
    taken = taken.catch(() => {}).then(() => {
      chosen = chosen === "marked" ? "plain" : "marked";
      keep(storage, chosen);
      return take();
    });
  });
  return (act) => {
    taken = taken.then(() => {
      marked?.remove();
      marked = null;
      act();
      return take();
    });
    return taken;
  };
}

function keep(storage, chosen) {
  try {
    storage?.setItem(CHOSEN, chosen);
  } catch {
    // The storage is full: the choice holds for this page alone.
  }
}
