// Compares the texts of two versions where no service does: in bounded time for any texts.

import { diffArrays } from "./jsdiff.js";
import { element } from "./site.js";

// The build inserts the rules here: changes_script in builder/render/clients.py.
const RULES = {};
const { ROWS_MAX, CONTEXT_LINES, SUSPECT, INVISIBLE, CONTROL } = RULES;
const TOKEN = new RegExp(RULES.TOKEN, "gu");
const suspect = new RegExp(SUSPECT, "u");
// A run of one character is one mark. Returns are shown where they have changed.
const [invisible, invisibleOrReturn] = [INVISIBLE, `${INVISIBLE}|\\r`].map((one) => new RegExp(`(${one})\\1*`, "gu"));
const control = new RegExp(`^${CONTROL}`, "u");
// Beyond these limits, texts are shown without equal lines, and lines without marked words.
const LINES = { maxEditLength: 4_000, timeout: 300 }, WORD_EDITS_MAX = 400, WORDS_MS_MAX = 300, STEPS_MAX = 8;
const SIGNS = { removed: "−", added: "+", changed: "±" };

const [told, shown, steps, heading] = ["#told", "#shown", "#steps", "h1"].map((one) => document.querySelector(one));
let marksLeft = RULES.MARKS_MAX; // for all texts of the page

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
  const { list, record, page } = form.dataset;
  const versions = await read(list, "The list of versions"); // newest first
  const refs = refsOf(versions);
  if (versions.filter(isReadable).length < 2) {
    form.remove();
    throw new Trouble("This prompt has only one version that can be read, so there is nothing to compare.");
  }
  const asked = refsAsked(versions, refs);
  for (const [at, select] of [form.elements.from, form.elements.to].entries()) fill(select, refs, asked[at]);
  const pair = asked.map((ref) => entryOf(refs, ref)), [from, to] = pair.map(({ version }) => version);
  if (from === to) throw new Trouble(`Both sides are ${from}. Choose another version on one side.`);
  const [old, young] = await Promise.all([from, to].map((one) => read(record.replace("{version}", one), `The text of ${one}`)));

  document.title = `${asked.join(" to ")} · ${document.title}`;
  heading.replaceChildren(...visible(young.title), " ", element("small", {}, `${from} → ${to}`));
  told.replaceChildren("Only the texts are compared here. Each version's page shows its other changes.");
  const swapped = new URLSearchParams({ from: asked[1], to: asked[0] });
  form.append(element("a", { className: "button", href: `?${swapped}` }, "Swap"));
  shown.append(...changes(old.content, young.content, from, to));
  const files = changedFiles(old.files, young.files);
  if (files.length) {
    const rows = files.map(([path, change]) => element("li", {}, element("code", {}, path), ` ${change}`));
    shown.append(element("h2", {}, "Files"), element("ul", {}, ...rows));
  }
  const [low, high] = pair.map((one) => versions.indexOf(one)).sort((one, other) => one - other);
  const between = versions.slice(low, high + 1);
  const passed = between.filter((one, at) => at < STEPS_MAX - 1 || one === between.at(-1));
  steps.before(element("h2", {}, "Versions"));
  steps.append(...passed.map((one) => element(
    "li", { className: pair.includes(one) ? "now" : "" },
    element("a", { href: `${page.replace("{version}", one.version)}#changes` }, element("code", {}, one.version)),
  )));
}

async function read(url, what) {
  try {
    return (await (await fetch(url)).json()).data;
  } catch {
    throw new Trouble(`${what} could not be loaded. Open this page again in a minute.`);
  }
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

/** The paths of files whose bytes differ, each with what happened to it. */
function changedFiles(before = [], after = []) {
  const [old, young] = [before, after].map((files) => new Map(files.map(({ path, sha256 }) => [path, sha256])));
  return [...new Set([...old.keys(), ...young.keys()])].sort()
    .filter((path) => old.get(path) !== young.get(path))
    .map((path) => [path, !old.has(path) ? "added" : young.has(path) ? "changed" : "removed"]);
}

/** Nodes that show the changes from one text to another. */
function changes(before, after, from, to) {
  const note = (text) => element("p", { className: "soft" }, text);
  if (before === after) return [note("The text is unchanged.")];
  const [old, young] = [before, after].map((text) => text.match(/[^\n]*\n|[^\n]+/g) ?? []);
  const parts = diffArrays(old, young, LINES);
  if (parts) return [table(parts, from, to)];
  return [
    note("These texts differ too much to match their lines here. All lines are shown as removed and added."),
    table([{ removed: true, value: old }, { added: true, value: young }], from, to),
  ];
}

function table(parts, from, to) {
  const heads = [`Line in ${from}`, `Line in ${to}`, "Change", "Text"];
  const unseen = (text) => element("span", { className: "unseen" }, text);
  const rows = [];
  for (const row of rowsOf(parts)) {
    if (rows.length === ROWS_MAX) {
      rows.push(gap("Further lines are not shown here"));
      break;
    }
    rows.push(row);
  }
  return element(
    "table", { className: "changes" }, element("caption", { className: "unseen" }, `What changed from ${from} to ${to}`),
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, unseen(head))))),
    element("tbody", {}, ...rows),
  );
}

