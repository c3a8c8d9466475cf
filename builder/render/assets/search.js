// Search as you type: suggestions below the field on every page, the whole list on /search.
//
// It queries the host; the answer shows if the host understood. On other hosts, catalogue.js
// searches the catalogue, a file with some words of each text.

import { element } from "./site.js";

const WAIT_MS = 120;
const SUGGESTIONS = 8;
const SHOWN_AT_ONCE = 50;
const SUGGESTED = 9;
const LIKENESS_MIN = 0.5;

const { root, queries } = document.documentElement.dataset;
const field = document.getElementById("q");
const list = document.getElementById("results");
const status = document.getElementById("search-status");
const found = document.getElementById("found"); // on the search page only
const told = document.getElementById("told");
const more = document.getElementById("more");
const instead = document.getElementById("instead"); // shown where nothing is found
const suggested = document.getElementById("suggested");
const which = document.getElementById("which"); // names the suggestions on the 404 page
const title = document.title;
const hint = told?.textContent;

let catalogue = null; // a promise, once it was needed
let hostAnswers = queries !== undefined;
let isPartly = false; // true if the results came from the catalogue
let asked = 0;
let timer = 0;
let selected = -1;

export function startSearch() {
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, WAIT_MS);
  });
  field.addEventListener("keydown", onKey);
  field.form.addEventListener("submit", onSubmit);
  field.form.addEventListener("focusout", (event) => {
    if (!field.form.contains(event.relatedTarget)) close();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  });
  if (found) {
    const readAddress = () => {
      field.value = new URLSearchParams(location.search).get("q") ?? "";
      update();
    };
    more.addEventListener("click", showMore);
    addEventListener("popstate", readAddress);
    readAddress();
  }
  if (which) showSimilar();
}

function onKey(event) {
  const options = optionsShown();
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && options.length) {
    select((selected + step + options.length + 1) % (options.length + 1));
  } else if (event.key === "Enter" && options[selected]) {
    options[selected].click();
  } else if (event.key === "Escape") {
    if (list.hidden) {
      field.value = "";
      if (found) update();
    }
    close();
  } else return;
  event.preventDefault();
}

function onSubmit(event) {
  if (!found) return; // the browser goes to the search page
  event.preventDefault();
  clearTimeout(timer);
  update();
}

function optionsShown() {
  return list.hidden ? [] : list.querySelectorAll("[role=option]");
}

/** Moves the selection; the position after the last option selects none. */
function select(index) {
  const option = optionsShown()[index];
  list.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  selected = option ? index : -1;
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
}

function close() {
  suggest([]);
}

async function update() {
  const q = field.value.trim();
  const turn = ++asked;
  if (found) {
    history.replaceState(null, "", q ? `?${new URLSearchParams({ q })}` : location.pathname);
    document.title = q ? `${q} · ${title}` : title;
  }
  const answer = q ? await search(q, 1) : { repos: [], total: 0, message: "" };
  if (turn !== asked) return; // something newer was typed
  status.textContent = answer.message ?? messageOf(q, answer);
  if (found) show(answer);
  else suggest(answer.repos.slice(0, SUGGESTIONS));
}

function messageOf(q, { total, match, corrected, partly }) {
  const closest = total && match === "some" ? "No prompt has all of these words. Closest matches: " : "";
  const many = `${total ? total.toLocaleString("en") : "No"} prompt${total === 1 ? "" : "s"}`;
  const taken = (corrected ?? []).map(({ from, to }) => ` Searched for “${to}” instead of “${from}”.`);
  const where = partly ? " This host searches titles, descriptions and tags only." : "";
  return `${closest}${many} for “${q}”.${taken.join("")}${where}`;
}

/** One page of the matching repos, the total, and `match` and `corrected` as
 * in the API; or no repos, and a `message` that says why. */
async function search(q, page) {
  try {
    return await ask(q, page);
  } catch (error) {
    return { repos: [], total: 0, message: error.message };
  }
}

async function ask(q, page) {
  if (!/[\p{L}\p{N}]/u.test(q)) return { repos: [], total: 0 }; // no word to search for
  if (hostAnswers && (page === 1 || !isPartly)) {
    const answer = await get(`/api/v1/repos?${new URLSearchParams({ q, page })}`);
    const type = answer.headers.get("content-type") ?? "";
    if (answer.ok && type.includes("json")) {
      const { data, meta } = await answer.json();
      if (meta.q === q) {
        isPartly = false;
        return { repos: data, ...meta };
      }
      hostAnswers = false; // it did not see the query
    } else if ([400, 429].includes(answer.status) || (answer.status >= 500 && page > 1)) {
      const told = await answer.json().catch(() => null);
      throw new Error(told?.error?.message ?? "Search is temporarily unavailable. Try again in a moment.");
    } else if (answer.status < 500) {
      hostAnswers = false;
    } // else the service is down: the file stands in, and the next search asks again
  }
  isPartly = true;
  catalogue ??= fetchCatalogue().catch((error) => {
    catalogue = null;
    throw error;
  });
  const { repos, ...rest } = (await catalogue).search(q);
  const start = (page - 1) * SHOWN_AT_ONCE;
  return { repos: repos.slice(start, start + SHOWN_AT_ONCE), total: repos.length, partly: true, ...rest };
}

async function get(path) {
  try {
    return await fetch(root + path);
  } catch {
    throw new Error("The host cannot be reached. Try again in a moment.");
  }
}

