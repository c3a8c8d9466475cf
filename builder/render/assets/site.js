// On every page: buttons that copy. Other scripts share its functions.

document.documentElement.classList.add("js");

/** The key in the browser's storage of the owners for whom a person may write. account.js sets it:
 * the hub's files do not know. */
export const SIGNED_IN = "signed-in";
const owners = storageOf(() => localStorage)?.getItem(SIGNED_IN)?.split(" ");
if (owners) {
  document.querySelector('header nav a[href$="/account"]')?.replaceChildren("Account");
  const edit = byId("edit");
  if (owners.includes(edit?.dataset.owner)) for (const one of document.querySelectorAll(".meta [hidden]")) one.hidden = false;
  else edit?.replaceChildren("Copy to my prompts");
}

for (const snippet of document.querySelectorAll(".snippet, .hash")) {
  const text = snippet.textContent;
  const button = element("button", { type: "button", className: "copy", ariaLive: "polite" }, "Copy");
  button.addEventListener("click", async () => showCopied(button, await copyText(text)));
  if (snippet.matches(".hash")) snippet.after(" ", button);
  else snippet.append(button);
}

/** Says for a moment in a button whether its text was copied. */
export function showCopied(button, isCopied) {
  button.label ??= [...button.childNodes];
  button.replaceChildren(isCopied ? "Copied" : "Not copied");
  setTimeout(() => button.replaceChildren(...button.label), 2000);
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