function* rowsOf(parts) {
  const until = performance.now() + WORDS_MS_MAX;
  let old = 0, young = 0;
  for (const [at, { value, removed, added }] of parts.entries()) {
    const last = parts[at - 1], next = parts[at + 1];
    if (removed && next?.added && next.value.length === value.length) {
      for (const [line, text] of value.entries()) yield* replaced(text, next.value[line], ++old, ++young, until);
    } else if (removed) {
      for (const text of value) yield row("removed", ++old, "", text);
    } else if (added) {
      if (last?.removed && last.value.length === value.length) continue; // in the rows of the lines before
      for (const text of value) yield row("added", "", ++young, text);
    } else {
      const above = last ? CONTEXT_LINES : 0, below = value.length - (next ? CONTEXT_LINES : 0);
      for (const [line, text] of value.entries()) {
        [old, young] = [old + 1, young + 1];
        if (line < above || line >= below) yield row("", old, young, text);
        else if (line === above) yield gap(`${below - above} lines unchanged`);
      }
    }
  }
}

/** One row for a line and the one that replaces it, with marked words, if they have much in common. */
function* replaced(before, after, old, young, until) {
  const timeout = until - performance.now();
  const words = [before, after].map((text) => text.match(TOKEN));
  const parts = timeout > 0 && diffArrays(...words, { maxEditLength: WORD_EDITS_MAX, timeout });
  const pieces = (parts || []).map(({ value, ...part }) => ({ ...part, text: value.join("") }));
  const kept = pieces.reduce((sum, { text, removed, added }) => sum + (removed || added ? 0 : text.trim().length), 0);
  if (kept * 3 < Math.max(before.length, after.length)) {
    yield row("removed", old, "", before);
    yield row("added", "", young, after);
    return;
  }
  yield row("changed", old, young, after, pieces.flatMap(({ text, removed, added }) => (
    removed || added ? [element(removed ? "del" : "ins", {}, ...visible(text, invisibleOrReturn))] : visible(text)
  )));
}

function row(kind, old, young, text, nodes) {
  const isUnended = kind && !text.endsWith("\n");
  return element(
    "tr", { className: nodes || !kind ? kind : `${kind} whole` },
    ...[old, young].map((number) => element("td", {}, String(number))),
    element("td", kind ? { ariaLabel: kind } : {}, SIGNS[kind] ?? ""),
    element("td", { dir: "auto" }, ...(nodes ?? visible(text)), isUnended ? element("small", {}, " no line break at the end") : ""),
  );
}

function gap(text) {
  return element("tr", { className: "gap" }, element("td", { colSpan: 4 }, text));
}

/** Nodes that show a text with its invisible characters; only a part of it when no marks are left. */
function visible(text, pattern = invisible) {
  if (!suspect.test(text)) return [text];
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(pattern)) {
    nodes.push(text.slice(end, found.index));
    end = found.index + found[0].length;
    if (!marksLeft) return [...nodes, element("em", {}, "… more characters not shown")];
    marksLeft -= 1;
    nodes.push(mark(found));
  }
  return [...nodes, text.slice(end)];
}

function mark([run, character]) {
  const count = run.length / character.length;
  const title = `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}${count > 1 ? ` ×${count}` : ""}`;
  // An element with a direction isolates the character's effect on the order of others.
  const made = element("span", { className: "invisible", dir: "ltr", title }, control.test(character) ? "" : run);
  made.dataset.code = title;
  return made;
}
