"""The quality of the search, by judged queries, and its speed, beside SQLite's FTS5.

``--quality`` imports real prompts and runs queries that people judged: success@3 (something useful
is among the first three), MRR, nDCG@10 and empty answers, by kind of query. The rest builds
synthetic catalogues, and gives the hub with each engine and FTS5 the same words, in turns, measured
by processor time of the querying thread. ``--explained`` compares plain searches with explained
ones instead. ``--http`` queries a whole hub over HTTP, each query once, then few again and again;
needs wrk. ``--commits``: the growth of an index's folder and of a reader's memory.
"""

import argparse
import contextlib
import gzip
import json
import math
import os
import random
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from urllib.parse import urlencode

import msgspec
from bench_build import build as build_site
from catalogue import Catalogue
from processes import HUBCTL, run
from report import percentile, print_machine, print_table, scratch_folder
from servers import hub, load

from builder.model.answers import CatalogueLine
from builder.model.names import Version
from builder.model.routes import BY_NAME, QUERY_CHARS_MAX
from builder.model.settings import SEARCH_ENGINES, Settings
from builder.pipeline.build import build
from builder.render.clients import search_program
from builder.search.engine import engine_named
from builder.search.entries import entry_of
from builder.search.index import index_folder
from builder.search.language import STOP_STEMS
from builder.search.plan import RepoFilter, make_plan, query_words
from builder.search.queries import REACHED_MAX, ListQuery, Queries
from builder.search.rules import search_rules
from builder.store import content
from builder.store.state import State
from builder.text import words

PAGE = 50
QUERIES_PER_KIND = 40
HTTP_CLIENTS = 8
HTTP_SECONDS = 20

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
    parser.add_argument("--http", action="store_true", help="measure a hub's searches over HTTP")
    parser.add_argument("--explained", action="store_true",
                        help="compare plain searches with explain=true")  # fmt: skip
    parser.add_argument("--commits", type=int, metavar="N",
                        help="publish into 1,000 repos so many times instead")  # fmt: skip
    parser.add_argument("--scratch", metavar="DIR", help="where the files go [/dev/shm]")
    options = parser.parse_args()
    if options.quality and not (options.prompts and options.judgements):
        parser.error("--quality needs --prompts and --judgements")
    with scratch_folder(options.scratch) as folder:
        if options.quality:
            for engine in options.engines:
                measure_quality(options, engine, f"{folder}/{engine}")
        elif options.commits:
            for engine in options.engines:
                measure_commits(engine, options.commits, f"{folder}/{engine}")
            print_machine(folder)
        else:
            measure_speed = measure_http if options.http else measure_queries
            for size in options.sizes:
                measure_speed(options, size, f"{folder}/{size}")
            print_machine(folder)


# Quality


def measure_quality(options: argparse.Namespace, engine: str, folder: str) -> None:
    settings = settings_in(folder, engine)
    run([*HUBCTL, "import", options.prompts, "--content", settings.content])
    build(settings)
    with contextlib.closing(Queries(settings)) as queries:

        def ask(q: str) -> tuple[list[str], str]:
            found = queries.find(ListQuery(q=q), 0, PAGE)
            return ids_of(found.rows), found.match

        judge(options, engine, ask)
    if engine == options.engines[0]:
        measure_lines(options, f"{settings.out}/{BY_NAME['catalogue'].file}")


def measure_lines(options: argparse.Namespace, file: str) -> None:
    """The results of browsers and the shell client, which search the catalogue's lines."""
    with open(file, "rb") as opened:
        lines = opened.read()
    client = ModuleType("client_search")
    exec(compile(search_program(search_rules()), "search.py", "exec"), vars(client))
    catalogue = client.Catalogue([json.loads(line) for line in lines.splitlines()])

    def ask(q: str) -> tuple[list[str], str]:
        repos, meta = catalogue.search(q, set())
        return ["{owner}/{name}".format(**repo) for repo in repos[:PAGE]], meta["match"]

    judge(options, f"the lines ({len(gzip.compress(lines)):,} bytes)", ask)


