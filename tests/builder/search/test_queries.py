"""Answers to lists by query: every combination against brute force over the content's own files."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.routes import PAGE_SIZE, SORTS
from builder.search.engine import FACETS_MAX
from builder.search.plan import RepoFilter, make_plan
from builder.search.queries import ListPart, ListQuery, Queries
from builder.text.words import QUERY_WORDS_MAX
from tests.builder.search.asking import NO_NAMES, ask, refused
from tests.builder.search.model import Model


def expected_order(repos: list[dict], sort: str) -> list[str]:
    by_name = sorted(repos, key=lambda repo: repo["id"])
    key = {
        "top": lambda repo: repo["updated"],
        "trending": lambda repo: round(repo["trend"], 6),
        "new": lambda repo: repo["created"],
    }[sort]
    # Sorted by a stable sort, so owner/name ends the ties also in reverse.
    return [repo["id"] for repo in sorted(by_name, key=key, reverse=True)]


def with_words(repos: list[dict], q: str | None) -> list[dict]:
    """The repos that the model finds among all repos."""
    if q is None:
        return repos
    model = Model(repo["entry"] for repo in repos)
    found = model.scores(make_plan(q, model), RepoFilter())
    return [repo for repo in repos if repo["id"] in found]


QS = [None, "review", "sql", "act as interviewer", "the", "議事録", "лист", "a", "zzzz"]


@pytest.mark.parametrize("sort", [None, "new"])
def test_a_search_ends_at_a_place(many, monkeypatch, sort):
    queries, repos = many
    total = len(with_words(repos, "review"))
    assert total > 2 * PAGE_SIZE
    before = ask(queries, page=2, sort=sort, q="review")
    monkeypatch.setattr("builder.search.queries.REACHED_MAX", 2 * PAGE_SIZE)
    assert ask(queries, page=2, sort=sort, q="review") == before
    assert before[1]["total"] == total
    with refused("invalid_parameter", match="the first 100 results"):
        ask(queries, page=3, sort=sort, q="review")
    with refused("page_not_found", match="The last page"):
        ask(queries, page=99, sort=sort, q="review")


OWNERS = ["bulk0", "bulk1", "sam-ferreira", "nobody"]


_owners = st.one_of(st.none(), st.sampled_from(OWNERS + NO_NAMES))


_tags = st.lists(st.sampled_from(["code", "json", "sql", "writing"]), max_size=3).map(
    lambda tags: tuple(dict.fromkeys(tags))
)


def of_owner(repos: list[dict], owner: str | None, tags: tuple[str, ...]) -> list[dict]:
    return [
        repo
        for repo in repos
        if owner in (None, repo["id"].partition("/")[0]) and set(tags) <= set(repo["tags"])
    ]


def ids_of(found: ListPart) -> list[str]:
    return ["{owner}/{name}".format(**json.loads(row)) for row in found.rows]


def whole_list(queries: Queries, query: ListQuery) -> list[str]:
    """All of a list, a page at a time."""
    ids, total = [], 1
    while len(ids) < total:
        found = queries.find(query, len(ids), PAGE_SIZE)
        assert found.rows or not found.total
        ids += ids_of(found)
        total = found.total
    assert len(ids) == total
    return ids


@given(
    owner=_owners, tags=_tags, q=st.sampled_from(QS), sort=st.sampled_from([None, *SORTS]),
    start=st.integers(0, 200), count=st.integers(0, PAGE_SIZE), page=st.integers(1, 9),
)  # fmt: skip
def test_any_part_of_a_list(
    many, owner, tags, q,
    sort, start, count, page,
):  # fmt: skip
    queries, repos = many
    fitting = of_owner(with_words(repos, q), owner, tags)
    query = ListQuery(page, sort, tags, q, owner)
    whole = whole_list(queries, query)
    if q is not None and sort is None:
        assert set(whole) == {repo["id"] for repo in fitting}
    else:
        assert whole == expected_order(fitting, sort or "top")
    part = queries.find(query, start, count)
    assert (ids_of(part), part.total) == (whole[start : start + count], len(fitting))


def test_an_explained_search(many):
    """The facets count all results, and each row of a page has its match."""
    queries, repos = many
    fitting = with_words(repos, "review")
    _, meta = ask(queries, q="review")
    assert {"matches", "facets", "owner"}.isdisjoint(meta)
    for page in (1, 2):
        rows, meta = ask(queries, q="review", page=page, explain=True)
        assert len(meta["matches"]) == len(rows) == PAGE_SIZE
        assert all("review" in " ".join(one["words"]).lower() for one in meta["matches"])
        tags = Counter(tag for repo in fitting for tag in repo["tags"])
        owners = Counter(repo["id"].partition("/")[0] for repo in fitting)
        for name, counts in (("tags", tags), ("owners", owners)):
            expected = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:FACETS_MAX]
            assert meta["facets"][name] == [{"name": one, "count": n} for one, n in expected]


def test_lists_and_searches_of_an_owner(many):
    rows, meta = ask(many[0], owner="bulk1", sort="new", explain=True)
    assert len(rows) == meta["total"] == 50 and "facets" not in meta
    assert (meta["owner"], meta["sort"], meta["q"]) == ("bulk1", "new", None)
    _, meta = ask(many[0], q="review", owner="bulk0", tags=("sql",), explain=True)
    assert meta["owner"] == "bulk0" and meta["total"]
    assert meta["facets"]["owners"] == [{"name": "bulk0", "count": meta["total"]}]
    assert meta["facets"]["tags"][0]["count"] == meta["total"]


def test_a_search_for_labels(many):
    """Labels alone are a list in the order of ``top``."""
    labelled = ["bulk0/n0", "bulk0/n30", "bulk1/n10"]
    rows, meta = ask(many[0], q="LABEL:EU-west", explain=True)
    of_top = [one for one in whole_list(many[0], ListQuery()) if one in labelled]
    assert rows == of_top and {*rows} == {*labelled}
    assert (meta["label"], meta["sort"], meta["match"]) == ("eu-west", "top", "all")
    assert meta["facets"]["labels"] == [{"name": "eu-west", "count": 3}]
    assert not any(match["in"] or match["line"] for match in meta["matches"])
    assert whole_list(many[0], ListQuery(q="label:eu-west", sort="new", owner="bulk0")) == [
        one for one in whole_list(many[0], ListQuery(sort="new", owner="bulk0")) if one in labelled
    ]
    rows, meta = ask(many[0], q="review sql label:eu-west", explain=True)
    assert {*rows} == {*labelled} and meta["sort"] is None
    having = {repo["id"] for repo in many[1] if "sql" in repo["entry"].stems}
    assert [one["without"] for one in meta["matches"]] == [
        [] if one in having else ["sql"] for one in rows
    ]
    (match,) = ask(many[0], q="west", owner="bulk1", explain=True)[1]["matches"]
    assert (match["in"], match["words"], match["labels"]) == (["labels"], ["west"], ["eu-west"])
    rows, meta = ask(many[0], q="label:eu-west label:nope", explain=True)
    assert rows == meta["matches"] == [] and meta["match"] == "some"
    assert meta["facets"] == {"tags": [], "owners": [], "labels": []}
    # As many labels as words: others say no more.
    many_labels = " ".join(f"label:{number}a" for number in range(45))
    assert ask(many[0], q=many_labels)[1]["label"].count(",") == QUERY_WORDS_MAX - 1


def test_unknown_owner(many):
    for q in (None, "review"):
        with refused("user_not_found", match="nobody"):
            ask(many[0], q=q, owner="nobody")


@pytest.mark.parametrize("tag", ["nope", *NO_NAMES])
def test_unknown_tag_of_an_owner(many, tag):
    for owner in ("bulk0", "nobody", None):
        with refused("tag_not_found"):
            many[0].find(ListQuery(tags=("code", tag), owner=owner), 0, 10)


@given(prefix=st.one_of(
    st.sampled_from(["", "b", "bulk", "bulk0", "sam-", "zz", *NO_NAMES]), st.text(max_size=3)
), count=st.integers(1, 9))  # fmt: skip
def test_owners_beginning(many, prefix, count):
    queries, repos = many
    owners = sorted({repo["id"].partition("/")[0] for repo in repos})
    expected = [owner for owner in owners if owner.startswith(prefix)][:count]
    assert queries.owners_beginning(prefix, count) == expected
