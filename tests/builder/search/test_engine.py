"""Search: what queries find in the sample catalogue, and that it is what the definition says."""

import gc
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.model.errors import OperatorError, RequestError
from builder.model.records import CatalogueLine
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.search import engine
from builder.search.engine import Searcher, found_words, parse_query
from builder.search.queries import ListQuery, Queries
from builder.store import content
from builder.text import words
from tests.support.catalogues import settings_in, write_version


def find(queries: Queries, q: str, **options) -> list[str]:
    """The owner/name of the repos on a page, in order."""
    page = json.loads(queries.answer(ListQuery(q=q, **options)))
    return [f"{repo['owner']}/{repo['name']}" for repo in page["data"]]


def find_all(queries: Queries, q: str, **options) -> list[str]:
    """As ``find``, of all pages."""
    found, page = [], 1
    while True:
        answer = json.loads(queries.answer(ListQuery(q=q, page=page, **options)))
        found += [f"{repo['owner']}/{repo['name']}" for repo in answer["data"]]
        if page == answer["meta"]["pages"]:
            assert len(found) == answer["meta"]["total"]
            return found
        page += 1


@pytest.fixture(scope="module")
def sample(built_sample: Settings) -> Iterator[Queries]:
    queries = Queries(built_sample)
    yield queries
    queries.close()


class Known(NamedTuple):
    """What is known of a repo's words: the stems, and each word with its stem."""

    stems: set[str]
    words: set[words.Word]


@pytest.fixture(scope="module")
def vocabulary(built_sample: Settings) -> dict[str, Known]:
    return read_vocabulary(built_sample)


def read_vocabulary(settings: Settings) -> dict[str, Known]:
    """The words of each repo's latest version, straight from the content."""
    found = {}
    for owner in content.list_owners(settings.content):
        for name in content.list_repos(settings.content, owner):
            versions = content.list_versions(settings.content, owner, name).versions
            if not versions:
                continue
            record, text = content.read_version(settings.content, owner, name, versions[-1])
            line = CatalogueLine(
                owner, name, record.title, record.description, record.tags,
                str(versions[-1]), record.sha256,
            )  # fmt: skip
            weights, surfaces = found_words(line, text)
            assert set(weights) == {word.stem for word in surfaces}
            found[f"{owner}/{name}"] = Known(set(weights), surfaces)
    return found


def matching(vocabulary: dict[str, Known], q: str) -> set[str]:
    """The definition: every word is there by its stem. For the last one that of any word that
    begins so will do.
    """
    *whole, last = words.query_words(q)
    endings = {last.stem} | {
        word.stem
        for known in vocabulary.values()
        for word in known.words
        if word.surface.startswith(last.surface) or word.stem.startswith(last.surface)
    }
    return {
        repo
        for repo, known in vocabulary.items()
        if known.stems.issuperset(word.stem for word in whole) and known.stems & endings
    }