def judge(
    options: argparse.Namespace, name: str, ask: Callable[[str], tuple[list[str], str]]
) -> None:
    """Run the judged queries. ``ask`` returns the ids found, and ``match``."""
    with open(options.judgements, encoding="utf-8") as file:
        judgements = [json.loads(line) for line in file]
    scores: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    wrong = []
    for judged in judgements:
        ids, match = ask(judged["query"])
        if not judged["relevant"]:
            if match != "some":
                wrong.append(judged["query"])
            continue
        scored = score(ids, judged["relevant"])
        for kind in (judged["kind"], "all"):
            scores[kind].append(scored)
        if options.verbose and scored[2] < 0.8:
            print(f"{scored[2]:.2f} {judged['query']!r}")
            for one in ids[:8]:
                print(f"    {judged['relevant'].get(one, '-')} {one}")
    print_table(
        f"What is found by {name}",
        ["kind of query", "queries", "success@3", "MRR", "nDCG@10", "empty"],
        [
            [kind, len(rows), *(sum(part) / len(rows) for part in zip(*rows, strict=True))]
            for kind, rows in scores.items()
        ],
    )
    print(f"Where nothing fits, the answer says so, but for: {', '.join(wrong) or 'none'}")


def score(ids: list[str], relevant: dict[str, int]) -> tuple[float, ...]:
    """success@3, reciprocal rank, nDCG@10, and 1 if nothing was found."""
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


def measure_queries(options: argparse.Namespace, size: int, folder: str) -> None:
    catalogue = Catalogue(size)
    catalogue.write(f"{folder}/content")
    queries_by_kind = questions(catalogue, random.Random(7))
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
        askers[engine] = partial(find, queries)
        if options.explained:
            askers[f"{engine}, explained"] = partial(find, queries, explain=True)
    database = full_text_table(settings)
    if not options.explained:
        askers["FTS5"] = lambda query: ask_full_text(database, query)
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(options.rounds):
        for kind, queries in queries_by_kind.items():
            for name, ask in askers.items():
                for query in queries:
                    start = time.thread_time()
                    ask(query)
                    taken[kind, name].append((time.thread_time() - start) * 1000)
    for one in [*opened, database]:
        one.close()
    print_table(
        f"{size:,} repos: milliseconds of the processor, of {options.rounds} rounds",
        ["kind of query", *(f"{name} {part}" for name in askers for part in ("p50", "p99"))],
        [
            [kind, *(percentile(taken[kind, name], part) for name in askers for part in (50, 99))]
            for kind in queries_by_kind
        ],
    )


