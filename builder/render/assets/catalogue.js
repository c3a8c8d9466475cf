// Searches the catalogue as the server searches its index, for hosts that answer no queries. The shell
// client does the same in client/search.py; tests hold both to one table. Limits on the work of a
// query are the server's alone: here, each word is compared with all others.

// The build inserts the rules here: builder/search/rules.py.
const RULES = {};
const { VALUES, UNSPACED, MARKS } = RULES;
const STOP = new Set(RULES.STOP);
const FREQUENT = new Set(RULES.FREQUENT);
const SYNONYMS = new Map(Object.entries(RULES.SYNONYMS));
const STEM_STEPS = RULES.STEM_STEPS.map((step) => new Map(Object.entries(step)));
const RUN = `[${UNSPACED}][${UNSPACED}${MARKS}]*`;
const LETTER = `(?![${UNSPACED}])[\\p{L}\\p{N}]`;
const TOKEN = new RegExp(
  `(${RUN})|${RULES.SIGNED}|${LETTER}(?:${LETTER}|[${MARKS}]|['’](?=${LETTER}))*`, "giu",
);
const ASCII_TOKEN = new RegExp(`${RULES.SIGNED}|[a-z0-9]+(?:'[a-z0-9]+)*`, "g");
const JOINED = new RegExp(RULES.JOINED, "g");
const ARTICLE = new RegExp(RULES.ARTICLE);
const SPOKEN = new RegExp(RULES.SPOKEN, "g");
const BEGINS_RUN = new RegExp(`^${RUN}`, "u");
// A posting is the number of a repo times this, plus the value of the word's best place there.
const POSTING = 32;
// Of a larger catalogue, only the first repos are searched: 20,000 take about 5 MB to load, and 150 MB of memory.
const REPOS_MAX = 20_000;
// A line, or a part of a longer one.
const LINE = /[^\n]{1,160}(?!\S)|[^\n]{1,160}/g;

/** The words of a text, joined ones first. Unspaced scripts give pairs. */
function wordsOf(text) {
  const plain = folded(text);
  return [...(plain.match(JOINED) ?? []).map(wordOf), ...partsOf(plain)];
}

const isAscii = (text) => /^[\0-\x7f]*$/.test(text);

/** Without accents, and with Unicode's case folding, as far as toLowerCase differs from it for scripts in use. */
function folded(text) {
  if (isAscii(text)) return text.toLowerCase();
  return text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").normalize("NFC").toLowerCase()
    .replaceAll("ß", "ss").replaceAll("ς", "σ");
}

function partsOf(plain) {
  if (isAscii(plain)) return (plain.match(ASCII_TOKEN) ?? []).map(wordOf);
  return [...plain.matchAll(TOKEN)].flatMap(([token, run]) => (
    run ? [...run].map((one, at, all) => wordOf(one + (all[at + 1] ?? ""))) : [wordOf(token)]
  ));
}

const known = new Map();

