// Searches the catalogue as the server searches its index, for hosts that answer no queries. The shell
// client does the same in client/search.py; tests hold both to one table.

// The build inserts the rules here: builder/search/rules.py.
const RULES = {};
const { VALUES, UNSPACED, MARKS } = RULES;
const STOP = new Set(RULES.STOP);
const FREQUENT = new Set(RULES.FREQUENT);
const SYNONYMS = new Map(Object.entries(RULES.SYNONYMS));
const STEM_STEPS = RULES.STEM_STEPS.map((step) => new Map(
  Object.entries(step).map(([suffix, [condition, ...rest]]) => [suffix, [new RegExp(condition), ...rest]]),
));
const SUFFIX_CHARS_MAX = Math.max(...STEM_STEPS.flatMap((step) => [...step.keys()].map((one) => one.length)));
const RUN = `[${UNSPACED}][${UNSPACED}${MARKS}]*`;
const LETTER = `(?![${UNSPACED}])[\\p{L}\\p{N}]`;
const TOKEN = new RegExp(
  `(${RUN})|${RULES.SIGNED}|${LETTER}(?:${LETTER}|[${MARKS}]|['’](?=${LETTER}))*`, "gu",
);
const ASCII_TOKEN = new RegExp(`${RULES.SIGNED}|[a-z0-9]+(?:'[a-z0-9]+)*`, "g");
const JOINED = new RegExp(RULES.JOINED, "g");
const BEGINS_RUN = new RegExp(`^${RUN}`, "u");
// A posting is the number of a repo times this, plus the value of the word's best place there.
const POSTING = 32;
// After this many repos, the page handles events before it continues.
const ADDED_AT_ONCE = 2000;
// Of a larger catalogue, only the first repos are searched: 20,000 take about 5 MB to load, and 150 MB of memory.
const REPOS_MAX = 20_000;
// A line, or a part of a longer one.
const LINE = /[^\n]{1,160}(?!\S)|[^\n]{1,160}/g;

/** The words of a text, with apostrophes, joined ones first. Unspaced scripts give pairs. */
function tokensOf(text) {
  const plain = folded(text);
  return [...(plain.match(JOINED) ?? []), ...partsOf(plain)];
}

const isAscii = (text) => /^[\0-\x7f]*$/.test(text);

function folded(text) {
  if (isAscii(text)) return text.toLowerCase();
  const folded = foldCase(text.normalize("NFKC")).normalize("NFKC");
  return folded.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").normalize("NFC");
}

function partsOf(plain) {
  if (isAscii(plain)) return plain.match(ASCII_TOKEN) ?? [];
  return [...plain.matchAll(TOKEN)].flatMap(([token, run]) => {
    if (run === undefined) return [token];
    const characters = [...run];
    return characters.map((one, at) => one + (characters[at + 1] ?? ""));
  });
}

/** Unicode's case folding, as far as toLowerCase differs from it for scripts in use. */
function foldCase(text) {
  return text.toLowerCase().replaceAll("ß", "ss").replaceAll("ς", "σ");
}

