"""Both engines against the model: what they find and in which order, also after changes."""

import contextlib
import os
import pickle
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.answers import CatalogueLine
from builder.model.routes import SORTS
from builder.model.search_records import Facet, Facets
from builder.model.settings import SEARCH_ENGINES
from builder.search import engine as engine_module
from builder.search import with_tantivy, with_whoosh
from builder.search.engine import Engine, Reader, engine_named
from builder.search.entries import LONG_TEXT_CHARS, Entry, entry_of
from builder.search.plan import RepoFilter, lacking, make_plan, parse_query
from tests.builder.search.model import Model
from tests.support.depth import searching, some_of
from tests.support.searches import CASES, LINES

# Words that are common and rare, stop words, forms of a word, beginnings of others, synonyms.
WORDS = """the to write story stories storyteller poem poet poetry sql review reviewer reviewing
resume cv commercial com prompt improve idea 短视频脚本 视频 脚本
Überblick überblick naïve лист x2 e
""".split()
OWNERS = ["ann", "bob", "story-club"]
TAGS = ["sql", "poetry", "code"]
LABELS = ["story", "eu-west", "v2.beta_1"]

_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    owner = draw(st.sampled_from(OWNERS))
    name = draw(st.sampled_from(["one", "two", "story", "sql-review", "poem-2"]))
    text = draw(_words) + draw(st.sampled_from(["", " far" * LONG_TEXT_CHARS]))
    tags = draw(st.lists(st.sampled_from(TAGS), unique=True))
    line = CatalogueLine(owner, name, draw(_words), draw(_words), tags, "1.0.0", "", "")
    line.labels = draw(st.lists(st.sampled_from(LABELS), unique=True))
    # Times before 1970 and pulls without end are orders, too.
    values = st.sampled_from([-(2**40), -1, 0, 1, 2**62])
    order = {sort: draw(values) for sort in SORTS}
    return entry_of(line, text, str(draw(st.integers(0, 9))), order)


_queries = st.one_of(
    _words,
    st.lists(st.sampled_from(WORDS).map(lambda word: word[:3]), min_size=1, max_size=3).map(
        " ".join
    ),
    st.sampled_from(
        [
            "",
            *LABELS,
            "west",
            "ann/one",
            "story club",
            "reviwer",
            "stroies",
            "pomes",
            "the to",
            "zzzz",
        ]
    ),
    st.text(max_size=20),
)
_scopes = st.builds(
    RepoFilter,
    st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple),
    st.sampled_from([None, *OWNERS, "nobody"]),
    st.lists(st.sampled_from([*LABELS, "west"]), max_size=2, unique=True).map(tuple),
)


