// The results of a search, with filters; and prompts where nothing is found.

import {
  SHOWN_AT_ONCE, aboutOf, addressOf, answerTo, field, get, isChord, marked, pageOf, queries, root, search, showBy, status,
} from "./search.js";
import { byId, element } from "./site.js";

const LATE_MS = 400;
const SUGGESTED = 3;
const LIKENESS_MIN = 0.5;
const WORDS_MAX = 5;
const LETTERS_MIN = 3;
// Without the service: texts read for lines, and the part of each.
const TEXTS_READ = 10;
const TEXT_BYTES_MAX = 16_384;
const SIGNS = { prompt: "{}", skill: "/", chat: "“”" };

const [found, heading, told, chosen, facets, more, instead, tips, suggested, which] =
  ["found", "heading", "told", "chosen", "facets", "more", "instead", "tips", "suggested", "which"].map(byId);
const title = document.title;
const hint = told?.textContent;
let filters = {}; // the tags, with commas, and the owner in the address
let offering = 0;

function startResults() {
  more.addEventListener("click", showMore);
  field.form.addEventListener("submit", (event) => {
    event.preventDefault();
    update();
  });
  document.addEventListener("keydown", stepThroughResults);
  document.addEventListener("click", onFilter);
  addEventListener("popstate", readAddress);
  const desk = matchMedia("(min-width: 46rem)");
  desk.onchange = () => { facets.open = desk.matches; };
  desk.onchange();
  showBy(update);
  readAddress();
}

