// On every page: search as you type, with suggestions below the field; on /search, see results.js.
// If the host ignores the query, catalogue.js searches the catalogue.

import { byId, element } from "./site.js";

const WAIT_MS = 120;
const SUGGESTIONS = 5;
export const SHOWN_AT_ONCE = 50;

export const { root, queries } = document.documentElement.dataset;
export const [field, status] = ["q", "search-status"].map(byId);
const list = byId("results");

let catalogue = null; // a promise, once it was needed
let hostAnswers = queries !== undefined;
let isPartly = false; // true if the results came from the catalogue
let asked = 0;
let timer = 0;
let selected = -1;
let update = async () => {
  const answer = await answerTo(field.value.trim().replace(/(^|\s)label:$/i, ""));
  if (answer) suggest(answer.total || !/label:\S*$/i.test(field.value) ? answer : { repos: [], q: "" });
};

field.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => update(), WAIT_MS);
});
field.addEventListener("keydown", onKey);
field.form.addEventListener("focusout", (event) => {
  if (!field.form.contains(event.relatedTarget)) close();
});
document.addEventListener("keydown", (event) => {
  // Outside a shadow root, the target of an event in it is its host.
  const typing = event.composedPath()[0].closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !isChord(event)) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});

/** Has another function show the results. */
export function showBy(other) {
  update = other;
}

/** True if a key is part of another command, or of a word that an input method composes. */
export function isChord({ altKey, ctrlKey, isComposing, metaKey }) {
  return altKey || ctrlKey || isComposing || metaKey;
}

function onKey(event) {
  if (isChord(event)) return;
  const options = optionsShown();
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && options.length) {
    select((selected + step + options.length + 1) % (options.length + 1));
  } else if (event.key === "Enter" && options[selected]) {
    options[selected].click();
  } else if (event.key === "Escape") {
    if (list.hidden) {
      field.value = "";
      update();
    }
    close();
  } else return;
  event.preventDefault();
}

function optionsShown() {
  return list.hidden ? [] : list.querySelectorAll("[role=option]");
}

/** Moves the selection; the position after the last option selects none. */
function select(index) {
  const option = optionsShown()[index];
  for (const one of optionsShown()) one.ariaSelected = one === option;
  option?.scrollIntoView({ block: "nearest" });
  selected = option ? index : -1;
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
}

function close() {
  suggest({ repos: [], q: "" });
}

/** Prompts, a tag and an owner that begin with the query, and the way to all results. */
function suggest({ q, repos, matches, total, count, failure, facets: { tags = [], owners = [] } = {} }) {
  const begins = ({ name }) => name.startsWith(q.toLowerCase());
  const named = (kind, path, names) => names.filter(begins).slice(0, 1)
    .map(({ name }) => [`${root}${path}${name}`, element("b", {}, name), kind]);
  const options = repos.slice(0, SUGGESTIONS).map((repo, at) => {
    const { words, line, kind } = matches[at];
    return [
      pageOf(repo), element("b", { dir: "auto" }, ...marked(repo.title, words)), element("span", {}, `${kind} · ${repo.owner}/${repo.name}`),
      element("span", { className: "about", dir: "auto" }, ...marked(line ?? aboutOf(repo), words)),
    ];
  });
  if (q) {
    const all = total > 1 ? `All ${total.toLocaleString("en")} results` : failure ?? (total ? "1 result" : count);
    options.push(...named("tag", "/tags/", tags), ...named("owner", "/", owners), [field.form.action + addressOf(q), all]);
  }
  list.replaceChildren(...options.map(([href, ...parts], at) => element("li", { role: "presentation" }, element(
    "a", { className: "path", id: `result-${at}`, role: "option", ariaSelected: "false", href, tabIndex: -1 }, ...parts,
  ))));
  list.hidden = !q;
  field.ariaExpanded = !list.hidden;
  select(-1);
}

