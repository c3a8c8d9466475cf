// Searches the catalogue by the server's rules, for hosts that answer no queries, as client/search.py
// does; tests hold both to one table. Only the server limits the work of a query.

// The build inserts the rules here: builder/search/rules.py.
const RULES = {};
const { VALUES, UNSPACED } = RULES;
const STOP = new Set(RULES.STOP);
const FREQUENT = new Set(RULES.FREQUENT);
const SYNONYMS = new Map(Object.entries(RULES.SYNONYMS));
const STEM_STEPS = RULES.STEM_STEPS.map((step) => new Map(Object.entries(step)));
const RUN = `[${UNSPACED}][${UNSPACED}\\p{M}]*`;
const LETTER = `(?![${UNSPACED}])[\\p{L}\\p{N}]`;
const TOKEN = new RegExp(
  `(${RUN})|${RULES.SIGNED}|${LETTER}(?:${LETTER}|\\p{M}|['’](?=${LETTER}))*`, "giu",
);
const ASCII_TOKEN = new RegExp(`${RULES.SIGNED}|[a-z0-9]+(?:'[a-z0-9]+)*`, "g");
const [JOINED, ARTICLE, SPOKEN, LABELLED, MARKS] = ["JOINED", "ARTICLE", "SPOKEN", "LABELLED", "MARKS"]
  .map((name) => new RegExp(RULES[name], "g"));
const BEGINS_RUN = new RegExp(`^${RUN}`, "u");
// A posting is the number of a repo times this, plus the value of the word's best place there.
const POSTING = 32;
// The most repos that are searched: they take about 5 MB to load, and 150 MB of memory.
const REPOS_MAX = 20_000;
// A line, or a part of a longer one.
const LINE = /[^\n]{1,160}(?!\S)|[^\n]{1,160}/g;

/** The words of a text, joined ones first; pairs of unspaced scripts. */
function wordsOf(text) {
  const plain = folded(text);
  return [...(plain.match(JOINED) ?? []).map(wordOf), ...partsOf(plain)];
}

const isAscii = (text) => /^[\0-\x7f]*$/.test(text);

/** Without accents and case, as Unicode folds it in scripts in use. */
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

/** The fields of a repo with words of the query, and these words, as in the API; not its text. */
function matchOf(repo, targets, without) {
  const labels = repo.labels.filter((label) => wordsMeant(label, targets).length);
  const found = ["title", "name", "owner", "tags", "labels", "description"]
    .map((field) => [field, wordsMeant([repo[field]].flat().join(" "), targets)]).filter(([, { length }]) => length);
  const words = [...new Set(found.flatMap(([, words]) => words))];
  const places = found.length || !targets.length ? found.map(([field]) => field) : ["text"];
  return { in: places, words, line: null, kind: repo.kind, labels, without };
}

/** The line with the most of the words, and these words. */
function lineIn(text, targets) {
  let best = { words: [], line: null };
  for (const [part] of text.matchAll(LINE)) {
    const line = part.replace(MARKS, "$1");
    const words = [...new Set(wordsMeant(line, targets))];
    if (words.length > best.words.length) best = { words, line };
  }
  return best;
}

/** The most frequent values of a field, as in the API. */
function facet(repos, field) {
  return [...Map.groupBy(repos.flatMap((repo) => repo[field]), (name) => name)]
    .map(([name, { length }]) => ({ name, count: length }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)).slice(0, RULES.FACETS_MAX);
}

