// The changes between two texts, as rows of lines with marked words, in bounded time for any
// text. Equivalent to builder/render/hunks.py, builder/text/line_diff.py and word_diff.py.

import { diffArrays } from "./jsdiff.js";

// The build inserts the rules here: changes_script in builder/render/clients.py.
const RULES = {};
export const { MARKS_MAX, SUSPECT, INVISIBLE, CONTROL } = RULES;
const { ROWS_MAX, CONTEXT_LINES } = RULES;
const TOKEN = new RegExp(RULES.TOKEN, "gu");
const LETTER = /^\{*[\p{L}\p{N}]/u;
// Lines of a kind of row.
const LINES = { removed: 1, added: 1, changed: 2 };

// With few lines in common, at most this many changes are searched for.
const LINE_EDITS_MAX = 4_000, WORD_EDITS_MAX = 1_000;
// The limit in milliseconds. Ordinary texts take a few.
const LINES_MS_MAX = 300, WORDS_MS_MAX = 200;
// The limit for all lines that replace others. Beyond it, lines are shown without marked words.
const COMPARED_CHARS_MAX = 100_000;

/**
 * The rows of the changes from `before` to `after`; empty if they are equal. As in
 * builder.render.hunks.Row: `{kind, oldNumber, newNumber, segments, isUnended, leftOut}`.
 * `removed` and `added` count lines.
 * `isAligned`: true if the limits were enough to find all equal lines.
 */
export function compareTexts(before, after) {
  const oldLines = splitLines(before), newLines = splitLines(after);
  const budget = { edits: LINE_EDITS_MAX, ms: LINES_MS_MAX, isEnough: true };
  const blocks = findBlocks(oldLines, newLines, budget);
  const changed = blocks.filter((block) => !block.isSame);
  const count = (from, to) => changed.reduce((sum, block) => sum + block[to] - block[from], 0);
  const removed = count("oldStart", "oldEnd"), added = count("newStart", "newEnd");
  const rows = [];
  for (const row of changed.length ? allRows(blocks, oldLines, newLines) : []) {
    if (rows.length === ROWS_MAX) break;
    rows.push(row);
  }
  const leftOut = rows.reduce((left, { kind }) => left - (LINES[kind] ?? 0), removed + added);
  if (leftOut) rows.push({ kind: "rest", leftOut });
  return { rows, removed, added, isAligned: budget.isEnough };
}

/** Lines end at line feeds only. */
function splitLines(text) {
  const lines = text.split("\n");
  const last = lines.pop();
  return [...lines.map((line) => `${line}\n`), ...(last ? [last] : [])];
}

/**
 * Parts of two lists that are equal, or that replace each other, in order. `budget` has the
 * remaining edits and time; when it runs out, the rest counts as replaced.
 */
function findBlocks(before, after, budget) {
  let start = 0, end = 0;
  const shortest = Math.min(before.length, after.length);
  while (start < shortest && before[start] === after[start]) start += 1;
  while (end < shortest - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const oldEnd = before.length - end, newEnd = after.length - end;
  const pairs = matchedPairs(before.slice(start, oldEnd), after.slice(start, newEnd), budget);

  const blocks = [];
  let oldAt = 0, newAt = 0;
  const add = (isSame, oldTo, newTo) => {
    if (oldTo === oldAt && newTo === newAt) return;
    const last = blocks.at(-1);
    if (isSame && last?.isSame) Object.assign(last, { oldEnd: oldTo, newEnd: newTo });
    else blocks.push({ isSame, oldStart: oldAt, oldEnd: oldTo, newStart: newAt, newEnd: newTo });
    [oldAt, newAt] = [oldTo, newTo];
  };
  add(true, start, start);
  for (const [i, j] of pairs) {
    add(false, start + i, start + j);
    add(true, start + i + 1, start + j + 1);
  }
  add(false, oldEnd, newEnd);
  add(true, before.length, after.length);
  return blocks;
}

/** The positions of equal items in two lists. Items in only one of them are not compared at all. */
function matchedPairs(before, after, budget) {
  if (!before.length || !after.length) return [];
  const numbers = new Map(); // short to compare, however long the lines are
  const numbered = (items) => items.map((item) => {
    if (!numbers.has(item)) numbers.set(item, numbers.size);
    return numbers.get(item);
  });
  const oldIds = numbered(before), newIds = numbered(after);
  const oldSet = new Set(oldIds), newSet = new Set(newIds);
  const oldKept = [...oldIds.keys()].filter((at) => newSet.has(oldIds[at]));
  const newKept = [...newIds.keys()].filter((at) => oldSet.has(newIds[at]));
  if (!oldKept.length) return [];
  const began = performance.now();
  const parts = budget.isEnough && diffArrays(
    oldKept.map((at) => oldIds[at]), newKept.map((at) => newIds[at]),
    { maxEditLength: budget.edits, timeout: budget.ms },
  );
  budget.ms -= performance.now() - began;
  if (!parts) {
    budget.isEnough = false;
    return [];
  }
  const pairs = [];
  let oldAt = 0, newAt = 0;
  for (const { added, removed, count } of parts) {
    if (removed) oldAt += count;
    else if (added) newAt += count;
    else for (let left = count; left; left -= 1) pairs.push([oldKept[oldAt++], newKept[newAt++]]);
  }
  return pairs;
}

function* allRows(blocks, oldLines, newLines) {
  const budget = { edits: WORD_EDITS_MAX, ms: WORDS_MS_MAX, isEnough: true };
  let charsLeft = COMPARED_CHARS_MAX;
  for (const [index, block] of blocks.entries()) {
    if (block.isSame) {
      yield* sameRows(block, oldLines, index === 0, index === blocks.length - 1);
      continue;
    }
    const before = oldLines.slice(block.oldStart, block.oldEnd);
    const after = newLines.slice(block.newStart, block.newEnd);
    const chars = charsToCompare(before, after);
    const isCompared = chars > 0 && chars <= charsLeft;
    if (isCompared) charsLeft -= chars;
    const [old, young] = [before.join(""), after.join("")];
    const pieces = isCompared ? markWords(old, young, budget) : [[old, "-"], [young, "+"]];
    yield* changedRows(pieces, block.oldStart + 1, block.newStart + 1);
  }
}

/** The rows for lines and those that replace them: one for both if each line has its own. */
function* changedRows(pieces, oldNumber, newNumber) {
  if (!pieces.some(([text, sign]) => sign && text.includes("\n"))) {
    const shown = { "<": "-", ">": "+" };
    const lines = splitLinesOf(pieces.map(([text, sign]) => [text, shown[sign] ?? sign]));
    if (lines.every(isAkin)) {
      for (const segments of lines) yield { kind: "changed", oldNumber: oldNumber++, newNumber: newNumber++, segments };
      return;
    }
    pieces = lines.flatMap((line) => (isAkin(line) ? line : ["-", "+"].map((side) => [textOf(line, side), side])));
  }
  for (const [kind, sign, unmarked] of [["removed", "-", "<"], ["added", "+", ">"]]) {
    const side = pieces.map(([text, one]) => [text, one === unmarked ? "" : one]).filter(([, one]) => !one || one === sign);
    for (const line of splitLinesOf(side)) {
      const segments = isAkin(line) ? line : [[textOf(line, sign), sign]];
      const number = sign === "-" ? { oldNumber: oldNumber++ } : { newNumber: newNumber++ };
      yield { kind, ...number, segments, isUnended: !segments.at(-1)[0].endsWith("\n") };
    }
  }
}

/** The lines next to changes, and gaps for the others. */
function* sameRows({ oldStart, oldEnd, newStart }, lines, isFirst, isLast) {
  const length = oldEnd - oldStart;
  const above = isFirst ? 0 : Math.min(CONTEXT_LINES, length);
  const leftOut = length - above - (isLast ? 0 : Math.min(CONTEXT_LINES, length - above));
  for (let at = 0; at < length; at += 1) {
    if (at === above && leftOut) {
      yield { kind: "gap", leftOut };
      at += leftOut;
      if (at === length) return;
    }
    yield {
      kind: "same", oldNumber: oldStart + at + 1, newNumber: newStart + at + 1, segments: [[lines[oldStart + at], ""]],
    };
  }
}

function charsToCompare(before, after) {
  if (!before.length || !after.length || before.length + after.length > ROWS_MAX) return 0;
  return [...before, ...after].reduce((sum, line) => sum + line.length, 0);
}

/** The pieces of some lines, and of the lines that replace them, as one text. */
function markWords(before, after, budget) {
  const [oldTokens, newTokens] = [before, after].map((text) => text.match(TOKEN));
  const [oldWords, newWords] = [oldTokens, newTokens].map((tokens) => tokens.map((token) => token.trimStart()));
  if (!haveMuchInCommon(new Set(oldWords), new Set(newWords))) return [[before, "-"], [after, "+"]];
  const pieces = [];
  const addSpaces = (gone, come, [old, young]) => {
    const [was, is] = [gone, come].map((text) => text.slice(0, text.length - text.trimStart().length));
    pieces.push(...(was === is ? [[was, ""]] : [[was, old], [is, young]]));
  };
  for (const run of keptAndChanged(findBlocks(oldWords, newWords, budget), oldWords)) {
    const gone = oldTokens.slice(run.oldStart, run.oldEnd), come = newTokens.slice(run.newStart, run.newEnd);
    if (run.isKept) {
      for (const [at, token] of gone.entries()) {
        const isWrapped = token.includes("\n") !== come[at].includes("\n");
        addSpaces(token, come[at], isWrapped ? "<>" : "-+");
        pieces.push([token.trimStart(), ""]);
      }
    } else {
      // The space before an inserted or removed word usually exists on both sides.
      const [old, young] = [gone.join(""), come.join("")];
      addSpaces(old, young, [old.trim() ? "<" : "-", young.trim() ? ">" : "+"]);
      pieces.push([old.trimStart(), "-"], [young.trimStart(), "+"]);
    }
  }
  return pieces;
}

function haveMuchInCommon(before, after) {
  const chars = (words) => words.reduce((sum, word) => sum + word.length, 0);
  const shortest = Math.min(chars([...before]), chars([...after]));
  return shortest > 0 && 5 * chars([...before].filter((word) => after.has(word))) >= shortest;
}

/** Kept and changed runs, alternating. Punctuation alone does not separate two changes. */
function keptAndChanged(blocks, oldWords) {
  const runs = [];
  for (const [index, block] of blocks.entries()) {
    const isAtEnd = index === 0 || index === blocks.length - 1;
    const isKept = block.isSame
      && (isAtEnd || oldWords.slice(block.oldStart, block.oldEnd).some((word) => LETTER.test(word)));
    const last = runs.at(-1);
    if (last?.isKept === isKept) Object.assign(last, { oldEnd: block.oldEnd, newEnd: block.newEnd });
    else runs.push({ ...block, isKept });
  }
  return runs;
}

/** The lines of pieces; neighbours with the same sign are one. */
function splitLinesOf(pieces) {
  const lines = [[]];
  for (const [text, sign] of pieces) {
    for (const part of splitLines(text)) {
      if (lines.at(-1).at(-1)?.[0].endsWith("\n")) lines.push([]);
      const line = lines.at(-1);
      if (line.at(-1)?.[1] === sign) line.at(-1)[0] += part;
      else line.push([part, sign]);
    }
  }
  return lines[0].length ? lines : [];
}

function textOf(line, side) {
  return line.map(([text, sign]) => (!sign || sign === side ? text : "")).join("");
}

/** False if a line keeps so little of a side that it counts as another line. */
function isAkin(line) {
  const kept = line.reduce((sum, [text, sign]) => sum + (sign || !text.trim() ? 0 : text.length), 0);
  return ["-", "+"].every((side) => kept * 3 >= textOf(line, side).length);
}
