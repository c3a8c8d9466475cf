// The page that compares two versions of a prompt, from the files that every host has. The compared
// versions are in the URL, so that it can be shared.

import { compareTexts } from "./changes.js";
import { Marks, changesTable, counted, humanSize, visible } from "./changes_table.js";
import { element } from "./site.js";

const LATEST = "latest";
const REF_CHARS_MAX = 80;
const KEPT_VERSIONS_MAX = 20;

const page = document.getElementById("compare");
const form = document.getElementById("pair");
const told = document.getElementById("told");
const shown = document.getElementById("shown");
const selects = { from: form.elements.from, to: form.elements.to };
const { list, raw, record, page: pageUrl } = page.dataset;
const title = document.title;

const refs = new Map(); // the version that each version, label and `latest` names
const labelled = new Map(); // the labels of each version
const texts = new Map(); // texts and files of the last versions read, by version
let versions = []; // newest first
let reading = new AbortController(); // of the running comparison
let attempts = 0;

/** An error, as a sentence for the reader; `canRetry`: a retry may succeed. */
class Trouble extends Error {
  constructor(message, canRetry = false) {
    super(message);
    this.canRetry = canRetry;
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  choose(selects.from.value, selects.to.value);
});
for (const select of Object.values(selects)) {
  select.addEventListener("change", () => choose(selects.from.value, selects.to.value));
}
document.getElementById("swap").addEventListener("click", () => choose(selects.to.value, selects.from.value));
addEventListener("popstate", () => attempt(showChoice));
attempt(begin);

async function begin() {
  say("Loading the versions…");
  const answer = await read(list, "The list of versions");
  let rows;
  try {
    rows = (await answer.json()).data;
  } catch {
    throw new Trouble("The list of versions could not be read. Try again in a moment.", true);
  }
  versions = rows;
  const readable = versions.filter((entry) => !entry.withdrawn);
  for (const entry of versions) {
    refs.set(entry.version, entry);
    labelled.set(entry.version, entry.labels ?? []);
    for (const label of entry.labels ?? []) refs.set(label, entry);
  }
  if (readable.length) refs.set(LATEST, readable[0]);
  for (const select of Object.values(selects)) fill(select);
  await showChoice();
}

function fill(select) {
  const labels = [...refs.keys()].filter((ref) => refs.get(ref).version !== ref && ref !== LATEST).sort();
  const named = refs.has(LATEST) ? [LATEST, ...labels] : labels;
  const option = (ref, text) => element("option", { value: ref, disabled: Boolean(refs.get(ref).withdrawn) }, text);
  select.replaceChildren(
    element("optgroup", { label: "Labels" }, ...named.map((ref) => option(ref, `${ref} (${refs.get(ref).version})`))),
    element("optgroup", { label: "Versions" }, ...versions.map(({ version, published_at: at, withdrawn }) => (
      option(version, `${version} · ${withdrawn ? "withdrawn" : at.slice(0, 10)}`)
    ))),
  );
}

/** The versions that the URL requests; by default the latest one, and the one before `to`. */
function asked() {
  const query = new URLSearchParams(location.search);
  const [givenFrom, givenTo] = ["from", "to"].map((name) => query.get(name)?.slice(0, REF_CHARS_MAX));
  const to = givenTo || refs.get(LATEST)?.version || "";
  const readable = versions.filter((entry) => !entry.withdrawn);
  const before = readable[readable.indexOf(refs.get(to)) + 1] ?? readable.at(-1);
  return { from: givenFrom || before?.version || "", to };
}

function choose(from, to) {
  if (!from || !to) return;
  const query = new URLSearchParams({ from, to });
  if (location.search !== `?${query}`) history.pushState(null, "", `?${query}`);
  attempt(showChoice);
}

async function showChoice() {
  reading.abort();
  reading = new AbortController();
  const { signal } = reading;
  const { from, to } = asked();
  select("from", from);
  select("to", to);
  document.title = `${from} to ${to} · ${title}`;
  shown.replaceChildren();
  const [before, after] = [entryOf(from), entryOf(to)];
  const query = `?${new URLSearchParams({ from, to })}`;
  if (location.search !== query) history.replaceState(null, "", query);
  if (before === after) {
    const both = from === to ? `Both sides are ${from}` : `${from} and ${to} are the same version`;
    throw new Trouble(`${both}${from === to ? "" : `, ${before.version}`}. Choose another version on one side.`);
  }
  say(`Comparing ${from} with ${to}…`);
  const marks = new Marks();
  const sides = element("div", { className: "sides" }, side("From", from, before, marks), side("To", to, after, marks));
  shown.replaceChildren(sides);
  const pair = [before, after];
  const [old, young] = await Promise.all(pair.map((entry) => versionOf(entry, signal)));
  const isText = [old, young].every((one) => !one.files && !one.content.startsWith("---"));
  if (isText) {
    if (!signal.aborted) showText(old.content, young.content, pair, "", marks);
    return;
  }
  const { abilityChanges, changedFiles, fileChanges, loadTexts, summaryOf } = await import("./compare_files.js");
  const files = changedFiles(old.files, young.files);
  const [pages] = await Promise.all([
    Promise.all(pair.map((entry) => pageOf(entry, signal))),
    loadTexts(files, (url, path) => bytesOf(url, `The file ${path}`, signal)),
  ]);
  if (signal.aborted) return;
  shown.append(...abilityChanges(pages, [from, to]));
  showText(old.content, young.content, pair, summaryOf(files), marks);
  shown.append(...fileChanges(files, from, to, marks));
}

