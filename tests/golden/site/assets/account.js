// The account pages. All of them work without it.

// The code of an invitation comes behind #, which browsers send to nobody.
const code = document.getElementById("code");
const given = location.hash.slice(1);
if (code && given) {
  code.value = given;
  code.closest(".field").hidden = true;
  const [handle] = given.split(".");
  document.getElementById("invited").textContent = `the account ${handle}`;
  document.getElementById("invited-handle").value = handle;
  history.replaceState(null, "", location.pathname);
}
