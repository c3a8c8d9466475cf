// The account pages, which work without this script.

import { SIGNED_IN, byId, element, storageOf } from "./site.js";

const KEPT = "invitation";
const storage = storageOf(() => sessionStorage);
const marks = storageOf(() => localStorage);
const code = byId("code");
const signedIn = document.querySelector("nav.account");
if (code) {
  showInvitation();
  // Another invitation link was opened in the same tab.
  addEventListener("hashchange", showInvitation);
} else if (signedIn) {
  storage?.removeItem(KEPT);
}

/** Fills in the code of an invitation. It comes after #, which browsers never send. It is kept
 * for this tab alone, until the user is signed in or the code is refused. */
function showInvitation() {
  const given = location.hash.slice(1);
  if (given) {
    storage?.setItem(KEPT, given);
    history.replaceState(null, "", location.pathname);
  } else if (code.getAttribute("aria-invalid")) {
    storage?.removeItem(KEPT);
  }
  const known = given || storage?.getItem(KEPT);
  if (!known) return;
  code.value = known;
  code.closest(".field").hidden = true;
  if (!byId("invited")) return;
  const [handle] = known.split(".");
  byId("invited").textContent = `the account ${handle}`;
  byId("invited-handle").value = handle;
}

/** A time as the pages write it, in the zone of the browser. */
export function minute(at) {
  const options = { dateStyle: "medium", timeStyle: "short" };
  return new Date(at).toLocaleString("en-GB", options).replace("Sept", "Sep");
}

document.addEventListener("click", ({ target }) => {
  const field = byId(target.dataset.shows);
  if (!field) return;
  const isShown = field.type === "text";
  field.type = isShown ? "password" : "text";
  target.textContent = isShown ? "Show" : "Hide";
});

const kept = byId("kept");
if (kept && marks) listKept();

/** Lists the texts that the editor has kept in this browser, and that no page shows. */
function listKept() {
  const { owner, account } = kept.dataset;
  const start = `hub-writing ${document.documentElement.dataset.root} ${owner} `;
  for (const key of Object.keys(marks).filter((one) => one.startsWith(start))) {
    const place = key.slice(start.length);
    const { at, fields } = JSON.parse(marks.getItem(key));
    const { title, name } = Object.fromEntries(fields);
    const shown = title || name || place.split("/").at(-1);
    kept.lastElementChild.append(element("li", {},
      element("h3", { dir: "auto" }, element("a", { href: account + place }, shown)),
      element("p", { className: "end" }, minute(at))));
    kept.hidden = false;
  }
}

// Last, since a full storage takes no more and raises an error.
if (signedIn) marks?.setItem(SIGNED_IN, signedIn.dataset.owners);
else marks?.removeItem(SIGNED_IN);
