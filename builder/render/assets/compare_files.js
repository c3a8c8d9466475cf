// The files of two versions, and what the versions can do, on the page that compares them. Shows
// what templates/files.html and can_do.html show for a version and the one before.

import { compareTexts } from "./changes.js";
import { changesTable, counted, humanSize } from "./changes_table.js";
import { element } from "./site.js";

const BIT = "executable bit";
// Beyond these limits, files are shown by size and hash. The host limits reads, so files are few.
const LOADED_MAX = 30, LOADED_BYTES_MAX = 512 * 1024, ROWS_MAX = 1000, MS_MAX = 1000;
const TOO_LONG = "Not compared here, because the files before it were too long or too many.";

/** The changes of files, by path: `{path, old, young, kind}`. */
export function changedFiles(before = [], after = []) {
  const sides = [before, after].map((files) => new Map(files.map((file) => [file.path, file])));
  const paths = [...new Set([...before, ...after].map(({ path }) => path))].sort();
  const changes = paths.map((path) => ({ path, old: sides[0].get(path), young: sides[1].get(path) }));
  return changes.filter((change) => {
    const { old, young } = change;
    change.kind = !old ? "added" : !young ? "removed" : old.sha256 !== young.sha256 ? "changed" : BIT;
    return change.kind !== BIT || old.executable !== young.executable;
  });
}

/** Load the texts of changed files, as many as the limits allow. `load` gets a URL, and its name. */
export async function loadTexts(changes, load) {
  let filesLeft = LOADED_MAX, bytesLeft = LOADED_BYTES_MAX;
  await Promise.all(changes.map(async (change) => {
    const files = [change.old, change.young].filter(Boolean);
    const size = files.reduce((sum, file) => sum + file.size, 0);
    if (change.kind === BIT) return;
    if (files.length > filesLeft || size > bytesLeft) return;
    [filesLeft, bytesLeft] = [filesLeft - files.length, bytesLeft - size];
    const read = async (file) => (file ? textOf(await load(new URL(file.url).pathname, file.path)) : "");
    change.texts = await Promise.all([read(change.old), read(change.young)]);
  }));
}

function textOf(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** " 1 file added, 2 files changed."; empty if there are no changes. */
export function summaryOf(changes) {
  const parts = [...new Set(changes.map(({ kind }) => kind))].map((kind) => {
    const count = changes.filter((change) => change.kind === kind).length;
    return `${counted(count, "file")} ${kind === BIT ? `with another ${BIT}` : kind}`;
  });
  return parts.length ? ` ${parts.join(", ")}.` : "";
}

/** The elements that show the changes of files. */
export function fileChanges(changes, from, to, marks) {
  let rowsLeft = ROWS_MAX;
  const until = performance.now() + MS_MAX;
  return changes.map((change) => {
    const { path, kind, texts } = change;
    const noText = texts?.includes(null) && notText(change, from, to);
    const isCompared = texts && !noText && rowsLeft > 0 && performance.now() < until;
    const rows = isCompared ? compareTexts(...texts).rows : [];
    rowsLeft -= rows.length;
    const shown = rows.length ? [changesTable(rows, from, to, marks)]
      : kind === BIT ? [element("p", {}, "Only the executable bit has changed.")]
      : isCompared ? [element("p", {}, "The file is empty.")]
      : [element("p", {}, noText || TOO_LONG), facts(change, from, to)];
    const className = path.endsWith(".md") ? "file" : "file source";
    return element("details", { className, open: rows.length > 0 }, heading(change), ...shown);
  });
}

function notText({ old, young, texts }, from, to) {
  const side = !old || !young || texts[0] === texts[1] ? "" : ` in ${texts[0] === null ? from : to}`;
  return `Not text${side}, so there are no lines to compare.`;
}

function heading({ path, kind, old, young }) {
  const was = old?.executable, is = young?.executable;
  const bit = is && !was ? [" · ", element("b", {}, "executable")] : was && young && !is ? [" · no longer executable"] : [];
  return element(
    "summary", {}, element("h3", {}, element("code", {}, path)), " ",
    element("span", { className: "soft" }, kind, ...bit),
  );
}

function facts({ old, young }, from, to) {
  return element("dl", { className: "facts" }, ...[[from, old], [to, young]].filter(([, file]) => file).flatMap(([name, file]) => [
    element("dt", {}, name),
    element("dd", {}, `${humanSize(file.size)}, SHA-256 `, element("code", {}, file.sha256)),
  ]));
}

/** What is new and gone in the boxes of two pages of versions; `pages` are their HTML. */
export function abilityChanges(pages, [from, to]) {
  const boxes = pages.map((html) => new DOMParser().parseFromString(html, "text/html").getElementById("can-do"));
  if (!boxes.some(Boolean)) return [];
  const box = element(
    "section", { className: "panel can-do" },
    element("h2", {}, "What it can do: new and gone"),
  );
  const without = boxes.indexOf(null);
  if (without >= 0) {
    box.append(element("p", {}, `${[from, to][without]} is only a text, to which the rules were not applied.`));
    return [box];
  }
  const [old, young] = boxes.map(findingsOf);
  const list = element("dl", { className: "facts" });
  for (const rule of new Set([...young.keys(), ...old.keys()])) {
    const was = old.get(rule) ?? new Map(), is = young.get(rule) ?? new Map();
    const rows = [...changed(is, was, "ins", "new"), ...changed(was, is, "del", "gone")];
    if (rows.length) list.append(element("dt", {}, rule), element("dd", {}, element("ul", {}, ...rows)));
  }
  box.append(list.childElementCount ? list : element("p", {}, "The rules find nothing that is new or gone."));
  if (boxes.some((one) => one.querySelector("li.soft"))) {
    box.append(element("p", { className: "soft" }, "Only the findings that the pages of both versions list are compared."));
  }
  box.append(document.importNode(boxes[1].querySelector(".meta"), true));
  return [box];
}

/** The findings of each rule: their items, by name. */
function findingsOf(box) {
  return new Map([...box.querySelectorAll(":scope > dl > dt")].map((term) => [
    term.textContent,
    new Map([...term.nextElementSibling.querySelectorAll("li:has(code)")].map((item) => [item.querySelector("code").textContent, item])),
  ]));
}

function changed(items, others, tag, word) {
  return [...items].filter(([name]) => !others.has(name)).map(([, item]) => {
    const row = document.importNode(item, true);
    const code = row.querySelector("code");
    code.replaceWith(element(tag, {}, code.cloneNode(true)), ` ${word}`);
    return row;
  });
}