/** Show the changes of two texts. `more` says what else has changed. */
function showText(old, young, [before, after], more, marks) {
  if (old === young) {
    say(more ? `The text is unchanged.${more}` : "The text is unchanged; only its metadata differs.");
    return;
  }
  const { rows, removed, added, isAligned } = compareTexts(old, young);
  const grown = after.size - before.size;
  say(
    `${counted(removed, "line")} removed, ${counted(added, "line")} added; `
    + `${humanSize(before.size)} became ${humanSize(after.size)}`
    + (grown ? ` (${grown > 0 ? "+" : "−"}${Math.abs(grown).toLocaleString("en")} bytes).` : ".") + more,
  );
  if (!isAligned) {
    shown.append(element(
      "p", { className: "soft" }, "These texts differ too much to match their lines in a short time. "
      + "All lines from the first difference to the last are shown as removed and added.",
    ));
  }
  const { from, to } = asked();
  shown.append(changesTable(rows, from, to, marks));
}

function entryOf(ref) {
  const entry = refs.get(ref);
  if (!ref) throw new Trouble("This prompt has no version to compare.");
  if (!entry) {
    const named = /^[\w.-]+$/.test(ref) ? `version or label “${ref}”` : "such version or label";
    throw new Trouble(`This prompt has no ${named}. Choose one from the list.`);
  }
  if (entry.withdrawn) throw new Trouble(`Version ${entry.version} has been withdrawn, so its text cannot be compared. Choose another one.`);
  return entry;
}

function select(name, ref) {
  selects[name].value = ref;
  if (selects[name].value === ref) return;
  // Chooses nothing, rather than a version that was not requested.
  selects[name].selectedIndex = -1;
}

/** The text and the files of a version. They never change, so they are cached. */
async function versionOf(entry, signal) {
  const { version } = entry;
  if (!texts.has(version)) {
    const bytes = await bytesOf(record.replace("{version}", version), `The text of ${version}`, signal);
    const { content, files } = JSON.parse(new TextDecoder().decode(bytes)).data;
    texts.set(version, { content, files });
    if (texts.size > KEPT_VERSIONS_MAX) texts.delete(texts.keys().next().value);
  }
  return texts.get(version);
}

async function pageOf({ version }, signal) {
  const bytes = await bytesOf(pageUrl.replace("{version}", version), `The page of ${version}`, signal);
  return new TextDecoder().decode(bytes);
}

async function bytesOf(url, what, signal) {
  const answer = await read(url, what, signal);
  return answer.arrayBuffer().catch(() => {
    throw new Trouble(`${what} could not be loaded. Check your connection, then try again.`, true);
  });
}

async function read(url, what, signal) {
  let answer;
  try {
    answer = await fetch(url, { signal });
  } catch {
    throw new Trouble(`${what} could not be loaded. Check your connection, then try again.`, true);
  }
  if (answer.ok) return answer;
  if (answer.status === 404 || answer.status === 410) {
    throw new Trouble(`${what} is not on this site. It may have been withdrawn.`);
  }
  if (answer.status === 429) {
    throw new Trouble(`${what} could not be loaded, because your address has read too much. Wait a minute, then try again.`, true);
  }
  throw new Trouble(`${what} could not be loaded: the host answered ${answer.status}. Try again in a moment.`, true);
}

/** The details of one side beside its text. */
function side(heading, ref, entry, marks) {
  const link = (href, text) => element("a", { href }, text);
  const { version, published_at: at, publisher, changelog, size } = entry;
  const labels = labelled.get(version).map((label) => (
    element("span", { className: label === "production" ? "label" : "label other" }, element("span", { className: "unseen" }, "Label "), label)
  ));
  const time = element("time", { dateTime: at }, at.slice(0, 10));
  return element(
    "section", { className: "panel" },
    element("h2", {}, `${heading} `, link(pageUrl.replace("{version}", version), version), ...labels.flatMap((one) => [" ", one])),
    element(
      "p", { className: "meta" },
      element("span", {}, "Published ", time, ` by ${publisher}`),
      element("span", {}, humanSize(size)), link(raw.replace("{version}", version), "Raw text"),
    ),
    ...(changelog ? [element("p", { className: "changelog", dir: "auto" }, ...visible(changelog, marks))] : []),
  );
}

function say(...content) {
  told.classList.remove("wrong");
  told.replaceChildren(...content);
}

/** Run a function, and show its errors to the reader. */
async function attempt(action) {
  const attempted = attempts += 1;
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Trouble)) throw error;
    if (attempted !== attempts) return; // another choice was made meanwhile
    say(error.message);
    told.classList.add("wrong");
    if (!error.canRetry) return;
    const again = element("button", { type: "button" }, "Try again");
    again.addEventListener("click", () => attempt(versions.length ? showChoice : begin));
    told.append(" ", again);
  }
}
