// On every page: buttons that copy. Other scripts share its functions.

document.documentElement.classList.add("js");

/** The key in the browser's storage of a mark that account.js sets: the hub's files do not know. */
export const SIGNED_IN = "signed-in";
if (storageOf(() => localStorage)?.getItem(SIGNED_IN)) {
  document.querySelector('header nav a[href$="/account"]')?.replaceChildren("Account");
  document.querySelector(".member")?.removeAttribute("hidden");
}

for (const snippet of document.querySelectorAll(".snippet")) {
  const text = snippet.textContent;
  const button = element("button", { type: "button", className: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copyText(text)) ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  snippet.append(button);
}

/** A variable in a prompt, as on the server; \{{ is a literal {{. */
export const VARIABLE = /\\\{\{|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*\}\}/g;

/** Copies text to the clipboard; false if the browser does not allow it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** The browser's storage; null in browsers that block it for this site. */
export function storageOf(find) {
  try {
    return find();
  } catch {
    return null;
  }
}

export function byId(id) {
  return document.getElementById(id);
}

/** An element with properties, and with nodes and texts in it. */
export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
