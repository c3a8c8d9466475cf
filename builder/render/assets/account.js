// The account pages. All of them work without it.

const KEPT = "invitation";
const storage = ofThisTab();
const code = document.getElementById("code");
if (code) {
  showInvitation();
  // Another link, opened where this one was.
  addEventListener("hashchange", showInvitation);
} else if (document.querySelector("nav.account")) {
  storage?.removeItem(KEPT);
}

/** Puts in the code of an invitation, which comes behind #: browsers send that to nobody. It is kept
 * for this tab alone, until somebody is signed in or it is refused. */
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

/** Null in browsers that keep nothing for this site. */
function ofThisTab() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}