# What people type. A set: exactly these. A string: this one first.
WRITTEN_DOWN = [
    # Stop words are words like all others, in every field.
    ("act as interviewer", {"career-bench/mock-interview"}),
    ("act interviewer", {"career-bench/mock-interview"}),
    ("interviewer act as", {"career-bench/mock-interview"}),
    # Title and name before content
    ("interviewer", "career-bench/mock-interview"),
    ("log", "tidewater-platform/log-triage"),
    ("meeting notes", "plainwords/meeting-notes"),
    ("release notes", "tidewater-platform/release-notes"),
    ("notes release", "tidewater-platform/release-notes"),
    ("threat", "ines-caldeira/stride-threat-model"),
    ("judge", "kestrel-lab/pairwise-judge"),
    ("diff", "sam-ferreira/diff-review"),
    ("WCAG 2.2", {"a11y-guild/wcag-22-audit"}),
    # The last word as a beginning, the others whole
    ("accessib", "a11y-guild/wcag-22-audit"),
    ("negotiat", {"career-bench/negotiation-prep"}),
    ("sql rev", {"mara-okafor/sql-review"}),
    ("rev sql", set()),
    ("postmor", {"tidewater-platform/incident-postmortem"}),
    # Stems
    ("reviewing sql", {"mara-okafor/sql-review"}),
    ("sql reviews", {"mara-okafor/sql-review"}),
    ("regular expressions", {"sam-ferreira/regex-explainer"}),
    ("debugging templates", "sam-ferreira/template-debugger"),
    ("lessons planned", {"prof-benedetti/lesson-planner"}),
    # Owner and name
    ("sam-ferreira/diff-review", {"sam-ferreira/diff-review"}),
    ("kestrel-lab/pairwise-judge", {"kestrel-lab/pairwise-judge"}),
    ("yuki tanabe", {"yuki-tanabe/eibun-mail", "yuki-tanabe/gijiroku-seiri"}),
    ("sam-ferreira", {
        "sam-ferreira/commit-message", "sam-ferreira/diff-review", "sam-ferreira/regex-explainer",
        "sam-ferreira/template-debugger", "sam-ferreira/unit-test-writer",
    }),
    # Tags
    ("meal-plan", {"north-table/weekly-meal-plan"}),
    ("conventional-commits", {"sam-ferreira/commit-message"}),
    # Case, full width, apostrophes
    ("sTrIdE", {"ines-caldeira/stride-threat-model"}),
    ("ＳＱＬ　ｒｅｖｉｅｗ", {"mara-okafor/sql-review"}),
    ("customer's reply", {"harbor-support/customer-reply"}),
    ("customer’s reply", {"harbor-support/customer-reply"}),
    # Other scripts
    ("議事録", {"yuki-tanabe/gijiroku-seiri"}),
    ("事録", {"yuki-tanabe/gijiroku-seiri"}),
    ("録", {"yuki-tanabe/gijiroku-seiri"}),
    ("ビジネスメール", {"yuki-tanabe/eibun-mail"}),
    ("日本語", {"yuki-tanabe/eibun-mail", "yuki-tanabe/gijiroku-seiri"}),
    ("УКРАЇНСЬКОЮ", {"olena-kovalchuk/pereklad-interfeisu"}),
    ("лист установи", {"olena-kovalchuk/zrozumilyi-lyst"}),
    ("перекла", {"olena-kovalchuk/pereklad-interfeisu"}),
    # Nothing, and nothing in one place
    ("zzzz", set()),
    ("xss dinner", set()),
]  # fmt: skip


@pytest.mark.parametrize(("q", "expected"), WRITTEN_DOWN)
def test_written_down(sample: Queries, q: str, expected: set[str] | str) -> None:
    found = find(sample, q)
    if isinstance(expected, str):
        assert found[0] == expected
    else:
        assert set(found) == expected


@pytest.mark.parametrize("q", ["", " ", "!?", "...", "—", "'", "’", "/", "_", "\0", "\u0301", "🙂"])
def test_no_word(sample: Queries, q: str) -> None:
    with pytest.raises(RequestError, match="no word") as caught:
        find(sample, q)
    assert caught.value.code == "invalid_parameter"


@given(st.data())
def test_finds_what_the_definition_says(
    sample: Queries, vocabulary: dict[str, Known], data: st.DataObject
) -> None:
    repo = data.draw(st.sampled_from(sorted(vocabulary)))
    known = sorted({word.surface for word in vocabulary[repo].words} | vocabulary[repo].stems)
    anywhere = sorted({word.surface for one in vocabulary.values() for word in one.words})
    parts = data.draw(
        st.lists(
            st.one_of(st.sampled_from(known), st.sampled_from(known), st.sampled_from(anywhere)),
            min_size=1, max_size=5,
        )
    )  # fmt: skip
    last = parts[-1]
    parts[-1] = last[: data.draw(st.integers(1, len(last)))]
    q = data.draw(st.sampled_from([" ", ", ", "/", "　"])).join(parts)
    if not words.query_words(q):
        return
    expected = matching(vocabulary, q)
    assert set(find_all(sample, q)) == expected
    assert set(find_all(sample, q, sort="new")) == expected