/** A word without apostrophes, and the stem under which it is found. */
function wordOf(token) {
  let word = known.get(token);
  if (!word) {
    const plain = (one) => one.replace(/['’]/g, "").slice(0, RULES.WORD_CHARS_MAX);
    const surface = plain(token);
    const isEnglish = /^[a-z]+$/.test(surface);
    const stem = isEnglish ? stemmed(plain(token.replace(/['’]s$/, ""))) : surface.replace(ARTICLE, "");
    word = { surface, stem };
    known.set(token, word);
  }
  return word;
}

function stemmed(word) {
  if (word.length < 3) return word;
  let stem = word.replace(/^y/, "Y");
  for (const step of STEM_STEPS) {
    for (let at = 0; at < stem.length; at++) {
      const rule = step.get(stem.slice(at));
      if (!rule) continue;
      const start = stem.slice(0, at);
      if (new RegExp(rule[0]).test(start)) stem = start + rule[1];
      break;
    }
  }
  return stem.replace(/^Y/, "y");
}

/** The words of a short text, joined into one. */
function wholeOf(text) {
  return partsOf(folded(text)).map(({ stem }) => stem).join("_");
}

/** The first different words, each at its last place. A run's last character is in a pair. */
function queryWords(q) {
  const once = new Map();
  let before = "";
  for (const word of wordsOf(q)) {
    const { surface, stem } = word;
    const isRest = before !== surface && before.endsWith(surface) && BEGINS_RUN.test(surface);
    before = surface;
    if (isRest) continue;
    if (!once.delete(stem) && once.size === RULES.QUERY_WORDS_MAX) break;
    once.set(stem, word);
  }
  return [...once.values()];
}

/** The words of a text, as they are written there, that a target means. */
function wordsMeant(text, targets) {
  const isMeant = ({ stem, surface }) => targets.some(({ stems, prefix }) => (
    stems.includes(stem) || (prefix && surface.startsWith(prefix))
  ));
  return [...text.matchAll(TOKEN)].flatMap(([token, run]) => {
    const parts = partsOf(folded(token)).map(isMeant);
    if (!run) return parts.includes(true) ? [token] : [];
    const marks = [...run].map((one, at) => (parts[at] || parts[at - 1] ? one : " ")); // of pairs
    return marks.join("").split(" ").filter(Boolean);
  });
}

/** The fields of a repo with words of the query, and these words, as in the API; without its text. */
function matchOf(repo, targets) {
  const found = ["title", "name", "owner", "tags", "description"]
    .map((field) => [field, wordsMeant([repo[field]].flat().join(" "), targets)]).filter(([, { length }]) => length);
  const words = [...new Set(found.flatMap(([, words]) => words))];
  return { in: found.length ? found.map(([field]) => field) : ["text"], words, line: null, kind: repo.kind ?? "prompt" };
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
  return [...Map.groupBy(names, (name) => name)].map(([name, { length }]) => ({ name, count: length }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)).slice(0, RULES.FACETS_MAX);
}

/** The number of letters to insert, drop, replace or swap with the next; above `most`, any number above it. */
function edits(one, other, most) {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  const [a, b] = [one.slice(at), other.slice(at)];
  if (!most || !a || !b) return a.length + b.length;
  const after = (drop, skip) => edits(a.slice(drop), b.slice(skip), most - 1);
  const swapped = a[0] === b[1] && a[1] === b[0] ? after(2, 2) : most;
  return 1 + Math.min(after(1, 0), after(0, 1), after(1, 1), swapped);
}

export class Catalogue {
  repos = [];
  isCut = false;
  #postings = new Map(); // of each word
  #wholes = new Map(); // the numbers of the repos with each title and name

  /** From a stream of catalogue.jsonl. */
  static async read(stream, most = REPOS_MAX) {
    const catalogue = new Catalogue();
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = {}; !part.done && !catalogue.isCut;) {
      part = await reader.read();
      await new Promise((next) => setTimeout(next)); // the page handles events meanwhile
      const lines = (rest + (part.value ?? "\n")).split("\n");
      rest = lines.pop();
      for (const line of lines.filter(Boolean)) {
        catalogue.isCut = catalogue.repos.length === most;
        if (catalogue.isCut) break;
        catalogue.#add(JSON.parse(line));
      }
    }
    reader.cancel();
    return catalogue;
  }

  #add(repo) {
    const number = this.repos.push(repo) - 1;
    const { owner, name, title } = repo;
    repo.id = `${owner}/${name}`;
    for (const whole of new Set([title, name, repo.id].map(wholeOf))) push(this.#wholes, whole, number);
    const titled = wordsOf(`${title} ${name}`);
    const telling = new Set(titled.map(({ stem }) => stem).filter((stem) => !STOP.has(stem)));
    const isShort = telling.size <= RULES.SHORT_TITLE_WORDS_MAX;
    // The best place first, because later ones add nothing.
    for (const [value, words] of [
      [isShort ? VALUES.short_title : VALUES.title, titled],
      [VALUES.tags, wordsOf(repo.tags.join(" "))],
      [VALUES.description, wordsOf(`${repo.description}\n${repo.words ?? ""}`)],
      [VALUES.text, wordsOf(owner)],
    ]) {
      for (const word of words) {
        if (!(this.#postings.get(word)?.at(-1) > number * POSTING)) {
          push(this.#postings, word, number * POSTING + value);
        }
      }
    }
  }

  /** The matching repos, best first; `match`, `corrected` and `facets` as in the API. */
  search(q, tags = [], owner = "") {
    const { targets, corrected, isComplete } = this.#plan(q);
    const needed = targets.reduce((sum, target) => sum + target.weight, 0);
    const found = this.repos.map((repo) => ({ repo, weight: 0, score: 0 }));
    for (const target of targets) {
      for (const [number, value] of this.#values(target)) {
        found[number].weight += target.weight;
        found[number].score += Math.floor(target.rarity * value);
      }
    }
    for (const number of this.#wholes.get(wholeOf(q)) ?? []) found[number].score += RULES.WHOLE_SCORE;
    const best = found.filter(({ repo, weight, score }) => (
      score && weight >= needed / 2 && tags.every((tag) => repo.tags.includes(tag)) && (!owner || repo.owner === owner)
    )).sort((a, b) => b.score - a.score || (a.repo.id < b.repo.id ? -1 : 1));
    const repos = best.map(({ repo }) => repo);
    const first = this.repos.indexOf(repos[0]);
    const isAll = isComplete && repos.length && targets.every(
      ({ stems, ...target }) => !target.weight || this.#values({ ...target, stems: [stems[0]] }).has(first),
    );
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

  /** The best value of a target in each repo. */
  #values({ stems, prefix, surface: written }) {
    const [best, own, exact] = [new Map(), new Map(), new Map()];
    const isShort = prefix.length <= RULES.BEGINNING_CHARS_MAX;
    const raise = (values, number, value) => values.set(number, Math.max(values.get(number) ?? 0, value));
    for (const [{ surface, stem }, postings] of this.#postings) {
      const at = stems.indexOf(stem);
      if (at < 0 && !(prefix && surface.startsWith(prefix))) continue;
      for (const posting of postings) {
        const number = Math.floor(posting / POSTING);
        const value = posting % POSTING;
        if (at === 0) raise(own, number, value);
        else if (at > 0) raise(best, number, value * RULES.SYNONYM_SHARE);
        else raise(best, number, isShort && value >= VALUES.title ? RULES.BEGINNING_VALUE : RULES.BEGINNING_ELSEWHERE_VALUE);
        if (surface === written) raise(exact, number, value >= VALUES.title ? 2 : 1);
      }
    }
    for (const [number, value] of own) raise(best, number, value + RULES.EXACT_VALUE * (exact.get(number) ?? 0));
    return best;
  }

  #count(stem) {
    return this.#values({ stems: [stem], prefix: "" }).size;
  }

  /** The targets, the corrected words, and true if no word is left out. */
  #plan(q) {
    const all = queryWords(q);
    const content = [queryWords(folded(q).replace(SPOKEN, " ")), all].map(
      (words) => words.map(({ stem }) => stem).filter((stem) => !STOP.has(stem)),
    ).find(({ length }) => length);
    const telling = content ? all.filter(({ stem }) => content.includes(stem)) : all;
    const surfaces = [...this.#postings.keys()].map((word) => word.surface);
    const corrected = [];
    const targets = telling.map(({ stem, surface }) => {
      const begins = stem === all.at(-1).stem && surfaces.some(
        (other) => other.startsWith(surface) && wordOf(other).stem !== stem,
      );
      const target = { stems: [stem, ...(SYNONYMS.get(stem) ?? [])], prefix: begins ? surface : "", surface };
      return { ...target, count: this.#count(stem) || this.#values(target).size };
    });
    const isKnown = targets.some(({ count }) => count);
    const least = isKnown ? RULES.CORRECTED_BESIDE_LETTERS_MIN : RULES.CORRECTED_LETTERS_MIN;
    for (const target of targets) {
      const from = target.surface;
      if (target.count || corrected.length >= RULES.CORRECTED_MAX || from.length < least) continue;
      const to = this.#nearest(from, surfaces);
      if (!to) continue;
      corrected.push({ from, to });
      const { stem } = wordOf(to);
      Object.assign(target, { stems: [stem], prefix: "", surface: to, isCorrected: true, count: this.#count(stem) });
    }
    const known = targets.filter(({ count }) => count);
    return { targets: this.#weigh(known), corrected, isComplete: known.length === telling.length };
  }

  #weigh(targets) {
    targets.sort((a, b) => a.count - b.count || (a.stems[0] < b.stems[0] ? -1 : 1));
    let frequent = targets.filter(({ stems }) => FREQUENT.has(stems[0]));
    let rare = targets.filter((one) => !frequent.includes(one));
    if (!rare.length) {
      // Even if few repos here have one of them, it does not distinguish repos.
      const least = Math.floor(this.repos.length / RULES.FREQUENT_PARTS);
      rare = frequent.map((one) => ({ ...one, count: Math.max(one.count, least) }));
      frequent = [];
    }
    rare = rare.slice(0, RULES.TARGETS_MAX);
    frequent = frequent.slice(0, RULES.FREQUENT_TARGETS_MAX);
    const halvings = ({ count }) => Math.log2(this.repos.length / count);
    const least = Math.max(0.5, Math.min(...rare.map(halvings)));
    const known = rare.filter(({ isCorrected }) => !isCorrected).map(halvings);
    const times = [...rare, ...frequent].some(({ isCorrected }) => isCorrected) ? RULES.KNOWN_TIMES : 1;
    return [...rare, ...frequent].map((one, at) => {
      const isFrequent = at >= rare.length;
      const isLower = one.isCorrected && known.length;
      const bits = Math.min(halvings(one), ...(isLower ? known : []));
      const steps = RULES.RARITY_STEPS * (isFrequent ? RULES.FREQUENT_SHARE : 1);
      const weight = times * Math.min(RULES.WEIGHT_MAX, Math.max(1, Math.round(bits / least)));
      return { ...one, rarity: Math.max(1, Math.round(bits * steps)), weight: isFrequent ? 0 : isLower ? 1 : weight };
    });
  }

  /** The word at the least distance; among several, the one in most repos. */
  #nearest(surface, others) {
    if (!/^\p{L}+$/u.test(surface) || BEGINS_RUN.test(surface)) return null;
    const most = surface.length <= RULES.ONE_EDIT_LETTERS_MAX ? 1 : 2;
    const [a, b, c] = surface; // at most one edit in the first letters
    const similar = new RegExp(`^(?:.?${a}${b}|${b}${a}|.?${b}${c}|${a}.?${c}|${a}.${b})`);
    const [best] = others
      .filter((other) => similar.test(other) && Math.abs(other.length - surface.length) <= most)
      .map((other) => ({ other, distance: edits(surface, other, most) }))
      .filter(({ distance }) => distance <= most)
      .map((one) => ({ ...one, count: this.#count(wordOf(one.other).stem) }))
      .sort((a, b) => a.distance - b.distance || b.count - a.count || (a.other < b.other ? -1 : 1));
    return best?.other;
  }
}

function push(lists, key, value) {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
