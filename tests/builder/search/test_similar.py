"""Suggestions for a wrong name."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.pipeline.build import build
from builder.search.queries import ListQuery
from builder.text.likeness import COMPARED_MAX
from tests.builder.search.asking import NO_NAMES
from tests.support.catalogues import moment, write_version


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("sam-ferreira/dif-review", "sam-ferreira/diff-review"),
        ("sam-ferreira/diff-reviewer", "sam-ferreira/diff-review"),
        ("Sam-Ferreira/Diff_Review", "sam-ferreira/diff-review"),
        ("sam-ferreira/diff review", "sam-ferreira/diff-review"),
        ("sam-ferreira/diff-review/1.0.0", "sam-ferreira/diff-review"),
        ("sam-ferreira/diff-review@1.0.0", "sam-ferreira/diff-review"),
        # Another owner's
        ("sam/diff-review", "sam-ferreira/diff-review"),
        ("diff-review", "sam-ferreira/diff-review"),
        ("mara-okafor/diff-review", "sam-ferreira/diff-review"),
        ("mara-okafor/diff-reviewer", "mara-okafor/sql-review"),
        # A beginning
        ("career-bench/mock", "career-bench/mock-interview"),
        ("career-bench/m", "career-bench/mock-interview"),
        # Matches by all words, or the first
        ("someone/sql-reviewing", "mara-okafor/sql-review"),
        ("interviewer", "career-bench/mock-interview"),
        ("postmortem-generator-tool", "tidewater-platform/incident-postmortem"),
        ("議事録", "yuki-tanabe/gijiroku-seiri"),
        ("bulk1/n31", "bulk1/n31"),
    ],
)
def test_similar(many, name, first):
    assert many[0].similar(name, 5)[0] == first
    assert many[0].similar(name, 1) == [first]


def test_similar_names_by_other_owners_are_in_the_order_of_top(small, queries):
    for owner, hours in (("cid", 10), ("dan", 30), ("eve", 20)):
        write_version(small.content, owner, "poem", "1.0.0", "x", published_at=moment(hours))
    build(small)
    assert queries.similar("fay/poem", 9) == ["dan/poem", "eve/poem", "cid/poem"]
    assert queries.similar("eve/poems", 9)[0] == "eve/poem"
    assert queries.similar("poem", 2) == ["dan/poem", "eve/poem"]


@pytest.mark.parametrize("name", ["/", "//", "ann/", "nobody/", "zzzz", "\0/\0", *NO_NAMES])
def test_nothing_is_similar_to(small, name, queries):
    build(small)
    found = queries.similar(name, 5)
    # For the name of an owner alone, the owner's repos are suggested.
    expected = ["ann/review", "ann/story"] if name.lower().strip("/") == "ann" else []
    assert sorted(found) == expected


_pieces = st.sampled_from(
    ["sam-ferreira", "diff-review", "bulk0", "n1", "sql", "/", "-", "%", "_", "議事録", "\ud800"]
)


@given(
    name=st.one_of(st.text(max_size=200), st.lists(_pieces, max_size=9).map("".join)),
    count=st.integers(1, 20),
)
def test_any_text_gives_known_repos_once(many, name, count):
    queries, repos = many
    found = queries.similar(name, count)
    assert len(found) == len(set(found)) <= count
    assert set(found) <= {repo["id"] for repo in repos}
    assert found[:1] == queries.similar(name, 1)


def test_an_owner_with_more_repos_than_are_compared(small, monkeypatch, queries):
    monkeypatch.setattr("builder.search.queries.COMPARED_MAX", 2)
    for name in ("one", "two", "three", "four", "reader"):
        write_version(small.content, "ann", name, "1.0.0", "x")
    build(small)
    assert queries.similar("ann/twoo", 5) == ["ann/two"]
    assert queries.similar("ann/reviewed", 5)[0] == "ann/review"


def test_a_wrong_name_is_compared_with_few_names(small, compared_names, queries):
    # Names of two letters take longest to compare.
    known = ["".join(letters) for letters in itertools.product("ab", repeat=7)]
    for name in known:
        write_version(small.content, "many", name, "1.0.0", "x")
    build(small)
    compared_names.clear()
    for wrong in ("ababaab-", "a", "zz", "abababababab", "-", "bbbbbbbbb"):
        queries.similar(f"many/{wrong}", 5)
        assert len(compared_names) == COMPARED_MAX, wrong
        # Those on both sides of where it would be.
        assert sorted(compared_names) == compared_names
        compared_names.clear()
    assert queries.similar("many/abababb0", 5)[0] == "many/abababb"
    assert queries.similar("many/aaaaaaa0", 5)[0] == "many/aaaaaaa"


def test_names_are_similar_without_an_index(small, queries):
    build(small, index=False)
    assert queries.similar("ann/reviews", 3) == ["ann/review"]
    assert queries.similar("care", 3) == []
    build(small)
    assert queries.similar("care", 3) == ["ann/review"]


def test_a_word_of_the_text_alone_makes_no_name_similar(small, queries):
    write_version(small.content, "ann", "poem", "1.0.0", "Sing of marmalade.\n", title="A poem")
    build(small)
    assert queries.find(ListQuery(q="marmalade"), 0, 3).total == 1
    assert queries.similar("nobody/marmalade", 3) == []
    assert queries.similar("nobody/poems", 3) == ["ann/poem"]