def test_every_repo_is_found_by_its_own_words(
    sample: Queries, vocabulary: dict[str, Known]
) -> None:
    chance = random.Random(5)
    for repo in vocabulary:
        assert find(sample, repo)[0] == repo
        surfaces = sorted(word.surface for word in vocabulary[repo].words)
        picked = [surface for surface in surfaces if surface.isascii() and surface.isalpha()]
        q = " ".join(chance.sample(picked, 3))
        assert (repo in find_all(sample, q)) == (repo in matching(vocabulary, q)), q


def finds_or_refuses(queries: Queries, q: str) -> None:
    try:
        find(queries, q)
    except RequestError as error:
        assert error.code == "invalid_parameter"
        assert not words.query_words(q)


@given(st.text(max_size=100))
def test_any_text(sample: Queries, q: str) -> None:
    finds_or_refuses(sample, q)


_syntax = st.sampled_from(
    ["*", "?", "~", "~2", "^2", '"', "'", "(", ")", "[", "]", "{", "}", " TO ", ":", "id:", "text:",
     " AND ", " OR ", " NOT ", " ANDNOT ", "+", "-", "\\", "/", "..", "<", ">", "=", "&&", "||",
     "review", "sql", "a", "\0", "\x1f", "\x7f", "\u200d", "\ufeff", "\u202e", "\ufffd", "議", "ก",
     "é"]
)  # fmt: skip


@given(st.lists(_syntax, max_size=20).map("".join))
def test_query_syntax_means_nothing(sample: Queries, q: str) -> None:
    finds_or_refuses(sample, q)


def test_query_syntax_is_only_text_between_words(sample: Queries) -> None:
    plain = find(sample, "sql review")
    for q in ('"sql review"', "sql AND review*", "+sql +review", "(sql) (review)", "sql~ review~"):
        if "AND" in q:
            assert set(find(sample, q)) == set(find(sample, "sql and review"))
        else:
            assert find(sample, q) == plain


# The order


