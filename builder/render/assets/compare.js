// The page that compares two versions of a prompt. The service compares them; where no service
// answers, the page shows what each version changed.

import { byId } from "./site.js";

const SERVICE_MS_MAX = 10_000;

const form = byId("pair");

/** The service's page for this address; null if no service answers with one. */
async function answered() {
  const { service } = form.dataset;
  if (!service) return null;
  try {
    const answer = await fetch(service + location.search, { signal: AbortSignal.timeout(SERVICE_MS_MAX) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return page.getElementById("told") && page; // other pages say that it is busy or down
  } catch {
    return null;
  }
}

const page = await answered();
if (page) {
  const { id } = document.activeElement;
  const told = page.getElementById("told"), text = told.textContent;
  told.textContent = "";
  document.title = page.title;
  document.querySelector("main").replaceWith(page.querySelector("main"));
  byId(id)?.focus();
  // Screen readers read what changes in a status, not what it has from the start.
  setTimeout(() => { told.textContent = text; });
} else {
  const { compareTexts } = await import("./changes.js");
  await compareTexts(form);
}
// The address names both sides, so that it can be shared.
const pair = new URLSearchParams(new FormData(document.forms.pair));
if (pair.get("from") && pair.get("to")) history.replaceState(null, "", `?${pair}${location.hash}`);
const beside = byId("beside");
if (beside) beside.checked = location.hash === "#beside";
