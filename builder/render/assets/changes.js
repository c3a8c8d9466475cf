// Compares versions of a prompt where no service does: shows what each version changed, from its page.

import { element } from "./site.js";

// The pages that are loaded; older changes are linked.
const STEPS_MAX = 8;

const [told, shown, steps, heading] = ["#told", "#shown", "#steps", "h1"].map((one) => document.querySelector(one));

/** An error, as a sentence for the reader. */
class Trouble extends Error {}

/** Show what the address requests, or what went wrong. */
export async function compareTexts(form) {
  try {
    await compare(form);
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    told.replaceChildren(error.message);
    told.classList.add("told", "faults");
  }
}

async function compare(form) {
  const home = document.querySelector(".path a + a").href;
  const versions = JSON.parse(await read(form.dataset.list, "The list of versions")).data; // newest first
  const refs = refsOf(versions);
  if (versions.filter(isReadable).length < 2) {
    form.remove();
    throw new Trouble("This prompt has only one version that can be read, so there is nothing to compare.");
  }
  const asked = refsAsked(versions, refs);
  for (const [at, select] of [form.elements.from, form.elements.to].entries()) fill(select, refs, asked[at]);
  const pair = asked.map((ref) => entryOf(refs, ref));
  if (pair[0] === pair[1]) throw new Trouble(`Both sides are ${pair[0].version}. Choose another version on one side.`);
  pair.sort((one, other) => versions.indexOf(other) - versions.indexOf(one));
  const [from, to] = pair.map(({ version }) => version);
  const changed = versions.slice(versions.indexOf(pair[1]), versions.indexOf(pair[0])).filter(isReadable);
  const urlOf = (version) => `${home}/${version}`;
  const pages = await Promise.all(changed.slice(0, STEPS_MAX).map(async ({ version }) => (
    new DOMParser().parseFromString(await read(urlOf(version), `The page of ${version}`), "text/html")
  )));

  document.title = `${asked.join(" to ")} · ${document.title}`;
  heading.replaceChildren(...pages[0].querySelector("h1").childNodes);
  heading.querySelector("small").textContent = `${from} → ${to}`;
  told.replaceChildren(changed.length === 1 ? "" : `What each version changed, oldest first.${changed.length > STEPS_MAX ? ` The newest ${STEPS_MAX} of ${changed.length} are shown.` : ""}`);
  shown.append(...pages.map((one, at) => changesOf(one, changed[at].version, urlOf(changed[at].version))).reverse());
  steps.before(element("h2", {}, "Versions"));
  steps.append(...[...changed, pair[0]].map((one) => element(
    "li", { className: pair.includes(one) ? "now" : "" },
    element("a", { href: `${urlOf(one.version)}#changes` }, element("code", {}, one.version)),
  )));
}

/** The section of a version's page with its changes, whose lines link to that page. */
function changesOf(page, version, url) {
  const section = page.querySelector("#changes");
  for (const name of ["id", "aria-labelledby"]) {
    for (const one of page.querySelectorAll(`#changes [${name}]`)) one.setAttribute(name, version + one.getAttribute(name));
  }
  section.ariaLabel = version;
  for (const one of section.querySelectorAll('[href^="#"]')) one.href = url + one.getAttribute("href");
  section.querySelector("h2").prepend(`${version} · `);
  return section;
}

async function read(url, what) {
  try {
    const answer = await fetch(url);
    if (answer.ok) return await answer.text();
  } catch { /* as if it were not there */ }
  throw new Trouble(`${what} could not be loaded. Open this page again in a minute.`);
}

const isReadable = ({ withdrawn }) => !withdrawn;

/** The entry of each label, of `latest` and of each version. */
function refsOf(versions) {
  const labels = versions.flatMap((entry) => (entry.labels ?? []).map((label) => [label, entry]));
  const latest = versions.find(isReadable);
  return new Map([
    ...(latest ? [["latest", latest]] : []), ...labels.sort(), ...versions.map((entry) => [entry.version, entry]),
  ]);
}

/** The refs in the address; by default the latest version, and the one before `to`. */
function refsAsked(versions, refs) {
  const query = new URLSearchParams(location.search);
  const to = query.get("to") || refs.get("latest")?.version || "";
  const readable = versions.filter(isReadable);
  const before = readable[readable.indexOf(refs.get(to)) + 1] ?? readable.at(-1);
  return [query.get("from") || before?.version || "", to];
}

function fill(select, refs, asked) {
  select.replaceChildren(...[...refs].map(([ref, { version, withdrawn }]) => element(
    "option", { value: ref, disabled: Boolean(withdrawn) },
    ref !== version ? `${ref} (${version})` : withdrawn ? `${ref} · withdrawn` : ref,
  )));
  select.value = asked; // nothing is selected if the prompt has no such version
  select.ariaInvalid = select.selectedIndex < 0 || select.selectedOptions[0].disabled;
}

function entryOf(refs, ref) {
  const entry = refs.get(ref);
  const named = /^[\w.-]{1,80}$/.test(ref) ? `version or label “${ref}”` : "such version or label";
  if (!entry) throw new Trouble(`This prompt has no ${named}. Choose one from the list.`);
  if (entry.withdrawn) throw new Trouble(`Version ${entry.version} has been withdrawn. Choose another one.`);
  return entry;
}
