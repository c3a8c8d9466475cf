"""How good the search is, by judged queries, and how fast, beside SQLite's FTS5.

``--quality`` imports real prompts and asks for what people judged: success@3 (something useful is
among the first three), MRR, nDCG@10 and empty answers, by kind of query. The rest builds synthetic
catalogues and asks the hub with each engine and FTS5 the same words, in turns.
"""

import argparse
import json
import math
import os
import random
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable

from catalogue import Catalogue
from processes import HUBCTL, run
from report import print_machine, print_table, scratch_folder

from builder.model.names import Version
from builder.model.routes import QUERY_CHARS_MAX
from builder.model.settings import SEARCH_ENGINES, Settings
from builder.pipeline.build import build
from builder.search.language import STOP_STEMS
from builder.search.queries import ListQuery, Queries
from builder.store import content
from builder.store.state import State
from builder.text import words

PAGE = 50
QUERIES_PER_KIND = 40

Asker = Callable[[ListQuery], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quality", action="store_true", help="measure what is found, not speed")
    parser.add_argument("--prompts", metavar="CSV", help="real prompts, for --quality")
    parser.add_argument("--judgements", metavar="JSONL", help="judged queries, for --quality")
    parser.add_argument("--verbose", action="store_true", help="with --quality: each bad answer")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--engines", nargs="+", default=SEARCH_ENGINES, choices=SEARCH_ENGINES)
    parser.add_argument("--whoosh-max", type=int, default=10_000, metavar="N",
                        help="the largest catalogue that Whoosh is measured with")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    if options.quality and not (options.prompts and options.judgements):
        parser.error("--quality needs --prompts and --judgements")
    with scratch_folder(options.scratch) as folder:
        if options.quality:
            for engine in options.engines:
                measure_quality(options, engine, f"{folder}/{engine}")
        else:
            for size in options.sizes:
                measure_speed(options, size, f"{folder}/{size}")
            print_machine(folder)


# Quality


def measure_quality(options: argparse.Namespace, engine: str, folder: str) -> None:
    settings = settings_in(folder, engine)
    run([*HUBCTL, "import", options.prompts, "--content", settings.content])
    build(settings)
    queries = Queries(settings)
    with open(options.judgements, encoding="utf-8") as file:
        judgements = [json.loads(line) for line in file]
    scores: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    wrong = []
    for judged in judgements:
        found = queries.find(ListQuery(q=judged["query"]), 0, PAGE)
        ids = ids_of(found.rows)
        if not judged["relevant"]:
            if found.match != "some":
                wrong.append(judged["query"])
            continue
        scored = score(ids, judged["relevant"])
        for kind in (judged["kind"], "all"):
            scores[kind].append(scored)
        if options.verbose and scored[2] < 0.8:
            print(f"{scored[2]:.2f} {judged['query']!r}: {found.total} found")
            for one in ids[:8]:
                print(f"    {judged['relevant'].get(one, '-')} {one}")
    queries.close()
    print_table(
        f"What {engine} finds",
        ["kind of query", "queries", "success@3", "MRR", "nDCG@10", "empty"],
        [
            [kind, len(rows), *(sum(part) / len(rows) for part in zip(*rows, strict=True))]
            for kind, rows in scores.items()
        ],
    )
    print(f"Where nothing fits, the answer says so, but for: {', '.join(wrong) or 'none'}")


def score(ids: list[str], relevant: dict[str, int]) -> tuple[float, ...]:
    """success@3, reciprocal rank, nDCG@10, whether nothing was found."""
    places = [place for place, one in enumerate(ids, 1) if one in relevant]
    ideal = sorted(relevant.values(), reverse=True)
    gained = gain([relevant.get(one, 0) for one in ids]) / gain(ideal)
    first = places[0] if places else 0
    return float(0 < first <= 3), 1 / first if first else 0.0, gained, float(not ids)


def gain(grades: list[int]) -> float:
    return sum((2**grade - 1) / math.log2(place + 1) for place, grade in enumerate(grades[:10], 1))


def settings_in(folder: str, engine: str) -> Settings:
    settings = Settings(f"{folder}/content", f"{folder}/site", f"{folder}/state", search=engine)
    os.makedirs(settings.content, exist_ok=True)
    return settings


def ids_of(rows: list[bytes]) -> list[str]:
    return ["{owner}/{name}".format(**json.loads(row)) for row in rows]


# Speed


def measure_speed(options: argparse.Namespace, size: int, folder: str) -> None:
    catalogue = Catalogue(size)
    catalogue.write(f"{folder}/content")
    asked = questions(catalogue, random.Random(7))
    engines = [one for one in options.engines if one != "whoosh" or size <= options.whoosh_max]
    askers: dict[str, Asker] = {}
    opened = []
    for engine in engines:
        settings = Settings(
            f"{folder}/content", f"{folder}/{engine}/site", f"{folder}/{engine}/state",
            search=engine,
        )  # fmt: skip
        build(settings)
        queries = Queries(settings)
        opened.append(queries)
        askers[engine] = lambda query, queries=queries: queries.find(query, 0, PAGE)
    database = full_text_table(settings)
    askers["FTS5"] = lambda query: ask_full_text(database, query)
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(options.rounds):
        for kind, queries in asked.items():
            for name, ask in askers.items():
                for query in queries:
                    start = time.perf_counter()
                    ask(query)
                    taken[kind, name].append((time.perf_counter() - start) * 1000)
    for one in [*opened, database]:
        one.close()
    print_table(
        f"{size:,} repos: milliseconds, p50 and p99, of {options.rounds} rounds",
        ["kind of query", *(f"{name} {part}" for name in askers for part in ("p50", "p99"))],
        [
            [kind, *(percentile(taken[kind, name], part) for name in askers for part in (50, 99))]
            for kind in asked
        ],
    )


def percentile(values: list[float], part: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * part // 100)]


def questions(catalogue: Catalogue, chance: random.Random) -> dict[str, list[ListQuery]]:
    """Some queries of each kind. The catalogue's words are in the order of their frequency."""
    known = [word for word in catalogue.words if word not in STOP_STEMS]
    common, usual, rare = known[:20], known[100:1_000], known[1_000:]

    def queries(make: Callable[[], str], **options: object) -> list[ListQuery]:
        return [ListQuery(q=make()[:QUERY_CHARS_MAX], **options) for _ in range(QUERIES_PER_KIND)]

    def some(choice: list[str], count: int) -> str:
        return " ".join(chance.sample(choice, count))

    letters = "abcdefghijklmnopqrstuvwxyz"
    return {
        "one word that most have": queries(lambda: chance.choice(common)),
        "one word": queries(lambda: chance.choice(usual)),
        "one rare word": queries(lambda: chance.choice(rare)),
        "two words that most have": queries(lambda: some(common, 2)),
        "two words": queries(lambda: some(usual, 2)),
        "a sentence": queries(lambda: f"write {some(common, 2)} for the {some(usual, 3)}"),
        "twenty words": queries(lambda: some(common + usual[:100], 20)),
        "fifty one-letter words": queries(lambda: " ".join(chance.choices(letters, k=50))),
        "one letter": queries(lambda: chance.choice(letters)),
        "two letters": queries(lambda: chance.choice(usual)[:2]),
        "three letters": queries(lambda: chance.choice(usual)[:3]),
        "a word and a beginning": queries(lambda: f"{some(usual, 1)} {chance.choice(usual)[:3]}"),
        "a typo": queries(lambda: misspelt(chance.choice(rare), chance)),
        "Chinese": queries(lambda: "短视频脚本创作"),
        "common, with a tag": queries(lambda: chance.choice(common), tags=(catalogue.tags[0],)),
        "common, sort=top": queries(lambda: chance.choice(common), sort="top"),
        "usual, sort=new": queries(lambda: chance.choice(usual), sort="new"),
    }


def misspelt(word: str, chance: random.Random) -> str:
    at = chance.randrange(1, len(word))
    return word[:at] + chance.choice("aeiou") + word[at:]


def full_text_table(settings: Settings) -> sqlite3.Connection:
    """FTS5 over the same words: split by our code, stemmed by SQLite."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.execute(
        "CREATE VIRTUAL TABLE page USING fts5(id UNINDEXED, text, tokenize = 'porter')"
    )
    with State(settings.state, read_only=True) as state:
        lines = map(json.loads, state.catalogue_lines())
        database.execute("BEGIN")
        for line in lines:
            _, text = content.read_version(
                settings.content, line["owner"], line["name"], Version.parse(line["latest_version"])
            )
            parts = [line["owner"], line["name"], line["title"], line["description"],
                     *line["tags"], text]  # fmt: skip
            split = " ".join(word.surface for word in words.words(" ".join(parts)))
            database.execute("INSERT INTO page VALUES (?, ?)", (line["name"], split))
        database.execute("COMMIT")
    return database


def ask_full_text(database: sqlite3.Connection, query: ListQuery) -> None:
    """The 50 best by BM25, and how many there are; any word, the last one as a beginning."""
    parts = [f'"{word.surface}"' for word in words.query_words(query.q)]
    match = " OR ".join([*parts[:-1], f"{parts[-1]}*"])
    database.execute(
        "SELECT id FROM page WHERE page MATCH ? ORDER BY bm25(page) LIMIT 50", (match,)
    ).fetchall()
    database.execute("SELECT count(*) FROM page WHERE page MATCH ?", (match,)).fetchone()


if __name__ == "__main__":
    main()