/** The letters to insert, drop, replace or swap with the next, or any number above `most`. */
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

  #add(line) {
    const { owner, name, title } = line;
    const repo = { labels: [], kind: "prompt", ...line, id: `${owner}/${name}` };
    const number = this.repos.push(repo) - 1;
    for (const whole of new Set([title, name, repo.id].map(wholeOf))) push(this.#wholes, whole, number);
    const titled = wordsOf(`${title} ${name}`);
    const telling = new Set(titled.map(({ stem }) => stem).filter((stem) => !STOP.has(stem)));
    const isShort = telling.size <= RULES.SHORT_TITLE_WORDS_MAX;
    // The best place first, because later ones add nothing.
    for (const [value, words] of [
      [isShort ? VALUES.short_title : VALUES.title, titled],
      [VALUES.tags, wordsOf(repo.tags.join(" "))],
      [VALUES.description, wordsOf([repo.description, repo.words, ...repo.labels].join(" "))],
      [VALUES.text, wordsOf(owner)],
    ]) {
      for (const word of words) {
        if (!(this.#postings.get(word)?.at(-1) > number * POSTING)) {
          push(this.#postings, word, number * POSTING + value);
        }
      }
    }
  }

  /** The matching repos, best first, and the words that one lacks; the rest as in the API. */
  search(q, { tag, owner } = {}) {
    const tags = tag?.split(",") ?? [];
    const plain = folded(q);
    const labels = [...new Set([...plain.matchAll(LABELLED)].map(([, label]) => label))];
    if (labels.length) q = plain.replace(LABELLED, " ");
    const { targets, corrected, unknown } = this.#plan(q);
    const needed = targets.reduce((sum, target) => sum + target.weight, 0) || unknown.length;
    const found = this.repos.map((repo) => ({ repo, weight: 0, score: 0 }));
    for (const target of targets) {
      for (const [number, value] of this.#values(target)) {
        found[number].weight += target.weight;
        found[number].score += Math.floor(target.rarity * value);
      }
    }
    for (const number of (needed && this.#wholes.get(wholeOf(q))) || []) found[number].score += RULES.WHOLE_SCORE;
    const repos = found.filter(({ repo, weight }) => (
      weight >= needed / 2 && (!owner || repo.owner === owner)
        && tags.every((tag) => repo.tags.includes(tag)) && labels.every((label) => repo.labels.includes(label))
    )).sort((a, b) => b.score - a.score || (a.repo.id < b.repo.id ? -1 : 1)).map(({ repo }) => repo);
    const weighty = targets.filter(({ weight }) => weight)
      .map((one) => ({ ...one, having: this.#values({ ...one, stems: [one.stems[0]] }) }));
    const lacks = (repo) => [
      ...weighty.filter(({ having }) => !having.has(this.repos.indexOf(repo))).map(({ surface }) => surface), ...unknown,
    ];
    return {
      repos, lacks, targets: weighty,
      facets: { tags: facet(repos, "tags"), owners: facet(repos, "owner"), labels: facet(repos, "labels") },
      match: repos.length && !lacks(repos[0]).length ? "all" : "some",
      corrected: corrected.length ? corrected : null, label: labels.join(),
    };
  }

  /** A part of the results, and what a page says of them. `lineIn` finds the best line of a text. */
  page(q, start, count, filters) {
    const { repos, targets, lacks, ...rest } = this.search(q, filters);
    const shown = repos.slice(start, start + count);
    return {
      ...rest, repos: shown, total: repos.length,
      matches: shown.map((repo) => matchOf(repo, targets, lacks(repo))),
      lineIn: (text) => lineIn(text, targets),
      partly: this.isCut
        ? `A browser searches only ${this.repos.length.toLocaleString("en")} prompts of this hub.`
        : "This host searches titles, descriptions, tags, labels and some words of each text.",
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
        else raise(best, number, RULES[isShort && value >= VALUES.title ? "BEGINNING_VALUE" : "BEGINNING_ELSEWHERE_VALUE"]);
        if (surface === written) raise(exact, number, value >= VALUES.title ? 2 : 1);
      }
    }
    for (const [number, value] of own) raise(best, number, value + RULES.EXACT_VALUE * (exact.get(number) ?? 0));
    return best;
  }

  #count(stem) {
    return this.#values({ stems: [stem], prefix: "" }).size;
  }

  /** The targets, and the words that are corrected or unknown. */
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
    const least = RULES[targets.some(({ count }) => count) ? "CORRECTED_BESIDE_LETTERS_MIN" : "CORRECTED_LETTERS_MIN"];
    for (const target of targets) {
      const from = target.surface;
      if (target.count || corrected.length >= RULES.CORRECTED_MAX || from.length < least) continue;
      const to = this.#nearest(from, surfaces);
      if (!to) continue;
      corrected.push({ from, to });
      const { stem } = wordOf(to);
      Object.assign(target, { stems: [stem], prefix: "", surface: to, isCorrected: true, count: this.#count(stem) });
    }
    const unknown = targets.filter(({ count }) => !count).map(({ surface }) => surface);
    return { targets: this.#weigh(targets.filter(({ count }) => count)), corrected, unknown };
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
      .filter((other) => similar.test(other)).map((other) => ({ other, distance: edits(surface, other, most) }))
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