@pytest.fixture(params=SEARCH_ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return engine_named(request.param)


@pytest.fixture
def folder(engine: Engine, tmp_path: Path) -> str:
    path = tmp_path / "index"
    path.mkdir()
    engine.create(str(path))
    return str(path)


@contextlib.contextmanager
def opened(engine: Engine, folder: str) -> Iterator[Reader]:
    with contextlib.closing(engine.open(folder)) as reader:
        yield reader


def check_same(reader: Reader, model: Model, q: str, scope: RepoFilter) -> None:
    plan = make_plan(q, model)
    assert make_plan(q, reader) == plan
    expected = model.best(plan, scope, 0, 100)
    assert reader.find(plan, scope, 0, 100) == (expected, len(expected))
    for at in range(len(expected)):
        assert reader.find(plan, scope, at, 1) == (expected[at : at + 1], len(expected))
    assert reader.facets(plan, scope) == model.facets(plan, scope)
    assert lacking(plan, expected, reader) == lacking(plan, expected, model)
    for sort in SORTS:
        in_order = model.best(plan, scope, 0, 100, sort)
        assert reader.find(plan, scope, 0, 100, sort) == (in_order, len(expected))


@searching(25)
@given(
    steps=st.lists(st.lists(entries(), max_size=8), min_size=1, max_size=4),
    searches=st.lists(st.tuples(_queries, _scopes), min_size=1, max_size=8),
    data=st.data(),
)
@pytest.mark.parametrize("name", SEARCH_ENGINES)
def test_engine_finds_what_the_model_finds(tmp_path_factory, name, steps, searches, data):
    engine, folder = engine_named(name), str(tmp_path_factory.mktemp("index"))
    engine.create(folder)
    held: dict[str, Entry] = {}
    with opened(engine, folder) as reader:
        for step in steps:
            new = {entry.id: entry for entry in step}
            gone = data.draw(st.lists(st.sampled_from(sorted(held)), unique=True)) if held else []
            gone = [one for one in gone if one not in new]
            before = engine.state(folder)
            engine.write(folder, new.values(), gone)
            held = {one: held[one] for one in held if one not in gone} | new
            if new or gone:
                assert engine.state(folder) != before
            reader.follow()
            model = Model(held.values())
            known = reader.words_beginning("", 10_000)
            assert set(known) >= set(model.words)
            model.words = known  # those of deleted repos may be among them
            assert reader.size() == len(held)
            assert reader.digests() == {one: entry.digest for one, entry in held.items()}
            for q, scope in searches:
                check_same(reader, model, q, scope)


def test_engine_finds_the_cases(engine, folder):
    entries = [entry_of(line, line.words, line.name) for line in LINES]
    engine.write(folder, entries, [])
    model = Model(entries)
    with opened(engine, folder) as reader:
        for case in CASES:
            labels, text = parse_query(case.q)
            scope = RepoFilter(tuple(filter(None, case.tags.split(","))), None, labels)
            check_same(reader, model, text, scope)
            found = reader.find(make_plan(text, reader), scope, 0, 100)
            assert {*found.ids} == {*case.found.split()}


def test_facets_of_more_names_than_are_counted(engine, folder, monkeypatch):
    """Names as frequent as the first one beyond the limit are left out, in every engine."""
    for module in (with_tantivy, engine_module):
        monkeypatch.setattr(module, "COUNTED_MAX", 5)
    entries = [
        entry_of(
            CatalogueLine(f"o{number:02}", f"r{copy}", "Story", "", [], "1.0.0", "", ""), "", ""
        )
        for number in range(8)
        for copy in range(3 if number < 2 else 2 if number == 5 else 1)
    ]
    engine.write(folder, entries, [])
    with opened(engine, folder) as reader:
        found = reader.facets(make_plan("story", reader), RepoFilter())
    assert found == Facets([], [Facet("o00", 3), Facet("o01", 3), Facet("o05", 2)], [])


def many_entries(count: int, seed: int) -> list[Entry]:
    chance = random.Random(seed)
    made = []
    for number in range(count):

        def draw() -> str:
            return " ".join(chance.choices(WORDS, k=chance.randint(1, 5)))

        line = CatalogueLine(
            chance.choice(OWNERS), f"r{number}", draw(), draw(),
            chance.sample(TAGS, chance.randint(0, 2)), "1.0.0", "", "",
        )  # fmt: skip
        order = {sort: chance.randint(0, 1) for sort in SORTS}
        made.append(entry_of(line, draw(), str(number), order))
    return made


def test_many_repos_with_equal_scores(engine, folder, monkeypatch):
    """Ties end in the id, wherever a page begins and whichever commit brought a repo."""
    monkeypatch.setattr(with_tantivy, "TIES", 20)
    made = many_entries(700, 3)
    random.Random(4).shuffle(made)
    engine.write(folder, made[:500], [])
    engine.write(folder, made[400:], [])
    model = Model(made)
    with opened(engine, folder) as reader:
        for q in ("story", "s", "the", "sql review", "write a story poem prompt", "po"):
            plan = make_plan(q, reader)
            for sort in (None, *SORTS):
                expected = model.best(plan, RepoFilter(), 0, 1000, sort)
                assert len(expected) > 150
                for start in (0, 50, 100, len(expected) - 30, len(expected)):
                    found = reader.find(plan, RepoFilter(), start, 50, sort).ids
                    assert found == expected[start : start + 50], (q, sort)


def test_reader_keeps_its_commit_until_it_follows(engine, folder):
    made = many_entries(20, 1)
    engine.write(folder, made[:10], [])
    with opened(engine, folder) as reader:
        before = reader.digests()
        engine.write(folder, made[10:], [made[0].id])
        assert reader.digests() == before
        reader.follow()
        assert len(reader.digests()) == 19


def test_a_write_that_fails_leaves_the_index_as_it_was(engine, folder):
    made = many_entries(20, 1)
    engine.write(folder, made[:10], [])

    def failing() -> Iterator[Entry]:
        yield from made[10:]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        engine.write(folder, failing(), [made[0].id])
    with opened(engine, folder) as reader:
        assert len(reader.digests()) == 10
    engine.write(folder, made[10:], [])
    with opened(engine, folder) as reader:
        assert len(reader.digests()) == 20


WRITER = """
import pickle, sys
from itertools import count
from builder.search.engine import engine_named
engine, made = engine_named(sys.argv[1]), pickle.load(sys.stdin.buffer)
for number in count():
    engine.write(sys.argv[2], [entry._replace(digest=str(number)) for entry in made], [])
    print(number, flush=True)
"""


def test_killed_writer_leaves_a_commit(engine, folder):
    """Whole commits alone are seen, while another process writes and after it was killed."""
    chance = random.Random(6)
    name = engine.open.__module__.rpartition("_")[2]

    def check_whole() -> None:
        with opened(engine, folder) as reader:
            digests = reader.digests()
        assert len(digests) == 3
        assert len(set(digests.values())) == 1

    for _ in range(some_of(8)):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, name, folder], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        try:
            with writer.stdin:
                pickle.dump(many_entries(3, 0), writer.stdin)
            for _ in range(chance.randint(1, 4)):
                assert writer.stdout.readline()
                check_whole()
            time.sleep(chance.random() * 0.02)
        finally:
            writer.kill()
            writer.wait()
            writer.stdout.close()
        check_whole()
    engine.write(folder, many_entries(5, 0)[3:], [])
    with opened(engine, folder) as reader:
        assert len(reader.digests()) == 5