def questions(
    catalogue: Catalogue, chance: random.Random, count: int = QUERIES_PER_KIND
) -> dict[str, list[ListQuery]]:
    """Queries of each kind. The catalogue's words are in the order of their frequency."""
    known = [word for word in catalogue.words if word not in STOP_STEMS]
    common, usual, rare = known[:20], known[100:1_000], known[1_000:]

    def queries(make: Callable[[], str], **options: object) -> list[ListQuery]:
        return [ListQuery(q=make()[:QUERY_CHARS_MAX], **options) for _ in range(count)]

    def some(choice: list[str], count: int) -> str:
        return " ".join(chance.sample(choice, count))

    deep = min(max(1, catalogue.repos // PAGE // 8), REACHED_MAX // PAGE)
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
        "common, deep page": queries(lambda: chance.choice(common), page=deep),
        "common, deep, sort=top": queries(lambda: chance.choice(common), sort="top", page=deep),
    }


def find(queries: Queries, query: ListQuery, *, explain: bool = False) -> None:
    queries.find(query._replace(explain=explain), first_of(query), PAGE)


def first_of(query: ListQuery) -> int:
    return (query.page - 1) * PAGE


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
        database.execute("BEGIN")
        for line, text in texts(settings, state):
            parts = [line.owner, line.name, line.title, line.description, *line.tags, text]
            split = " ".join(word.surface for word in words.words(" ".join(parts)))
            database.execute("INSERT INTO page VALUES (?, ?)", (line.name, split))
        database.execute("COMMIT")
    return database


def texts(settings: Settings, state: State) -> Iterator[tuple[CatalogueLine, str]]:
    """Each repo with its latest text."""
    for data in state.repos.catalogue_lines():
        line = msgspec.json.decode(data, type=CatalogueLine)
        version = Version.parse(line.latest_version)
        yield line, content.read_version(settings.content, line.owner, line.name, version)[1]


def ask_full_text(database: sqlite3.Connection, query: ListQuery) -> None:
    """The 50 best by BM25, and the number of matches; of any word, the last one as a prefix."""
    parts = [f'"{word.surface}"' for word in query_words(query.q)]
    match = " OR ".join([*parts[:-1], f"{parts[-1]}*"])
    database.execute(
        "SELECT id FROM page WHERE page MATCH ? ORDER BY bm25(page) LIMIT 50 OFFSET ?",
        (match, first_of(query)),
    ).fetchall()
    database.execute("SELECT count(*) FROM page WHERE page MATCH ?", (match,)).fetchone()


# Over HTTP


def measure_http(options: argparse.Namespace, size: int, folder: str) -> None:
    """All kinds of queries in turn, without repetition; then few, again and again."""
    cores = sorted(os.sched_getaffinity(0))
    server_core, wrk_core = (cores[0], cores[1]) if len(cores) > 1 else (None, None)
    catalogue = Catalogue(size)
    catalogue.write(f"{folder}/content")
    build_site(folder, "--index")
    rows = []
    with hub(folder, server_core, 0) as server:
        for name, count in (("each once", 1_000), ("each many times", 10)):
            queries_by_kind = questions(catalogue, random.Random(8), count).values()
            paths = [
                path_of(query) for turn in zip(*queries_by_kind, strict=True) for query in turn
            ]
            found = load(server, paths, {}, HTTP_SECONDS, wrk_core, HTTP_CLIENTS)
            rows.append([
                name, found.reads_per_second, found.reads_per_cpu_second, found.p50_milliseconds,
                found.p99_milliseconds, found.refused + found.broken,
            ])  # fmt: skip
    print_table(
        f"{size:,} repos: searches over HTTP, {HTTP_CLIENTS} clients, all kinds in turn",
        ["queries", "a second", "a CPU second", "p50 ms", "p99 ms", "refused"],
        rows,
    )


def path_of(query: ListQuery) -> str:
    given = {"q": query.q, "sort": query.sort, "tag": ",".join(query.tags), "page": query.page}
    return "/api/v1/repos?" + urlencode({key: value for key, value in given.items() if value})


# Commits


def measure_commits(engine_name: str, commits: int, folder: str) -> None:
    """Commits of one or two of 1,000 repos, and a reader that follows each."""
    Catalogue(1_000).write(f"{folder}/content")
    settings = Settings(
        f"{folder}/content", f"{folder}/site", f"{folder}/state", search=engine_name
    )
    build(settings)
    with State(settings.state, read_only=True) as state:
        entries = [entry_of(line, text, "") for line, text in texts(settings, state)]
    index, engine = index_folder(settings), engine_named(engine_name)
    chance = random.Random(9)
    rows = []
    with contextlib.closing(engine.open(index)) as reader:
        started = time.process_time()
        for done in range(commits + 1):
            if done % max(1, commits // 4) == 0:
                with os.scandir(index) as files:
                    sizes = [one.stat().st_size for one in files]
                seconds = time.process_time() - started
                rows.append([done, len(sizes), sum(sizes) / 1e6, resident_bytes() / 1e6, seconds])
            chosen = chance.sample(entries, chance.randint(1, 2))
            engine.write(index, [one._replace(digest=str(done)) for one in chosen], [])
            reader.follow()
            reader.find(make_plan("write a story", reader), RepoFilter(), 0, PAGE)
    print_table(
        f"{engine_name}: commits of one or two of 1,000 repos",
        ["commits", "files", "MB", "memory MB", "CPU seconds"],
        rows,
    )


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