/** The arrow keys go from the field through the results. */
function stepThroughResults(event) {
  const stops = [field, ...found.querySelectorAll("h3 a")];
  const step = !event.shiftKey && !isChord(event) && { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = stops.indexOf(document.activeElement);
  if (!step || at < 0 || !stops[at + step]) return;
  event.preventDefault();
  stops[at + step].focus();
}

function readAddress() {
  const given = new URLSearchParams(location.search);
  field.value = given.get("q") ?? "";
  filters = Object.fromEntries([...given].filter(([key, value]) => value && ["tag", "owner"].includes(key)));
  update();
}

/** A link to a filter changes the address and searches again, without a new page. */
function onFilter(event) {
  const link = event.target.closest("#chosen a, #facets a");
  if (!link || event.shiftKey || isChord(event)) return;
  event.preventDefault();
  history.pushState(null, "", link.href);
  readAddress();
  heading.focus();
}

async function update() {
  clearTimeout(offering);
  const q = field.value.trim();
  history.replaceState(null, "", q ? addressOf(q, filters) : location.pathname);
  document.title = q ? `${q} · ${title}` : title;
  const late = setTimeout(() => { told.textContent = "Searching…"; }, LATE_MS);
  const answer = await answerTo(q, filters);
  clearTimeout(late);
  if (!answer) return;
  const { total, count, notes, failure, isFinal, label = "" } = answer;
  const labels = label.split(",").map((name) => `label:${name}`);
  const others = q.split(/\s+/).filter((word) => !labels.includes(word.normalize("NFKC").toLowerCase()));
  heading.textContent = count.replace(q, () => others.join(" ").replace(/(.{70}).+/su, "$1…")).replace(" for “”", "") || "Search";
  told.textContent = q ? notes : hint;
  found.replaceChildren();
  append(answer);
  if (failure) {
    more.textContent = "Try again";
    more.hidden = isFinal;
  }
  showFilters(q, others, answer);
  instead.hidden = total > 0 || Boolean(failure);
  tips.hidden = !q;
  if (!instead.hidden) showRows("/new.html");
  if (!total && others.length > 1) offering = setTimeout(() => offerWords(q, others), LATE_MS);
}

/** Links to words that find something alone. */
async function offerWords(q, words) {
  const links = [];
  for (const word of words.filter(({ length }) => length >= LETTERS_MIN).slice(0, WORDS_MAX)) {
    const { total, corrected } = await search(word, 1, { ...filters, page_size: 1 });
    if (field.value.trim() !== q) return;
    if (total && !corrected) links.push(", ", element("a", { href: addressOf(word, filters) }, word));
  }
  if (links.length) told.replaceChildren("Search for ", ...links.slice(1));
}

/** Adds rows. Without the service, lines of texts follow later. */
function append({ repos, matches, total, lineIn }) {
  const rows = repos.map((repo, at) => row(repo, matches[at]));
  found.append(...rows);
  const left = total - found.children.length;
  more.hidden = !repos.length || left < 1;
  more.textContent = `Show ${Math.min(SHOWN_AT_ONCE, left)} more`;
  if (!lineIn) return;
  const inTexts = repos.map((_, at) => at).filter((at) => matches[at].in[0] === "text");
  for (const at of inTexts.slice(0, TEXTS_READ)) addLine(repos[at], matches[at], rows[at], lineIn);
}

async function addLine(repo, match, item, lineIn) {
  const path = `/api/v1/repos/${repo.owner}/${repo.name}/versions/${repo.latest_version}.body.txt`;
  const answer = await load(path, { range: `bytes=0-${TEXT_BYTES_MAX - 1}` });
  if (!answer) return; // the row says that the words are in the text
  const text = await answer.text();
  const { line, words } = lineIn(text.slice(0, TEXT_BYTES_MAX)); // a host without ranges sends more
  if (line) item.querySelector(".why").replaceWith(why(repo, { ...match, line, words }));
}

/** A file of the site, or null. */
async function load(path, headers) {
  const answer = await get(path, headers).catch(() => null);
  return answer?.ok ? answer : null;
}

async function showMore() {
  const shown = found.children.length;
  if (!shown) return update(); // the search failed
  const q = field.value.trim();
  const answer = await search(q, shown / SHOWN_AT_ONCE + 1, filters);
  if (field.value.trim() !== q || found.children.length !== shown) return;
  if (answer.failure) {
    told.textContent = status.textContent = answer.failure;
    return;
  }
  append(answer);
  found.children[shown]?.querySelector("a").focus();
}

/** Links that take a filter off or add one. Labels are words of the query. */
function showFilters(q, others, { total, label = "", facets: { tags = [], labels = [], owners = [] } = {} }) {
  const given = { ...filters, label };
  const namesOf = (key) => given[key]?.split(",").filter(Boolean) ?? [];
  const link = (text, key, names, className = "") => element("a", {
    className, href: key === "label" ? addressOf([...others, ...names.map((name) => `label:${name}`)].join(" "), filters)
      : addressOf(q, { ...filters, [key]: names.join(",") }),
  }, text);
  chosen.replaceChildren(...Object.keys(given).flatMap((key) => namesOf(key).map((name, at, names) => (
    element("li", {}, link(`${key} ${name} ×`, key, names.toSpliced(at, 1), "label"))
  ))));
  chosen.hidden = !chosen.children.length;
  const groups = Object.entries({ Tag: tags, Label: labels, Owner: owners }).flatMap(([heading, names]) => {
    const key = heading.toLowerCase();
    const items = names.filter(({ count }) => count < total).map(({ name, count }) => element(
      "li", {}, link(name, key, key === "owner" ? [name] : [...namesOf(key), name]),
      element("span", { className: "soft" }, count.toLocaleString("en")),
    ));
    return items.length ? [element("h2", {}, heading), element("ul", { className: "names" }, ...items)] : [];
  });
  facets.replaceChildren(facets.firstElementChild, ...groups);
  facets.parentNode.hidden = !groups.length;
}

/** A repo as in the pages of lists, with what matched; a line of the catalogue has no times. */
function row(repo, match) {
  const { title: name, owner, updated_at: at, pulls } = repo;
  // The name mostly has the title's words: one mark is enough.
  const words = match.in.includes("title") ? [] : match.words;
  return element(
    "li", {},
    element("span", { className: "kind", role: "img", ariaLabel: match.kind, title: match.kind }, SIGNS[match.kind]),
    element("h3", { dir: "auto" }, element("a", { href: pageOf(repo) }, ...marked(name, match.words))),
    element("p", { className: "path" }, element("a", { href: `${root}/${owner}` }, ...marked(owner, words)), "/", ...marked(repo.name, words)),
    why(repo, match),
    match.without?.length ? element("small", {}, `Without: ${match.without.join(", ")}`) : "",
    element(
      "p", { className: "end" }, element("code", {}, repo.latest_version), at ? element("time", { dateTime: at }, day(at)) : "",
      pulls ? element("span", {}, `${pulls.toLocaleString("en")} pull${pulls === 1 ? "" : "s"}`) : "",
    ),
  );
}

/** As elsewhere: 28 Nov 2026. */
const day = (time) => new Date(time).toUTCString().slice(5, 16).replace(/^0/, "");

/** The page of a prompt, at a line: browsers look for its longest part without marks. */
function linkTo(repo, line) {
  const [longest] = line.match(/[\p{L}\p{N}][^…*_`{}[\]<>#|\\]*/gu).sort((one, other) => other.length - one.length);
  return `${pageOf(repo)}#:~:text=${encodeURIComponent(longest.trim()).replaceAll("-", "%2D")}`;
}

/** The reason: a line, or tags or labels if the title does not show it; else the description. */
function why(repo, { in: places, words, line, labels = [] }) {
  const tags = places.includes("title") ? [] : repo.tags.filter((tag) => marked(tag, words).length > 1);
  const named = tags.length ? `Tag: ${tags.join(", ")}` : labels.length ? `Label: ${labels.join(", ")}` : "";
  const reason = line ?? (places[0] === "text" ? "Found in the text." : named);
  const parts = marked(reason || aboutOf(repo), words);
  return element(
    "p", { className: reason ? "why" : "about", dir: "auto" },
    ...(line ? [element("a", { href: linkTo(repo, line) }, ...parts)] : parts),
  );
}

/** Suggests the first prompts of a page, once. */
async function showRows(path) {
  if (suggested.children.length) return;
  const answer = await load(path);
  if (!answer) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const list = page.querySelector(".rows");
  suggested.previousElementSibling.hidden = !list;
  // A hub without prompts, or a page to sign in.
  if (!list) return tips?.replaceWith(page.getElementById("no-prompts") ?? tips);
  suggested.className = list.className; // shows the dates that sort them
  suggested.replaceChildren(...[...list.children].slice(0, SUGGESTED));
}

/** For a missing prompt: similar names, the owner's, or new ones. */
async function showSimilar() {
  // Decoded as a query is, because decodeURI refuses bytes that are not UTF-8.
  const path = location.pathname.slice(root.length + 1).replace(/[&+]/g, encodeURIComponent);
  const wrong = new URLSearchParams(`q=${path}`).get("q").slice(0, field.maxLength);
  const place = byId("wrong"); // on the 404 page only
  place?.replaceChildren(wrong);
  const words = wrong.replace(/[^\p{L}\p{N}]+/gu, " ").trim();
  const { repos, matches } = words && queries !== undefined ? await search(words, 1, {}) : { repos: [] };
  // One owner's prompts are not alike for that.
  const degreeOf = ({ owner, name }) => (
    wrong.startsWith(`${owner}/`) ? likeness(wrong.slice(owner.length + 1), name) : likeness(wrong, `${owner}/${name}`)
  );
  const near = repos.filter((one) => degreeOf(one) >= LIKENESS_MIN)
    .sort((one, other) => degreeOf(other) - degreeOf(one)).slice(0, SUGGESTED);
  suggested.replaceChildren(...near.map((repo) => (
    row(repo, { in: [], words: [], kind: matches[repos.indexOf(repo)].kind })
  )));
  if (!near.length) {
    const [owner] = wrong.match(/^[a-z\d-]+(?=\/[a-z])/) ?? [];
    which.textContent = `Prompts of ${owner}`;
    if (owner) await showRows(`/${owner}.html`);
    if (!suggested.children.length) which.textContent = "New prompts";
    await showRows("/new.html");
  }
  instead.hidden = !suggested.children.length;
  if (place) field.value ||= words;
}

/** From 0 to 1: Dice's coefficient of pairs of letters. */
function likeness(one, other) {
  const [pairs, others] = [one, other].map(
    (name) => new Set([...name].slice(1).map((char, at) => name[at] + char)),
  );
  return (2 * pairs.intersection(others).size) / (pairs.size + others.size || 1);
}

if (which) showSimilar();
else startResults();
