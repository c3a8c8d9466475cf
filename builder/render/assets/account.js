// The account pages. All of them work without this script.

const KEPT = "invitation";
const storage = ofThisTab();
const code = document.getElementById("code");
if (code) {
  showInvitation();
  // Another invitation link was opened in the same tab.
  addEventListener("hashchange", showInvitation);
} else if (document.querySelector("nav.account")) {
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
  const [handle] = known.split(".");
  document.getElementById("invited").textContent = `the account ${handle}`;
  document.getElementById("invited-handle").value = handle;
}

/** The browser's storage; null in browsers that block it for this site. */
function ofThisTab() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

for (const button of document.querySelectorAll("[data-shows]")) {
  const field = document.getElementById(button.dataset.shows);
  button.addEventListener("click", () => {
    const isHidden = field.type === "password";
    field.type = isHidden ? "text" : "password";
    button.textContent = isHidden ? "Hide" : "Show";
  });
}