async function fetchCatalogue() {
  status.textContent = "Loading the catalogue…";
  const answer = await get("/api/v1/catalogue.jsonl");
  if (!answer.ok) throw new Error("The catalogue cannot be loaded. Try again in a moment.");
  const { Catalogue } = await import("./catalogue.js");
  return Catalogue.read(await answer.text());
}

function suggest(repos) {
  list.replaceChildren(...repos.map((repo, index) => {
    const about = aboutOf(repo.description);
    const option = element(
      "a", { id: `result-${index}`, role: "option", ariaSelected: "false", href: pageOf(repo), tabIndex: -1 },
      element("b", { dir: "auto" }, repo.title), `${repo.owner}/${repo.name}`,
      isFound(about) ? element("span", { dir: "auto" }, ...marked(about)) : "",
    );
    return element("li", { role: "presentation" }, option);
  }));
  list.hidden = !repos.length;
  field.setAttribute("aria-expanded", String(!list.hidden));
  select(-1);
}

function show({ repos, total }) {
  const message = status.textContent;
  told.textContent = message || hint;
  found.replaceChildren(...repos.map(row));
  more.hidden = found.children.length >= total;
  instead.hidden = total > 0;
  document.getElementById("tips").hidden = !message;
  if (!total) showRows("/new.html");
}

/** Suggests the first prompts of a page, once. */
async function showRows(path) {
  if (suggested.children.length) return;
  const answer = await get(path).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  suggested.replaceChildren(...[...page.querySelectorAll(".rows > li")].slice(0, SUGGESTED));
}

/** For a missing or withdrawn prompt: those with similar names, of the owner, or new ones. */
async function showSimilar() {
  const wrong = decodeURI(location.pathname.slice(root.length + 1)).slice(0, field.maxLength);
  document.getElementById("wrong")?.replaceChildren(wrong);
  const words = wrong.replace(/[^\p{L}\p{N}]+/gu, " ").trim();
  const { repos } = words && hostAnswers ? await search(words, 1) : { repos: [] };
  const near = repos
    .map((repo) => [likeness(wrong, `${repo.owner}/${repo.name}`), repo])
    .filter(([degree]) => degree >= LIKENESS_MIN)
    .sort(([one], [other]) => other - one);
  suggested.replaceChildren(...near.slice(0, SUGGESTED).map(([, repo]) => row(repo)));
  if (!near.length) {
    const [owner] = wrong.match(/^[a-z\d-]+(?=\/[a-z])/) ?? [];
    which.textContent = `Prompts of ${owner}`;
    if (owner) await showRows(`/${owner}.html`);
    if (!suggested.children.length) which.textContent = "New prompts";
    await showRows("/new.html");
  }
  instead.hidden = !suggested.children.length;
}

/** The similarity of two names, from 0 to 1: Dice's coefficient of their pairs of letters. */
function likeness(one, other) {
  const [pairs, others] = [one, other].map(
    (name) => new Set([...name].slice(1).map((char, at) => name[at] + char)),
  );
  const shared = [...pairs].filter((pair) => others.has(pair)).length;
  return (2 * shared) / (pairs.size + others.size || 1);
}

async function showMore() {
  const turn = asked;
  const shown = found.children.length;
  const { repos, total, message } = await search(field.value.trim(), shown / SHOWN_AT_ONCE + 1);
  if (turn !== asked) return;
  if (message) {
    told.textContent = status.textContent = message;
    return;
  }
  found.append(...repos.map(row));
  found.children[shown]?.querySelector("a").focus();
  more.hidden = !repos.length || found.children.length >= total;
}

/** A repo as in the pages of lists, with what matched; a line of the catalogue has no times. */
function row(repo) {
  const { title: name, owner, updated_at: at } = repo;
  const about = aboutOf(repo.description);
  const tags = repo.tags.filter(isFound).join(", ");
  const isInText = field.value && ![name, repo.name, owner, tags, about].some(isFound);
  const why = Object.entries({ tag: tags, text: isInText && "Found in the text.", about })
    .filter(([, text]) => text)
    .flatMap(([term, text]) => [element("dt", {}, term), element("dd", { dir: "auto" }, ...marked(text))]);
  return element(
    "li", {},
    element("h3", { dir: "auto" }, element("a", { href: pageOf(repo) }, ...marked(name))),
    element("p", { className: "path" }, element("a", { href: `${root}/${owner}` }, owner), "/", ...marked(repo.name)),
    element("p", { className: "end" }, element("code", {}, repo.latest_version), at ? element("time", {}, at.slice(0, 10)) : ""),
    element("dl", { className: "why" }, ...why),
  );
}

/** What begins with a word of the query, without its ending. */
function wanted() {
  const words = field.value.match(/[\p{L}\p{N}]+/gu) ?? [];
  const stems = words.map((word) => word.replace(/(?<=.{3})(?:ing|es|s)$/, "")).join("|");
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${stems || "(?!)"})[\\p{L}\\p{N}]*`, "giu");
}

function isFound(text) {
  return wanted().test(text);
}

/** A text, with the words of the query marked. */
function marked(text) {
  const parts = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(wanted())) {
    parts.push(text.slice(end, index), element("mark", {}, word));
    end = index + word.length;
  }
  return [...parts, text.slice(end)];
}

/** A generated description is the beginning of the text, which says little for JSON or markup. */
function aboutOf(description) {
  if (/^(?:\{\s*["']|\[\s*(?:["'[]|\{(?!\{)))/.test(description)) return "JSON prompt.";
  return /^<[a-z!/]/i.test(description) ? "HTML or XML prompt." : description;
}

function pageOf(repo) {
  return `${root}/${repo.owner}/${repo.name}`;
}
