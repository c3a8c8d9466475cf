// The page that compares two versions of a prompt, from the files that every host has. The compared
// versions are in the URL, so that it can be shared.

import { callerChanges, callersBox } from "./callers.js";
import { MARKS_MAX, compareTexts } from "./changes.js";
import { changesTable, counted, humanSize, unseen, visible } from "./changes_table.js";
import { element } from "./site.js";

const LATEST = "latest";
const REF_CHARS_MAX = 80, STEPS_MAX = 8, LEAD_CHARS = 300;

const [form, told, lead, boxes, words, shown, steps, facts, heading] = [
  "#pair", "#told", "#lead", "#boxes", "#words", "#shown", "#steps", "#facts dl", "h1",
].map((one) => document.querySelector(one));
const selects = { from: form.elements.from, to: form.elements.to };
const { list, raw, record, page: pageUrl } = form.dataset;
const { title } = document, plainHeading = heading.textContent;

const refs = new Map(); // the entry of each version, label and `latest`
let versions = []; // newest first
let reading = new AbortController(); // of the running comparison

/** An error, as a sentence for the reader; `canRetry`: a retry may succeed. */
class Trouble extends Error {
  constructor(message, canRetry = false) {
    super(message);
    this.canRetry = canRetry;
  }
}

const chooseShown = () => choose(selects.from.value, selects.to.value);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  chooseShown();
});
for (const select of Object.values(selects)) select.addEventListener("change", chooseShown);
document.getElementById("swap").addEventListener("click", () => choose(selects.to.value, selects.from.value));
document.getElementById("beside").checked = location.hash === "#beside";
addEventListener("popstate", show);
show();

async function readVersions() {
  versions = await read(list, "The list of versions");
  for (const entry of versions) {
    entry.labels ??= [];
    for (const ref of [entry.version, ...entry.labels]) refs.set(ref, entry);
  }
  const latest = versions.find((entry) => !entry.withdrawn);
  const labels = [...refs.keys()].filter((ref) => refs.get(ref).version !== ref).sort();
  if (latest) refs.set(LATEST, latest);
  const named = latest ? [LATEST, ...labels] : labels;
  const option = (ref, text) => element("option", { value: ref, disabled: Boolean(refs.get(ref).withdrawn) }, text);
  for (const select of Object.values(selects)) {
    select.replaceChildren(
      element("optgroup", { label: "Labels" }, ...named.map((ref) => option(ref, `${ref} (${refs.get(ref).version})`))),
      element("optgroup", { label: "Versions" }, ...versions.map(({ version, published_at: at, withdrawn }) => (
        option(version, `${version} · ${withdrawn ? "withdrawn" : at.slice(0, 10)}`)
      ))),
    );
  }
}

/** The versions that the URL requests; by default the latest one, and the one before `to`. */
function asked() {
  const query = new URLSearchParams(location.search);
  const [givenFrom, givenTo] = ["from", "to"].map((name) => query.get(name)?.slice(0, REF_CHARS_MAX));
  const to = givenTo || refs.get(LATEST)?.version || "";
  const readable = versions.filter((entry) => !entry.withdrawn);
  const before = readable[readable.indexOf(refs.get(to)) + 1] ?? readable.at(-1);
  return [givenFrom || before?.version || "", to];
}

function choose(from, to) {
  if (!from || !to) return;
  const query = new URLSearchParams({ from, to });
  if (location.search !== `?${query}`) history.pushState(null, "", `?${query}`);
  show();
}

/** Show what the URL requests, or what went wrong. */
async function show() {
  reading.abort();
  const mine = reading = new AbortController();
  told.classList.remove("told", "faults");
  try {
    if (!versions.length) await readVersions();
    await compare(mine.signal);
  } catch (error) {
    if (mine.signal.aborted) return; // another choice was made meanwhile
    if (!(error instanceof Trouble)) throw error;
    told.replaceChildren(error.message);
    told.classList.add("told", "faults");
    if (!error.canRetry) return;
    const again = element("button", { type: "button" }, "Try again");
    again.addEventListener("click", show);
    told.append(" ", again);
  }
}

