// Shows the changes between two texts, as the pages of versions do (templates/changes.html), and
// invisible characters (builder/text/hidden_chars.py). Texts are inserted as text only.

import { CONTROL, INVISIBLE, SUSPECT } from "./changes.js";
import { element } from "./site.js";

const suspect = new RegExp(SUSPECT, "u");
// A run of the same character is one mark.
const [invisible, invisibleOrReturn] = [INVISIBLE, `${INVISIBLE}|\\r`].map((one) => new RegExp(`(${one})\\1*`, "gu"));
const control = new RegExp(`^${CONTROL}`, "u");
const SIGNS = { removed: "−", added: "+", changed: "±" };
const PIECE_MAX = 2_000, START = 1_000, END = 500;
const TAGS = { "-": "del", "+": "ins" };

export function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}

export function humanSize(bytes) {
  return bytes < 1024 ? counted(bytes, "byte") : `${(bytes / 1024).toFixed(1)} KiB`;
}

/** A table of `rows`, as `compareTexts` gives them; `from` and `to` name the sides. */
export function changesTable(rows, from, to, marks) {
  const heads = [`Line in ${from}`, `Line in ${to}`, "Change", "Text"];
  return element(
    "table", { className: "changes" },
    element("caption", { className: "unseen" }, `What changed from ${from} to ${to}`),
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, unseen(head))))),
    element("tbody", {}, ...rows.map((row) => tableRow(row, marks))),
  );
}

function tableRow({ kind, oldNumber, newNumber, segments, isUnended, leftOut }, marks) {
  if (!segments) {
    const told = kind === "gap" ? `${counted(leftOut, "line")} unchanged`
      : `${counted(leftOut, "more line")} changed; see the raw texts`;
    return element("tr", { className: "gap" }, element("td", { colSpan: 5 }, told));
  }
  const isChange = kind !== "same";
  const isWhole = segments.length === 1 && segments[0][1];
  const pieces = segments.flatMap(([text, change]) => {
    const sign = isWhole ? "" : change;
    const shown = cut(text, marks, sign);
    return sign ? [element(TAGS[sign], {}, ...shown)] : shown;
  });
  const text = element("td", { className: kind === "changed" ? "was" : "", dir: "auto" }, ...pieces);
  if (isUnended && isChange) text.append(" ", element("small", {}, "no line break at the end"));
  const row = element(
    "tr", isChange ? { className: isWhole ? `${kind} whole` : kind } : {},
    ...[oldNumber, newNumber].map((number) => element("td", {}, number ?? "")),
    element("td", isChange ? { ariaLabel: kind } : {}, SIGNS[kind] ?? ""), text,
  );
  // The new side, beside the old one.
  if (kind === "added") text.before(element("td", { className: "to" }));
  else if (newNumber) row.append(Object.assign(text.cloneNode(true), { className: "to", ariaHidden: "true" }));
  return row;
}

/** Nodes that show a piece of a line, without its middle if it is very long. */
function cut(text, marks, sign) {
  const characters = text.length > PIECE_MAX ? [...text] : [];
  if (characters.length <= PIECE_MAX) return visible(text, marks, sign);
  const [start, end] = [characters.splice(0, START), characters.splice(-END)].map((part) => visible(part.join(""), marks, sign));
  const left = counted(characters.length, "character");
  return [...start, " ", element("em", {}, `… ${left} not shown …`), " ", ...end];
}

/** Nodes that show a text with its invisible characters; only a part of it when no marks are left. */
export function visible(text, marks, isReturnShown) {
  if (!suspect.test(text)) return [text];
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(isReturnShown ? invisibleOrReturn : invisible)) {
    nodes.push(text.slice(end, found.index));
    end = found.index + found[0].length;
    if (!marks.left) {
      const left = counted(text.length - found.index, "more character");
      return [...nodes, element("em", {}, `… ${left} not shown`)];
    }
    marks.left -= 1;
    nodes.push(mark(found));
  }
  return [...nodes, text.slice(end)];
}

function mark([run, character]) {
  const count = run.length / character.length;
  const number = character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  const title = `U+${number}${count > 1 ? ` ×${count.toLocaleString("en")}` : ""}`;
  // An element with a direction isolates the character's effect on the order of others.
  const made = element("span", { className: "invisible", dir: "ltr", title }, control.test(character) ? "" : run);
  made.dataset.code = title;
  return made;
}

export function unseen(text) {
  return element("span", { className: "unseen" }, text);
}