/** The answer to a query, with its count and notes in words; null if another query follows meanwhile. */
export async function answerTo(q, filters = {}) {
  const turn = ++asked;
  const answer = q ? await search(q, 1, filters) : { repos: [], total: 0 };
  if (turn !== asked) return null;
  const { total, matches = [], corrected, partly, failure } = answer;
  const many = `${total ? total.toLocaleString("en") : "No"} prompt${total === 1 ? "" : "s"}`;
  const count = q && !failure ? `${many} for “${q}”` : "";
  const notes = failure ?? [
    matches.some(({ without }) => without?.length) && "Rows name the words that they lack.",
    ...(corrected ?? []).map(({ from, to }) => `Searched for “${to}” instead of “${from}”.`),
    partly,
  ].filter(Boolean).join(" ");
  status.textContent = [count && `${count}.`, notes].filter(Boolean).join(" ");
  return { ...answer, q, count, notes };
}

/** A page of repos, with their total and the rest as in the API's `meta`; or none, and the `failure`. */
export async function search(q, page, filters) {
  try {
    return await ask(q, page, filters);
  } catch ({ message, isFinal }) {
    return { repos: [], total: 0, failure: message, isFinal };
  }
}

async function ask(q, page, filters) {
  if (!/[\p{L}\p{N}]/u.test(q)) return { repos: [], total: 0 }; // no word to search for
  if (hostAnswers && (page === 1 || !isPartly)) {
    const answer = await get(`/api/v1/repos${addressOf(q, filters)}&explain=true&page=${page}`);
    const { data, meta, error } = await answer.json().catch(() => ({})); // of a host of files: a page
    if (meta?.q === q) {
      isPartly = false;
      return { repos: data, ...meta };
    }
    const isDown = answer.status >= 429;
    if (page > 1 || (error && answer.status < 500)) {
      const message = error?.message ?? "Search is temporarily unavailable. Try again in a moment.";
      throw Object.assign(new Error(message), { isFinal: !isDown }); // such as an unknown tag
    }
    hostAnswers = isDown; // if so, the next search asks again
  }
  isPartly = true;
  catalogue ??= fetchCatalogue().catch((error) => {
    catalogue = null;
    throw error;
  });
  return (await catalogue).page(q, (page - 1) * SHOWN_AT_ONCE, SHOWN_AT_ONCE, filters);
}

/** The part of the address after the path. */
export function addressOf(q, { tag, owner, page_size } = {}) {
  return `?${new URLSearchParams(Object.entries({ q, tag, owner, page_size }).filter(([, value]) => value))}`;
}

export async function get(path, headers = {}) {
  try {
    return await fetch(root + path, { headers });
  } catch {
    throw new Error("The host cannot be reached. Try again in a moment.");
  }
}

async function fetchCatalogue() {
  status.textContent = "Loading the catalogue…";
  const answer = await get("/api/v1/catalogue.jsonl");
  if (!answer.ok) throw new Error("The catalogue cannot be loaded. Try again in a moment.");
  const { Catalogue } = await import("./catalogue.js");
  return Catalogue.read(answer.body);
}

/** A text with these words marked: whole words, except in scripts without spaces. Dates are isolated. */
export function marked(text, words) {
  const patterns = [...words].sort((one, other) => other.length - one.length).map((word) => {
    const pattern = word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
    return /\p{Lo}/u.test(word) ? pattern : `(?<![\\p{L}\\p{N}])${pattern}(?![\\p{L}\\p{N}])`;
  });
  if (/\p{sc=Arab}|\p{sc=Hebr}/u.test(text)) text = text.replace(/(?<![\w-])\d+(?:-\d+)+\b/g, "\u2066$&\u2069");
  return text.split(new RegExp(`(${patterns.join("|") || "(?!)"})`, "u"))
    .map((part, at) => (at % 2 ? element("mark", {}, part) : part));
}

/** A generated description is the beginning of the text, which says little for JSON or markup. */
export function aboutOf({ description }) {
  if (/^(?:\{\s*["']|\[\s*(?:["'[]|\{(?!\{)))/.test(description)) return "JSON prompt.";
  return /^<[a-z!/]/i.test(description) ? "HTML or XML prompt." : description;
}

export function pageOf(repo) {
  return `${root}/${repo.owner}/${repo.name}`;
}