/** The word without apostrophes. */
function surfaceOf(token) {
  const plain = token.replace(/['’]/g, "");
  if (plain.length <= RULES.WORD_CHARS_MAX) return plain;
  return [...plain].slice(0, RULES.WORD_CHARS_MAX).join("");
}

const stems = new Map();

/** The form under which a word is found. */
function stemOf(token) {
  let stem = stems.get(token);
  if (stem === undefined) {
    const surface = surfaceOf(token);
    const isEnglish = /^[a-z]+$/.test(surface);
    stem = isEnglish ? stemmed(surfaceOf(token.replace(/['’]s$/, ""))) : surface;
    stems.set(token, stem);
  }
  return stem;
}

function stemmed(word) {
  if (word.length < 3) return word;
  let stem = word.replace(/^y/, "Y");
  for (const step of STEM_STEPS) {
    for (let at = Math.max(0, stem.length - SUFFIX_CHARS_MAX); at < stem.length; at++) {
      const rule = step.get(stem.slice(at));
      if (!rule) continue;
      const [condition, ending] = rule;
      if (condition.test(stem.slice(0, at))) stem = stem.slice(0, at) + ending;
      break;
    }
  }
  return stem.replace(/^Y/, "y");
}

/** The words of a short text, joined into one. */
function wholeOf(text) {
  return partsOf(folded(text)).map(stemOf).join("_");
}

/** The first different words, each at its last place. A run's last character is in a pair. */
function queryWords(q) {
  const once = new Map();
  let before = [];
  for (const token of tokensOf(q)) {
    const characters = [...token];
    const isRest = characters.length === 1 && before.length === 2 && before[1] === token;
    if (!(isRest && BEGINS_RUN.test(token))) {
      const word = { stem: stemOf(token), surface: surfaceOf(token) };
      if (!once.delete(word.stem) && once.size === RULES.QUERY_WORDS_MAX) break;
      once.set(word.stem, word);
    }
    before = characters;
  }
  return [...once.values()];
}

/** The words of a text, as they are written there, that a target means. */
function wordsMeant(text, targets) {
  const isMeant = (part) => targets.some(({ stems, prefix }) => (
    stems.includes(stemOf(part)) || (prefix && surfaceOf(part).startsWith(prefix))
  ));
  const lower = text.toLowerCase();
  return [...(lower.length === text.length ? lower : text).matchAll(TOKEN)].flatMap(({ 0: token, 1: run, index }) => {
    const parts = partsOf(folded(token)).map(isMeant);
    if (run === undefined) return parts.includes(true) ? [text.slice(index, index + token.length)] : [];
    const marks = [...run].map((one, at) => (parts[at] || parts[at - 1] ? one : " ")); // of pairs
    return marks.join("").split(" ").filter(Boolean);
  });
}

/** The fields of a repo with words of the query, and these words, as in the API; without its text. */
function matchOf(repo, targets) {
  const found = ["title", "name", "owner", "tags", "description"]
    .map((field) => [field, wordsMeant([repo[field]].flat().join(" "), targets)]).filter(([, { length }]) => length);
  const words = [...new Set(found.flatMap(([, words]) => words))];
  return { in: found.length ? found.map(([field]) => field) : ["text"], words, line: null };
}

/** The line with the most of the words, and these words. */
function lineIn(text, targets) {
  let best = { words: [], line: null };
  for (const [line] of text.matchAll(LINE)) {
    const words = [...new Set(wordsMeant(line, targets))];
    if (words.length > best.words.length) best = { words, line };
  }
  return best;
}

/** The most frequent names, as in the API. */
function facet(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => ({ name, count }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)).slice(0, RULES.FACETS_MAX);
}

/** The number of letters to insert, drop, replace or swap with the next; above `most`, any number above it. */
function edits(one, other, most) {
  let before = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let row = 1; row <= one.length; row++) {
    const line = [row];
    for (let column = 1; column <= other.length; column++) {
      const differs = one[row - 1] === other[column - 1] ? 0 : 1;
      let cost = Math.min(last[column] + 1, line[column - 1] + 1, last[column - 1] + differs);
      if (one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]) {
        cost = Math.min(cost, before[column - 2] + 1);
      }
      line.push(cost);
    }
    if (Math.min(...line) > most) return most + 1;
    [before, last] = [last, line];
  }
  return last.at(-1);
}

/** Rounded to the nearest integer, and halves to the even one. */
function round(number) {
  return number % 1 === 0.5 ? 2 * Math.round(number / 2) : Math.round(number);
}

export class Catalogue {
  repos = [];
  isCut = false;
  #postings = new Map(); // of each token
  #written = new Map(); // the tokens of each word as written
  #vocabulary = [];

  /** From a stream of catalogue.jsonl. */
  static async read(stream, most = REPOS_MAX) {
    const catalogue = new Catalogue();
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let done = false; !done && !catalogue.isCut;) {
      let value = "";
      ({ done, value = "" } = await reader.read());
      const lines = (rest + value).split("\n");
      rest = done ? "" : lines.pop();
      for (const line of lines.filter(Boolean)) {
        catalogue.isCut = catalogue.repos.length === most;
        if (catalogue.isCut) break;
        const number = catalogue.#add(JSON.parse(line));
        if (number % ADDED_AT_ONCE === 0) await new Promise((next) => setTimeout(next));
      }
    }
    reader.cancel();
    for (const token of catalogue.#postings.keys()) {
      push(catalogue.#written, surfaceOf(token), token);
    }
    catalogue.#vocabulary = [...catalogue.#written.keys()].sort();
    return catalogue;
  }

  #add(repo) {
    const number = this.repos.push(repo) - 1;
    const title = tokensOf(`${repo.title} ${repo.name}`);
    const telling = new Set(title.map(stemOf).filter((stem) => !STOP.has(stem)));
    const isShort = telling.size <= RULES.SHORT_TITLE_WORDS_MAX;
    // The best place first, because later ones add nothing.
    for (const [value, tokens] of [
      [isShort ? VALUES.short_title : VALUES.title, title],
      [VALUES.tags, tokensOf(repo.tags.join(" "))],
      [VALUES.description, tokensOf(`${repo.description}\n${repo.words ?? ""}`)],
      [VALUES.text, tokensOf(repo.owner)],
    ]) {
      for (const token of tokens) {
        if (!(this.#postings.get(token)?.at(-1) > number * POSTING)) {
          push(this.#postings, token, number * POSTING + value);
        }
      }
    }
    return number;
  }

  /** The matching repos, best first; `match`, `corrected` and `facets` as in the API. */
  search(q, tags = [], owner = "") {
    const { targets, corrected, isComplete } = this.#plan(q);
    const needed = targets.reduce((sum, target) => sum + target.weight, 0) / 2;
    const found = new Map(); // by the repo's number
    for (const target of targets) {
      for (const [number, value] of this.#values(target)) {
        let one = found.get(number);
        if (!one) found.set(number, one = { number, weight: 0, score: 0 });
        one.weight += target.weight;
        one.score += target.rarity * value;
      }
    }
    const best = [...found.values()].filter(({ number, weight }) => {
      const repo = this.repos[number];
      return weight >= needed && tags.every((tag) => repo.tags.includes(tag)) && (!owner || repo.owner === owner);
    });
    const whole = wholeOf(q);
    // The least value of a word of a whole title or name. Only several can be owner and name.
    const value = whole.includes("_") ? VALUES.text : VALUES.title;
    const least = targets.reduce((sum, target) => sum + target.rarity * value, 0);
    for (const one of best) {
      if (one.score >= least && this.#isWhole(whole, one.number)) one.score += RULES.WHOLE_SCORE;
      one.id = `${this.repos[one.number].owner}/${this.repos[one.number].name}`;
    }
    best.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
    const strict = targets.filter((one) => one.weight).map((one) => ({ ...one, stems: [one.stems[0]] }));
    const isAll = isComplete && best.length
      && strict.every((target) => this.#values(target).has(best[0].number));
    const repos = best.map((one) => this.repos[one.number]);
    const facets = { tags: facet(repos.flatMap((repo) => repo.tags)), owners: facet(repos.map((repo) => repo.owner)) };
    return { repos, targets, facets, match: isAll ? "all" : "some", corrected: corrected.length ? corrected : null };
  }

  /** A part of the results, and what a page says of them. `lineIn` finds the best line of a text. */
  page(q, start, count, { tag, owner }) {
    const { repos, targets, ...rest } = this.search(q, tag?.split(","), owner);
    const weighty = targets.filter((target) => target.weight);
    const shown = repos.slice(start, start + count);
    return {
      ...rest, repos: shown, total: repos.length,
      matches: shown.map((repo) => matchOf(repo, weighty)),
      lineIn: (text) => lineIn(text, weighty),
      partly: this.isCut
        ? `This hub is too large for a search in the browser: it searches only ${this.repos.length.toLocaleString("en")} prompts.`
        : "This host searches titles, descriptions, tags and some words of each text.",
    };
  }

  #isWhole(whole, number) {
    const { owner, name, title } = this.repos[number];
    return [title, name, `${owner} ${name}`].some((part) => wholeOf(part) === whole);
  }

  /** The best value of a target in each repo. */
  #values({ stems, prefix }) {
    const best = new Map();
    const isShort = [...prefix].length <= RULES.BEGINNING_CHARS_MAX;
    for (const posting of this.#postingsOf(prefix ? this.#tokensBeginning(prefix) : [])) {
      const number = Math.floor(posting / POSTING);
      if (isShort && posting % POSTING >= VALUES.title) best.set(number, RULES.BEGINNING_VALUE);
      else if (!best.has(number)) best.set(number, RULES.BEGINNING_ELSEWHERE_VALUE);
    }
    stems.forEach((stem, at) => {
      for (const posting of this.#postingsOf(this.#forms(stem))) {
        const number = Math.floor(posting / POSTING);
        const value = (posting % POSTING) * (at ? RULES.SYNONYM_SHARE : 1);
        if (value > (best.get(number) ?? 0)) best.set(number, value);
      }
    });
    return best;
  }

  #postingsOf(tokens) {
    return tokens.flatMap((token) => this.#postings.get(token));
  }

  /** The tokens with a stem, which differs from them at most in its last two letters. */
  #forms(stem) {
    const tokens = this.#tokensBeginning(stem.slice(0, -2) || stem[0]);
    return tokens.filter((token) => stemOf(token) === stem);
  }

  #tokensBeginning(prefix) {
    return this.#beginning(prefix).flatMap((word) => this.#written.get(word));
  }

  /** The words with this prefix, sorted. */
  #beginning(prefix, limit = Infinity) {
    let [at, end] = [0, this.#vocabulary.length];
    while (at < end) {
      const middle = (at + end) >> 1;
      if (this.#vocabulary[middle] < prefix) at = middle + 1;
      else end = middle;
    }
    const first = at;
    while (at - first < limit && this.#vocabulary[at]?.startsWith(prefix)) at++;
    return this.#vocabulary.slice(first, at);
  }

  /** The targets, the corrected words, and true if no word is left out. */
  #plan(q) {
    const all = queryWords(q);
    const some = all.filter((word) => !STOP.has(word.stem));
    const telling = some.length ? some : all;
    const corrected = [];
    const counted = [];
    for (const { stem, surface } of telling) {
      const begins = stem === all.at(-1).stem && this.#beginsOthers(stem, surface);
      let target = { stems: [stem, ...(SYNONYMS.get(stem) ?? [])], prefix: begins ? surface : "" };
      let count = this.#count(stem) || this.#values(target).size;
      if (!count && corrected.length < RULES.CORRECTED_MAX) {
        const nearest = this.#nearest(surface);
        if (nearest) {
          corrected.push({ from: surface, to: nearest });
          target = { stems: [stemOf(nearest)], prefix: "" };
          count = this.#values(target).size;
        }
      }
      if (count) counted.push({ count, target });
    }
    const isComplete = counted.length === telling.length;
    return { targets: this.#weigh(counted), corrected, isComplete };
  }

  #count(stem) {
    return this.#values({ stems: [stem], prefix: "" }).size;
  }

  #beginsOthers(stem, surface) {
    const others = this.#beginning(surface, RULES.FORMS_MAX);
    return others.length === RULES.FORMS_MAX || others.some((other) => stemOf(other) !== stem);
  }

  #weigh(counted) {
    counted.sort((a, b) => a.count - b.count || (a.target.stems[0] < b.target.stems[0] ? -1 : 1));
    let frequent = counted.filter(({ target }) => FREQUENT.has(target.stems[0]));
    let rare = counted.filter(({ target }) => !FREQUENT.has(target.stems[0]));
    if (!rare.length) {
      // Even if few repos here have one of them, it does not distinguish repos.
      const least = Math.floor(this.repos.length / RULES.FREQUENT_PARTS);
      rare = frequent.map(({ count, target }) => ({ count: Math.max(count, least), target }));
      frequent = [];
    }
    let left = RULES.HOLDERS_MAX;
    const chosen = [];
    for (const { count, target } of [
      ...rare.slice(0, RULES.TARGETS_MAX), ...frequent.slice(0, RULES.FREQUENT_TARGETS_MAX),
    ]) {
      if (count > left && chosen.length) continue;
      left -= count;
      const isFrequent = frequent.some((one) => one.target === target);
      chosen.push({ ...target, isFrequent, halvings: Math.log2(this.repos.length / count) });
    }
    const telling = chosen.filter((one) => !one.isFrequent).map((one) => one.halvings);
    const least = Math.max(0.5, Math.min(...telling));
    for (const one of chosen) {
      const share = one.isFrequent ? RULES.FREQUENT_SHARE : 1;
      one.rarity = Math.max(1, round(one.halvings * RULES.RARITY_STEPS * share));
      const weight = Math.max(1, round(one.halvings / least));
      one.weight = one.isFrequent ? 0 : Math.min(RULES.WEIGHT_MAX, weight);
    }
    return chosen;
  }

  /** The word at the least distance; among several, the one in most repos. */
  #nearest(surface) {
    const word = [...surface];
    if (word.length < RULES.CORRECTED_LETTERS_MIN) return null;
    if (!/^\p{L}+$/u.test(surface) || BEGINS_RUN.test(surface)) return null;
    const most = word.length <= RULES.ONE_EDIT_LETTERS_MAX ? 1 : 2;
    let best = { distance: most, count: 0, other: null };
    for (const other of this.#similar(word, most)) {
      const distance = edits(word, [...other], best.distance);
      if (distance > best.distance) continue;
      const count = this.#count(stemOf(other));
      const isBetter = distance < best.distance || count > best.count;
      if (isBetter || (count === best.count && other < best.other)) best = { distance, count, other };
    }
    return best.other;
  }

  /** The words that begin alike, or with one edit in the first letters. */
  #similar(word, most) {
    const [first, second, third] = word;
    const beginnings = new Set([first + second, second + first, second + third, first + third]);
    for (const letter of "abcdefghijklmnopqrstuvwxyz") {
      beginnings.add(letter + second + third).add(letter + first + second);
      beginnings.add(first + letter + third).add(first + letter + second);
    }
    const letters = new Set(word);
    const isSimilar = (other) => {
      const others = new Set(other);
      const shared = [...others].filter((letter) => letters.has(letter)).length;
      return Math.abs([...other].length - word.length) <= most
        && letters.size + others.size - 2 * shared <= 2 * most;
    };
    const found = [...beginnings].flatMap((one) => this.#beginning(one, RULES.COMPARED_MAX));
    return [...new Set(found)].filter(isSimilar);
  }
}

function push(lists, key, value) {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
