// Shows the changes between two texts, as the pages of versions do (templates/changes.html), and
// invisible characters (builder/text/hidden_chars.py). Texts are inserted as text only.

import { CONTROL, INVISIBLE, MARKS_MAX, SUSPECT } from "./changes.js";
import { element } from "./site.js";

const suspect = new RegExp(SUSPECT, "u");
// A run of the same character is one mark.
const invisible = new RegExp(`(${INVISIBLE})\\1*`, "gu");
const invisibleOrReturn = new RegExp(`(${INVISIBLE}|\\r)\\1*`, "gu");
const control = new RegExp(`^${CONTROL}`, "u");

export function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}

export function humanSize(bytes) {
  return bytes < 1024 ? counted(bytes, "byte") : `${(bytes / 1024).toFixed(1)} KiB`;
}

/** The number of marks left for all texts of a page. */
export class Marks {
  left = MARKS_MAX;
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
  if (kind === "gap" || kind === "rest") {
    const told = kind === "gap" ? `${counted(leftOut, "line")} unchanged`
      : `${counted(leftOut, "more line")} changed; see the raw texts`;
    return element("tr", { className: "gap" }, element("td", { colSpan: 4 }, told));
  }
  const text = element("td", { dir: "auto" });
  const isChange = kind !== "same";
  for (const [piece, isChanged] of segments) {
    const shown = visible(piece, marks, isChange && isChanged);
    if (isChanged) text.append(element(kind === "removed" ? "del" : "ins", {}, ...shown));
    else text.append(...shown);
  }
  if (isUnended && isChange) text.append(" ", element("small", {}, "no line break at the end"));
  return element(
    "tr", isChange ? { className: kind } : {},
    element("td", {}, oldNumber ?? ""), element("td", {}, newNumber ?? ""),
    element("td", {}, ...(isChange ? [unseen(kind)] : [])), text,
  );
}

/** Nodes that show a text with its invisible characters; only a part of it when no marks are left. */
export function visible(text, marks, isReturnShown = false) {
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

function unseen(text) {
  return element("span", { className: "unseen" }, text);
}