def test_a_commit_that_another_replaces_is_no_damage(tmp_path, monkeypatch):
    with_whoosh.create(str(tmp_path))
    open_dir, replaced = with_whoosh.index.open_dir, ["_MAIN_1.toc", "_MAIN_2.toc"]

    def open_late(folder: str) -> object:
        if replaced:
            raise FileNotFoundError(replaced.pop())
        return open_dir(folder)

    monkeypatch.setattr(with_whoosh.index, "open_dir", open_late)
    with contextlib.closing(with_whoosh.WhooshReader(str(tmp_path))) as reader:
        assert reader.size() == 0


def test_files_of_a_commit_that_was_cut_short_are_no_hindrance(engine, folder, tmp_path):
    made = many_entries(3, 0)
    engine.write(folder, made, [])
    before = shutil.copytree(folder, tmp_path / "before")
    engine.write(folder, made[:1], [])
    # As after a crash before the last of its files was written.
    but_its_notes = shutil.ignore_patterns(".*")
    shutil.copytree(before, folder, dirs_exist_ok=True, ignore=but_its_notes)
    engine.write(folder, made[:1], [])
    with opened(engine, folder) as reader:
        assert len(reader.digests()) == 3


def test_many_commits_do_not_pile_up_files(engine, folder):
    made = many_entries(40, 2)
    engine.write(folder, made, [])
    most = 0
    for number in range(60):
        engine.write(folder, [made[number % 40]], [])
        most = max(most, len(os.listdir(folder)))
    engine.write(folder, [made[0]], [])
    assert most < 250
    with opened(engine, folder) as reader:
        check_same(reader, Model(made), "story", RepoFilter())