async function compare(signal) {
  const refsAsked = asked(), [from, to] = refsAsked;
  for (const [name, ref] of [["from", from], ["to", to]]) {
    const select = selects[name];
    select.value = ref;
    // Chooses nothing, rather than a version that was not requested.
    if (select.value !== ref) select.selectedIndex = -1;
    select.ariaInvalid = select.selectedIndex < 0;
  }
  document.title = `${from} to ${to} · ${title}`;
  for (const part of [lead, boxes, shown, facts, steps]) part.replaceChildren();
  heading.textContent = plainHeading;
  words.hidden = true;
  const query = `?${new URLSearchParams({ from, to })}`;
  if (location.search !== query) history.replaceState(null, "", query);
  const pair = refsAsked.map(entryOf), [before, after] = pair;
  if (before === after) {
    const both = from === to ? `Both sides are ${from}` : `${from} and ${to} are the same version, ${before.version}`;
    throw new Trouble(`${both}. Choose another version on one side.`);
  }
  told.replaceChildren(`Comparing ${from} with ${to}…`);
  const records = await Promise.all(pair.map(({ version }) => (
    read(record.replace("{version}", version), `The text of ${version}`)
  )));
  const isText = records.every((one) => !one.files && !one.content.startsWith("---"));
  const parts = isText ? null : await import("./compare_files.js");
  const files = parts?.changedFiles(...records.map((one) => one.files));
  const pages = parts && (await Promise.all([
    ...pair.map(({ version }) => bytesOf(pageUrl.replace("{version}", version), `The page of ${version}`)),
    parts.loadTexts(files, (url, path) => bytesOf(url, `The file ${path}`)),
  ])).slice(0, 2).map((bytes) => new TextDecoder().decode(bytes));
  if (signal.aborted) return;

  const marks = { left: MARKS_MAX }; // for all texts of the page
  heading.replaceChildren(
    ...visible(records[1].title, marks), " ", element("small", {}, `${before.version} → ${after.version}`),
  );
  const [line] = after.changelog.trim().split("\n");
  lead.append(...visible(line.length > LEAD_CHARS ? `${line.slice(0, LEAD_CHARS)}…` : line, marks));
  showFacts(pair, records, marks);
  const callers = callerChanges(...records);
  if (callers.length) boxes.append(callersBox(callers, before.version, after.version, marks));
  told.replaceChildren(callers.length ? "" : "Nothing changes for callers. ");
  if (parts) boxes.append(...parts.abilityChanges(pages, refsAsked));
  showText(...records.map((one) => one.content), refsAsked, parts?.summaryOf(files) ?? "", marks);
  if (parts) shown.append(...parts.fileChanges(files, from, to, marks));
  words.hidden = !shown.querySelector("table");
}

/** Show the changes of two texts. `more` says what else has changed. */
function showText(old, young, [from, to], more, marks) {
  if (old === young) {
    told.append(more ? `The text is unchanged.${more}` : "The text is unchanged; only its metadata differs.");
    return;
  }
  const { rows, removed, added, isAligned } = compareTexts(old, young);
  told.append(`${counted(removed, "line")} removed, ${counted(added, "line")} added.${more}`);
  if (!isAligned) {
    shown.append(element(
      "p", { className: "soft" }, "These texts differ too much to match their lines in a short time. "
      + "All lines from the first difference to the last are shown as removed and added.",
    ));
  }
  shown.append(changesTable(rows, from, to, marks));
}

/** The facts of both versions; those that both have once. */
function showFacts(pair, records, marks) {
  const link = (href, ...content) => element("a", { href }, ...content);
  const sides = pair.map(({ version, publisher, source, size }, side) => [
    ["Published by", publisher],
    ["Built from", ...(source ? [source.run_url ? link(source.run_url, source.project) : source.project] : [])],
    ["Size", `${humanSize(size)}, `, link(raw.replace("{version}", version), "raw")],
    ["Licence", ...visible(records[side].license ?? "", marks)],
  ]);
  for (const [at, [name, ...old]] of sides[0].entries()) {
    const [before, after] = [old, sides[1][at].slice(1)].map((parts) => element("p", {}, ...parts));
    const both = before.isEqualNode(after) ? [before] : [before, after];
    if (both.some((one) => one.textContent)) facts.append(element("dt", {}, name), element("dd", {}, ...both));
  }
  const [low, high] = pair.map((entry) => versions.indexOf(entry)).sort((one, other) => one - other);
  const between = versions.slice(low, high + 1);
  const passed = between.filter((entry, at) => at < STEPS_MAX - 1 || entry === between.at(-1));
  steps.append(element("h2", {}, "Versions"), element("ol", { className: "steps" }, ...passed.map((entry) => element(
    "li", { className: pair.includes(entry) ? "now" : "" },
    link(`${pageUrl.replace("{version}", entry.version)}#changes`, element("code", {}, entry.version)), ` ${entry.published_at.slice(0, 10)}`,
    ...entry.labels.flatMap((label) => [
      " ", element("span", { className: label === "production" ? "label" : "label other" }, unseen("Label "), label),
    ]),
  ))));
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

async function read(url, what) {
  const bytes = await bytesOf(url, what);
  try {
    return JSON.parse(new TextDecoder().decode(bytes)).data;
  } catch {
    throw new Trouble(`${what} could not be read. Try again in a moment.`, true);
  }
}

async function bytesOf(url, what) {
  const answer = await fetch(url, { signal: reading.signal }).catch(() => null);
  const bytes = answer?.ok && await answer.arrayBuffer().catch(() => null);
  if (bytes) return bytes;
  const status = answer && !answer.ok ? answer.status : 0;
  if (status === 404 || status === 410) throw new Trouble(`${what} is not on this site. It may have been withdrawn.`);
  const why = !status ? ". Check your connection, then try again."
    : status === 429 ? ", because your address has read too much. Wait a minute, then try again."
    : `: the host answered ${status}. Try again in a moment.`;
  throw new Trouble(`${what} could not be loaded${why}`, true);
}