def test_relevance_is_a_total_order_and_pages_part_it(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    chance = random.Random(3)
    for number in range(130):
        text = "tide " * chance.randint(1, 3) + " ".join(chance.sample(FEW_WORDS, 3))
        write_version(settings.content, chance.choice(OWNERS), f"r{number}", "1.0.0", text)
        if number == 60:
            # Two commits, so that the order in the index is not that of the names.
            build(settings)
    build(settings)
    queries, searcher = Queries(settings), Searcher(settings)
    scores = searcher.search(parse_query("tide"))
    assert len(scores) == 130
    assert 1 < len(set(scores.values())) < 130
    expected = sorted(scores, key=lambda repo: (-scores[repo], repo))
    assert find_all(queries, "tide") == expected
    assert find_all(queries, "tide") == expected
    assert find(queries, "tide", page=3) == expected[100:]
    by_name = find_all(queries, "tide", sort="new")
    assert sorted(by_name) == sorted(expected)
    with pytest.raises(RequestError) as caught:
        find(queries, "tide", page=4)
    assert caught.value.code == "page_not_found"
    queries.close()
    searcher.close()


FEW_WORDS = "wind wave rope sail anchor harbour lantern pilot chart compass".split()
OWNERS = ["ann", "bob", "cid"]

# The index follows the content


_repos = st.sampled_from([(owner, name) for owner in OWNERS for name in ("one", "two", "six")])
_texts = st.lists(st.sampled_from(FEW_WORDS), min_size=1, max_size=4).map(" ".join)
_changes = st.lists(
    st.lists(st.tuples(_repos, st.one_of(_texts, st.none())), min_size=1, max_size=3),
    min_size=2, max_size=5,
)  # fmt: skip


@settings(max_examples=6)
@given(_changes)
def test_incremental_index_is_a_fresh_index(
    tmp_path_factory: pytest.TempPathFactory, changes: list
) -> None:
    folder = tmp_path_factory.mktemp("index")
    grown = settings_in(folder)
    write_version(grown.content, "zoe", "first", "1.0.0", "wind and wave")
    build(grown)
    queries = Queries(grown)
    versions: dict[tuple[str, str], int] = {}
    for step, change in enumerate(changes):
        for (owner, name), text in change:
            if text is None:
                shutil.rmtree(f"{grown.content}/{owner}/{name}", ignore_errors=True)
            else:
                patch = versions[owner, name] = versions.get((owner, name), -1) + 1
                write_version(grown.content, owner, name, f"1.0.{patch}", text)
        build(grown)
        fresh = grown._replace(out=f"{folder}/site{step}", state=f"{folder}/state{step}")
        build(fresh)
        anew, vocabulary = Queries(fresh), read_vocabulary(grown)
        for q in [*FEW_WORDS, "wind wave", "ro", "one", "ann wi", "prompt"]:
            expected = matching(vocabulary, q)
            found = find_all(queries, q)
            assert len(found) == len(set(found))
            assert set(found) == set(find_all(anew, q)) == expected
            assert found == find_all(queries, q)
            assert find_all(queries, q, sort="top") == find_all(anew, q, sort="top")
        anew.close()
    queries.close()


def test_words_of_texts_that_are_gone(small: Settings) -> None:
    write_version(small.content, "eve", "one", "1.0.0", "Writing is hard.")
    write_version(small.content, "eve", "two", "1.0.0", "Writes slowly.")
    build(small)
    queries = Queries(small)
    assert set(find(queries, "writi")) == {"bob/sql", "eve/one", "eve/two"}
    shutil.rmtree(f"{small.content}/eve/one")
    build(small)
    fresh = small._replace(out=f"{small.out}2", state=f"{small.state}2")
    build(fresh)
    anew = Queries(fresh)
    found, expected = find(queries, "writi"), find(anew, "writi")
    for one in (queries, anew):
        one.close()
    assert found == expected


def replace(path: Path, data: bytes) -> None:
    # Never in place: what the old file's readers have mapped must stay.
    path.unlink()
    path.write_bytes(data)


def ruin_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def ruin_stamp(folder: Path) -> None:
    (folder / "stamp").unlink()


def put_file_in_its_place(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("not an index")


def empty_folder(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def truncate_contents(folder: Path) -> None:
    for path in folder.glob("*.toc"):
        replace(path, path.read_bytes()[:20])


def garble_contents(folder: Path) -> None:
    for path in folder.glob("*.toc"):
        replace(path, bytes(range(256)) * 8)


def empty_contents(folder: Path) -> None:
    for path in folder.glob("*.toc"):
        replace(path, b"")


def remove_contents(folder: Path) -> None:
    for path in folder.glob("*.toc"):
        path.unlink()


def remove_segments(folder: Path) -> None:
    for path in folder.glob("*.seg"):
        path.unlink()


def truncate_segments(folder: Path) -> None:
    for path in folder.glob("*.seg"):
        replace(path, path.read_bytes()[:100])


def garble_segments(folder: Path) -> None:
    for path in folder.glob("*.seg"):
        replace(path, bytes(range(256)) * 8)


def empty_segments(folder: Path) -> None:
    for path in folder.glob("*.seg"):
        replace(path, b"")


RUINS = [
    ruin_folder, ruin_stamp, put_file_in_its_place, empty_folder, truncate_contents,
    garble_contents, empty_contents, remove_contents, remove_segments, truncate_segments,
    garble_segments, empty_segments,
]  # fmt: skip


# What Whoosh has opened when it meets the damage, it leaves open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("ruin", RUINS)
@pytest.mark.parametrize("is_changed", [True, False])
def test_damaged_index_is_made_anew(small: Settings, ruin, is_changed: bool) -> None:
    """By the next build, whether the content has changed or not."""
    build(small)
    reader = Queries(small)
    assert find(reader, "care") == ["ann/review"]
    ruin(Path(engine.index_folder(small)))
    late = Queries(small)
    for queries in (reader, late):
        # Until then a search may fail, but only in the way that readers know.
        try:
            found = find(queries, "care")
        except RequestError as error:
            assert error.code == "unavailable"
        else:
            assert found in ([], ["ann/review"])
    expected = {"ann/review"}
    if is_changed:
        write_version(small.content, "bob", "nurse", "1.0.0", "Take care.\n")
        expected.add("bob/nurse")
    build(small)
    for queries in (reader, late, Queries(small)):
        assert set(find(queries, "care")) == expected
        queries.close()
    gc.collect()


# As above.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_files_that_go_while_a_reader_follows_a_commit(small: Settings) -> None:
    """Whoosh looks for them again some times; then the reader must be whole, or say so."""
    build(small)
    reader = Queries(small)
    assert find(reader, "care") == ["ann/review"]
    write_version(small.content, "bob", "nurse", "1.0.0", "Take care.\n")
    build(small)
    remove_segments(Path(engine.index_folder(small)))
    for _ in range(2):
        with pytest.raises(RequestError) as caught:
            find(reader, "care")
        assert caught.value.code == "unavailable"
    build(small)
    assert set(find(reader, "care")) == {"ann/review", "bob/nurse"}
    reader.close()
    gc.collect()


def test_small_parts_alone_are_merged_in_a_hurry(
    small: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or who publishes would wait until all of the index is written again."""
    monkeypatch.setattr(engine, "MERGED_SEGMENTS_MIN", 3)
    monkeypatch.setattr(engine, "MERGED_REPOS_MAX", 4)
    for number in range(10):
        write_version(small.content, "eve", f"repo-{number}", "1.0.0", "Many careful words.")
    build(small)
    folder = engine.index_folder(small)
    first = {path.name for path in Path(folder).glob("*.seg")}
    assert len(first) == 1
    counts = []
    for number in range(20):
        name = f"new-{number}"
        write_version(small.content, "eve", name, "1.0.0", f"Care {number}.")
        build(small, changed=[("eve", name)], is_wanted=lambda: False)
        now = {path.name for path in Path(folder).glob("*.seg")}
        assert first <= now
        counts.append(len(now))
    assert max(counts) < 12
    queries = Queries(small)
    assert len(find_all(queries, "care")) == 31
    queries.close()


def test_index_whose_making_did_not_end_is_made_anew(small: Settings) -> None:
    build(small)
    reader = Queries(small)
    assert find(reader, "care") == ["ann/review"]
    ruin_stamp(Path(engine.index_folder(small)))

    def die(what: str, done: int, total: int) -> None:
        # While it is made, the reader goes on with what it has.
        assert find(reader, "care") == ["ann/review"]
        if what == "Indexing" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(small, progress=die)
    assert find(reader, "care") == ["ann/review"]
    build(small)
    for queries in (reader, Queries(small)):
        assert find(queries, "care") == ["ann/review"]
        assert find(queries, "story") == ["ann/story"]
        queries.close()


def test_whole_state_thrown_away_under_a_reader(small: Settings) -> None:
    build(small)
    reader = Queries(small)
    assert find(reader, "care") == ["ann/review"]
    shutil.rmtree(small.state)
    write_version(small.content, "bob", "nurse", "1.0.0", "Take care.\n")
    build(small)
    assert set(find(reader, "care")) == {"ann/review", "bob/nurse"}
    reader.close()


def test_without_an_index(small: Settings) -> None:
    with pytest.raises(OperatorError, match="hubctl build"):
        Searcher(small)
    build(small, index=False)
    queries = Queries(small)
    with pytest.raises(RequestError) as caught:
        find(queries, "care")
    assert caught.value.code == "unavailable"
    build(small)
    assert find(queries, "care") == ["ann/review"]
    queries.close()


def test_before_the_first_build(small: Settings) -> None:
    queries = Queries(small)
    with pytest.raises(RequestError) as caught:
        find(queries, "care")
    assert caught.value.code == "unavailable"
    build(small)
    assert find(queries, "care") == ["ann/review"]
    queries.close()
