"""Lists by query: the grammar of the parameters, and every combination against brute force."""

import contextlib
import itertools
import json
import math
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.errors import RequestError
from builder.model.records import CatalogueLine
from builder.model.routes import PAGE_SIZE, QUERY_CHARS_MAX, SORTS
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.search.entries import entry_of
from builder.search.plan import Scope, make_plan, parse_query
from builder.search.queries import (
    Found,
    ListQuery,
    Queries,
    parse_list_query,
    parse_parameters,
)
from builder.store.state import State
from builder.text.likeness import COMPARED_MAX
from tests.builder.search.model import Model
from tests.support.catalogues import moment, settings_in, write_owner, write_version
from tests.support.servers import SAMPLE, Server

WEEK_SECONDS = 7 * 86_400


# The grammar


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (b"", ListQuery()),
        (b"page=7", ListQuery(page=7)),
        (b"page=999999999", ListQuery(page=999_999_999)),
        (b"sort=top", ListQuery(sort="top")),
        (b"sort=trending&page=2", ListQuery(page=2, sort="trending")),
        (b"tag=sql", ListQuery(tags=("sql",))),
        (b"tag=sql,json,sql", ListQuery(tags=("sql", "json"))),
        (b"tag=sql%2Cjson", ListQuery(tags=("sql", "json"))),
        (b"tag=" + b"a" * 48, ListQuery(tags=("a" * 48,))),
        (b"q=a+b%20c", ListQuery(q="a b c")),
        (b"q=", ListQuery(q="")),
        (b"q", ListQuery(q="")),
        (b"q=%E8%AD%B0%E4%BA%8B%E9%8C%B2", ListQuery(q="議事録")),
        ("q=議事録".encode(), ListQuery(q="議事録")),
        (b"q=" + quote("é" * 100).encode(), ListQuery(q="é" * 100)),
        (b"q=a%26b%3Dc", ListQuery(q="a&b=c")),
        (b"q=100%", ListQuery(q="100%")),
        (b"&&page=2&", ListQuery(page=2)),
        (b"utm_source=x&ref=a&ref=b&limit=9&Page=7&SORT=bad&_=1", ListQuery()),
        (b"owner=ann", ListQuery()),
        (b"owner=ann&owner=&tags=a&tags=b&page=3", ListQuery(page=3)),
        (b"page=2;sort=new", None),
    ],
)
def test_parses(query: bytes, expected: ListQuery | None) -> None:
    if expected is None:
        with pytest.raises(RequestError):
            parse_list_query(query)
    else:
        assert parse_list_query(query) == expected


INVALID = [
    *(
        (f"page={page}", "page")
        for page in (
            "", "0", "-1", "+1", "%2B1", "01", "1.0", "1e3", "a", "%201", "1%20", "0x1", "1_0",
            "1000000000", "9" * 400, "%D9%A1", "%C2%B2", "%00", "1%00", "1,2", "null",
        )
    ),
    *(
        (f"sort={sort}", "sort")
        for sort in ("", "Top", "TOP", "newest", "top%20", "top,new", "%00")
    ),
    *(
        (f"tag={tag}", "tag")
        for tag in (
            "", ",", "sql,", ",sql", "sql,,json", "SQL", "s%20ql", "-sql", "sql-", "s--ql", "s_ql",
            "..", "a/b", "%00", "sql%0A", "a" * 49, "%C3%A9", ",".join("abcdefghijk"),
        )
    ),
    (f"q={'a' * (QUERY_CHARS_MAX + 1)}", "q"),
    ("q=" + quote("議" * (QUERY_CHARS_MAX + 1)), "q"),
    ("page=1&page=1", "page"),
    ("page=1&sort=top&page=2", "page"),
    ("sort=new&sort=top", "sort"),
    ("tag=sql&tag=json", "tag"),
    ("q=a&q=b", "q"),
    ("ref=a&ref=b&page=1&page=2", "page"),
    ("q=%FF", "UTF-8"),
    ("q=%ED%A0%80", "UTF-8"),
    ("x=%80", "UTF-8"),
    ("&".join(f"x{number}=1" for number in range(51)), "50"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "named"), INVALID)
def test_invalid(query: str, named: str) -> None:
    with pytest.raises(RequestError, match=named) as caught:
        parse_list_query(query.encode())
    assert caught.value.code == "invalid_parameter"
    assert caught.value.status == 400


def test_raw_bytes_that_are_not_utf8() -> None:
    with pytest.raises(RequestError) as caught:
        parse_list_query(b"q=\xff\xfe")
    assert caught.value.code == "invalid_parameter"


@given(st.binary(max_size=200))
def test_any_bytes_give_a_query_or_an_error(query: bytes) -> None:
    for parse in (parse_list_query, parse_parameters):
        try:
            parse(query)
        except RequestError as error:
            assert error.code == "invalid_parameter"


@given(st.text(max_size=100))
def test_q_survives_the_url(q: str) -> None:
    assert parse_list_query(urlencode({"q": q}).encode()).q == q
    assert parse_list_query(b"q=" + quote(q, safe="").encode()).q == q


def test_what_files_answer_is_left_to_them() -> None:
    assert ListQuery().match().file == "api/v1/repos/_/top/1.json"
    assert ListQuery(2, "new").match().file == "api/v1/repos/_/new/2.json"
    assert ListQuery(3, None, ("sql",)).match().file == "api/v1/tags/sql/top/3.json"
    assert ListQuery(tags=("sql", "json")).match() is None
    assert ListQuery(q="").match() is None
    assert ListQuery(owner="ann").match() is None
    assert ListQuery(owner="").match() is None


# The answers, against brute force over the content's own files


def load_repos(content: Path) -> list[dict]:
    """What the tests need to know of each repo."""
    repos = []
    for folder in sorted(path for path in content.glob("*/*") if path.is_dir()):
        stems = sorted(
            (path.stem for path in folder.glob("*.json")),
            key=lambda stem: [int(part) for part in stem.split(".")],
        )
        records = [json.loads((folder / f"{stem}.json").read_text("utf-8")) for stem in stems]
        latest = records[-1]
        published = [record["published_at"] for record in records]
        line = CatalogueLine(
            folder.parent.name, folder.name, latest["title"], latest.get("description", ""),
            latest.get("tags", []), stems[-1], latest["sha256"], "",
        )  # fmt: skip
        repos.append({
            "id": f"{folder.parent.name}/{folder.name}",
            "tags": latest.get("tags", []),
            "created": min(published),
            "updated": latest["published_at"],
            "trend": trend(published),
            "entry": entry_of(line, (folder / f"{stems[-1]}.md").read_text("utf-8"), ""),
        })  # fmt: skip
    return repos


def trend(published: list[str]) -> float:
    """The contract's decayed activity, relative to one fixed day, as a logarithm."""
    days = [to_seconds(time) / WEEK_SECONDS for time in published]
    return max(days) + math.log2(sum(5 * 2 ** (day - max(days)) for day in days))


def to_seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


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
    """What the model finds among all repos."""
    if q is None:
        return repos
    model = Model(repo["entry"] for repo in repos)
    found = model.scores(make_plan(q, model), Scope())
    return [repo for repo in repos if repo["id"] in found]


QS = [None, "review", "sql", "act as interviewer", "the", "議事録", "лист", "a", "zzzz"]
TAGS = [None, "writing", "code", "sql,json", "writing,summary,japanese", "code,meetings"]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Queries, list[dict]]]:
    """The sample catalogue and 150 repos more, so that lists have several pages."""
    settings = settings_in(tmp_path_factory.mktemp("many"))
    for path in SAMPLE.rglob("*"):
        target = Path(settings.content, path.relative_to(SAMPLE))
        if path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    for number in range(150):
        tags = [tag for tag, every in (("code", 2), ("json", 3), ("sql", 5)) if number % every == 0]
        # Many share their times, so that owner/name has to decide.
        at = moment(number % 7 * 100)
        text = f"Review the {'sql' if number % 4 else 'table'} number {number}."
        write_version(
            settings.content, f"bulk{number % 3}", f"n{number}", "1.0.0", text,
            tags=tags, published_at=at,
        )  # fmt: skip
        if number % 10 == 0:
            write_version(
                settings.content, f"bulk{number % 3}", f"n{number}", "1.1.0", text + "\n",
                tags=tags, published_at=moment(1000 + number % 3),
            )  # fmt: skip
    build(settings)
    queries = Queries(settings)
    yield queries, load_repos(Path(settings.content))
    queries.close()


def ask(queries: Queries, **fields) -> tuple[list[str], dict]:
    answer = json.loads(queries.answer(ListQuery(**fields)))
    return [f"{repo['owner']}/{repo['name']}" for repo in answer["data"]], answer["meta"]


COMBINATIONS = [
    (q, tag, sort) for q, tag, sort in itertools.product(QS, TAGS, [None, *SORTS])
    if q is not None or tag is not None  # files answer the list of all repos
]  # fmt: skip


@pytest.mark.parametrize(("q", "tag", "sort"), COMBINATIONS)
def test_combination(
    many: tuple[Queries, list[dict]], q: str | None, tag: str | None, sort: str | None
) -> None:
    queries, repos = many
    tags = tuple(tag.split(",")) if tag else ()
    fitting = [repo for repo in with_words(repos, q) if set(tags) <= set(repo["tags"])]
    pages = max(1, math.ceil(len(fitting) / PAGE_SIZE))
    found = []
    for page in range(1, pages + 1):
        rows, meta = ask(queries, page=page, sort=sort, tags=tags, q=q)
        assert (q is None) == (meta.pop("match", None) is None)
        meta.pop("corrected", None)
        assert meta == {
            "page": page, "pages": pages, "total": len(fitting), "page_size": PAGE_SIZE,
            "sort": sort or (None if q is not None else "top"), "tag": tag, "q": q,
        }  # fmt: skip
        assert len(rows) == (PAGE_SIZE if page < pages else len(fitting) - PAGE_SIZE * (pages - 1))
        found += rows
    if q is not None and sort is None:
        assert len(found) == len(set(found))
        assert set(found) == {repo["id"] for repo in fitting}
    else:
        assert found == expected_order(fitting, sort or "top")
    with pytest.raises(RequestError) as caught:
        ask(queries, page=pages + 1, sort=sort, tags=tags, q=q)
    assert caught.value.code == "page_not_found"
    assert str(pages) in str(caught.value)


@pytest.mark.parametrize("sort", [None, "new"])
def test_a_search_ends_at_a_place(
    many: tuple[Queries, list[dict]], monkeypatch: pytest.MonkeyPatch, sort: str | None
) -> None:
    queries, repos = many
    total = len(with_words(repos, "review"))
    assert total > 2 * PAGE_SIZE
    before = ask(queries, page=2, sort=sort, q="review")
    monkeypatch.setattr("builder.search.queries.REACHED_MAX", 2 * PAGE_SIZE)
    assert ask(queries, page=2, sort=sort, q="review") == before
    assert before[1]["total"] == total
    with pytest.raises(RequestError, match="the first 100 results") as caught:
        ask(queries, page=3, sort=sort, q="review")
    assert caught.value.code == "invalid_parameter"
    with pytest.raises(RequestError, match="The last page") as caught:
        ask(queries, page=99, sort=sort, q="review")
    assert caught.value.code == "page_not_found"


@pytest.mark.parametrize("tags", [("nope", "sql"), ("sql", "nope"), ("nope",)])
@pytest.mark.parametrize("q", [None, "review", "zzzz"])
@pytest.mark.parametrize("page", [1, 99])
def test_unknown_tag(
    many: tuple[Queries, list[dict]], tags: tuple[str, ...], q: str | None, page: int
) -> None:
    with pytest.raises(RequestError, match="nope") as caught:
        ask(many[0], tags=tags, q=q, page=page)
    assert caught.value.code == "tag_not_found"


# Parts of a list, of one owner's or of all repos

# What JSON can bring as a text, and no name is.
NO_NAMES = ["", "Ann", "%", "_", "bulk_", "bulk0/", "bulk0/n1", "bulk0\0", "é", "\ud800", "'", "*"]
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


def ids_of(found: Found) -> list[str]:
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
    many: tuple[Queries, list[dict]], owner: str | None, tags: tuple[str, ...], q: str | None,
    sort: str | None, start: int, count: int, page: int,
) -> None:  # fmt: skip
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


def test_an_owners_repos_keep_their_order(many: tuple[Queries, list[dict]]) -> None:
    """Relevance is not counted anew among them."""
    queries, _ = many
    everywhere = whole_list(queries, ListQuery(q="review"))
    for owner in OWNERS:
        expected = [one for one in everywhere if one.startswith(f"{owner}/")]
        assert whole_list(queries, ListQuery(q="review", owner=owner)) == expected


def test_summaries_are_those_of_the_pages(many: tuple[Queries, list[dict]]) -> None:
    queries, _ = many
    query = ListQuery(2, "new", ("code",), "review")
    page = json.loads(queries.answer(query))
    found = queries.find(query, PAGE_SIZE, PAGE_SIZE)
    assert page["data"] == [json.loads(row) for row in found.rows] != []
    assert page["meta"]["total"] == found.total


@pytest.mark.parametrize("tag", ["nope", *NO_NAMES])
def test_unknown_tag_of_an_owner(many: tuple[Queries, list[dict]], tag: str) -> None:
    for owner in ("bulk0", "nobody", None):
        with pytest.raises(RequestError) as caught:
            many[0].find(ListQuery(tags=("code", tag), owner=owner), 0, 10)
        assert caught.value.code == "tag_not_found"
        assert many[0].tag_counts(owner, ("code", tag)) == []


@given(owner=_owners, tags=_tags)
def test_tag_counts(
    many: tuple[Queries, list[dict]], owner: str | None, tags: tuple[str, ...]
) -> None:
    queries, repos = many
    counts = Counter(tag for repo in of_owner(repos, owner, tags) for tag in repo["tags"])
    expected = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    assert queries.tag_counts(owner, tags) == expected


@given(prefix=st.one_of(
    st.sampled_from(["", "b", "bulk", "bulk0", "sam-", "zz", *NO_NAMES]), st.text(max_size=3)
), count=st.integers(1, 9))  # fmt: skip
def test_owners_beginning(many: tuple[Queries, list[dict]], prefix: str, count: int) -> None:
    queries, repos = many
    owners = sorted({repo["id"].partition("/")[0] for repo in repos})
    expected = [owner for owner in owners if owner.startswith(prefix)][:count]
    assert queries.owners_beginning(prefix, count) == expected


# What a wrong name may mean


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
        # By its words, all or the first
        ("someone/sql-reviewing", "mara-okafor/sql-review"),
        ("interviewer", "career-bench/mock-interview"),
        ("postmortem-generator-tool", "tidewater-platform/incident-postmortem"),
        ("議事録", "yuki-tanabe/gijiroku-seiri"),
        ("bulk1/n31", "bulk1/n31"),
    ],
)
def test_similar(many: tuple[Queries, list[dict]], name: str, first: str) -> None:
    assert many[0].similar(name, 5)[0] == first
    assert many[0].similar(name, 1) == [first]


def test_similar_names_by_other_owners_are_in_the_order_of_top(small: Settings) -> None:
    for owner, hours in (("cid", 10), ("dan", 30), ("eve", 20)):
        write_version(small.content, owner, "poem", "1.0.0", "x", published_at=moment(hours))
    build(small)
    queries = Queries(small)
    assert queries.similar("fay/poem", 9) == ["dan/poem", "eve/poem", "cid/poem"]
    assert queries.similar("eve/poems", 9)[0] == "eve/poem"
    assert queries.similar("poem", 2) == ["dan/poem", "eve/poem"]
    queries.close()


@pytest.mark.parametrize("name", ["/", "//", "ann/", "nobody/", "zzzz", "\0/\0", *NO_NAMES])
def test_nothing_is_similar_to(small: Settings, name: str) -> None:
    build(small)
    queries = Queries(small)
    found = queries.similar(name, 5)
    queries.close()
    # An owner alone stands for what is there of it.
    expected = ["ann/review", "ann/story"] if name.lower().strip("/") == "ann" else []
    assert sorted(found) == expected


_pieces = st.sampled_from(
    ["sam-ferreira", "diff-review", "bulk0", "n1", "sql", "/", "-", "%", "_", "議事録", "\ud800"]
)


@given(
    name=st.one_of(st.text(max_size=200), st.lists(_pieces, max_size=9).map("".join)),
    count=st.integers(1, 20),
)
def test_any_text_gives_known_repos_once(
    many: tuple[Queries, list[dict]], name: str, count: int
) -> None:
    queries, repos = many
    found = queries.similar(name, count)
    assert len(found) == len(set(found)) <= count
    assert set(found) <= {repo["id"] for repo in repos}
    assert found[:1] == queries.similar(name, 1)


def test_an_owner_with_more_repos_than_are_compared(
    small: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builder.search.queries.COMPARED_MAX", 2)
    for name in ("one", "two", "three", "four", "reader"):
        write_version(small.content, "ann", name, "1.0.0", "x")
    build(small)
    queries = Queries(small)
    assert queries.similar("ann/twoo", 5) == ["ann/two"]
    assert queries.similar("ann/reviewed", 5)[0] == "ann/review"
    queries.close()


def test_a_wrong_name_is_compared_with_few_names(
    small: Settings, compared_names: list[str]
) -> None:
    # Of two letters: for these a comparison takes longest.
    known = ["".join(letters) for letters in itertools.product("ab", repeat=7)]
    for name in known:
        write_version(small.content, "many", name, "1.0.0", "x")
    build(small)
    compared_names.clear()
    queries = Queries(small)
    for wrong in ("ababaab-", "a", "zz", "abababababab", "-", "bbbbbbbbb"):
        queries.similar(f"many/{wrong}", 5)
        assert len(compared_names) == COMPARED_MAX, wrong
        # Those on both sides of where it would be.
        assert sorted(compared_names) == compared_names
        compared_names.clear()
    assert queries.similar("many/abababb0", 5)[0] == "many/abababb"
    assert queries.similar("many/aaaaaaa0", 5)[0] == "many/aaaaaaa"
    queries.close()


def test_a_word_counts_once() -> None:
    once = parse_query("review the sql")
    for q in ("sql review the sql", "REVIEW " * 6 + "the reviewing review the sql", "sql " * 9):
        assert len(parse_query(q)) == len({word.stem for word in parse_query(q)}) <= len(once)
    assert parse_query("a " * 50) == parse_query("a")
    # The last one may be a beginning.
    assert [word.surface for word in parse_query("reviews sql review")] == ["sql", "review"]
    assert len(parse_query("議" * 100)) == 1


# Over HTTP


@pytest.mark.parametrize("tag", [None, "writing", "code", "json"])
@pytest.mark.parametrize("sort", [None, *SORTS])
def test_lists_of_the_sample(live: Server, tag: str | None, sort: str | None) -> None:
    fitting = [repo for repo in load_repos(SAMPLE) if tag is None or tag in repo["tags"]]
    wanted = {"tag": tag, "sort": sort}
    answer = live.get("/api/v1/repos", params={key: wanted[key] for key in wanted if wanted[key]})
    assert answer.status_code == 200
    found = [f"{repo['owner']}/{repo['name']}" for repo in answer.json()["data"]]
    assert found == expected_order(fitting, sort or "top")
    assert answer.json()["meta"] == {
        "page": 1, "pages": 1, "total": len(fitting), "page_size": 50, "sort": sort or "top",
        "tag": tag, "q": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "q",
    [
        " sql ", "SQL\treview", "sql&page=2", "sql#x", "100% sql?", "“sql”", "ＳＱＬ", "sql\0",
        "'sql'",
        "<script>sql</script>", 'sql "review"', "sql\\", "議事録 整理", "\u2028sql",
        "sql " * (QUERY_CHARS_MAX // 4), "😀 sql",
    ],
)  # fmt: skip
def test_q_is_echoed_as_it_was(live: Server, q: str) -> None:
    answer = live.get("/api/v1/repos", params={"q": q})
    assert answer.status_code == 200
    assert answer.json()["meta"]["q"] == q
    assert answer.json()["meta"]["sort"] is None
    assert answer.headers["Cache-Control"] == "public, max-age=60"


def test_an_answer_that_finds_nothing_is_kept_shortly(live: Server) -> None:
    for query in ({"q": "xyzzy"}, {"q": "xyzzy", "tag": "sql"}):
        answer = live.get("/api/v1/repos", params=query)
        assert answer.json()["data"] == []
        assert answer.headers["Cache-Control"] == "public, max-age=5"


@pytest.mark.parametrize(
    "q", ["", "   ", "!!", "?!.,;:-_()", "'", "\0", "—", "🙂", "a" * (QUERY_CHARS_MAX + 1)]
)
def test_q_that_is_refused(live: Server, q: str) -> None:
    answer = live.get("/api/v1/repos", params={"q": q})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_parameter"
    assert answer.headers["Cache-Control"] == "no-store"


def test_hostile_q_is_not_found_in_the_page_of_another(live: Server) -> None:
    """Answers to different questions are never mixed up."""
    for q in ("sql", "sql review", "review", "sql"):
        answer = live.get("/api/v1/repos", params={"q": q, "sort": "new"})
        assert answer.json()["meta"]["q"] == q
        plain = live.get("/api/v1/repos", params={"sort": "new"})
        assert plain.json()["meta"]["q"] is None
        assert plain.json()["meta"]["total"] == 33


# Rebuilds


def test_answers_follow_a_rebuild(small: Settings) -> None:
    build(small)
    queries = Queries(small)
    assert ask(queries, q="care")[0] == ["ann/review"]
    assert ask(queries, tags=("code", "careful"))[0] == ["ann/review"]
    write_version(
        small.content, "bob", "sql", "1.1.0", "Take care.", tags=["code", "careful", "x-ray"]
    )
    assert ask(queries, q="care")[0] == ["ann/review"]
    build(small)
    assert sorted(ask(queries, q="care")[0]) == ["ann/review", "bob/sql"]
    rows, meta = ask(queries, tags=("code", "careful"), sort="new")
    assert rows == ["ann/review", "bob/sql"]
    assert meta["total"] == 2
    assert ask(queries, tags=("x-ray", "code"))[0] == ["bob/sql"]
    write_version(small.content, "ann", "review", "1.2.0", "Look.", tags=[])
    write_owner(small.content, "zed")
    write_version(small.content, "zed", "new", "1.0.0", "Care.", published_at=moment(9000))
    build(small)
    assert ask(queries, q="care", sort="new")[0] == ["zed/new", "bob/sql"]
    for path in sorted(Path(small.content, "bob", "sql").iterdir()):
        path.unlink()
    build(small)
    assert ask(queries, q="care")[0] == ["zed/new"]
    with pytest.raises(RequestError) as caught:
        ask(queries, tags=("x-ray", "code"))
    assert caught.value.code == "tag_not_found"
    queries.close()


READS: list[Callable[[Queries], object]] = [
    lambda queries: queries.answer(ListQuery(q="care")),
    lambda queries: queries.find(ListQuery(owner="ann"), 0, 10),
    lambda queries: queries.find(ListQuery(), 0, 10),
    lambda queries: queries.tag_counts(None, ()),
    lambda queries: queries.tag_counts("ann", ("code",)),
    lambda queries: queries.owners_beginning("", 10),
]


def check_unavailable(queries: Queries) -> None:
    for read in READS:
        with pytest.raises(RequestError) as caught:
            read(queries)
        assert caught.value.code == "unavailable"
    assert queries.similar("ann/reviews", 3) == []


def remove_state(path: Path) -> None:
    shutil.rmtree(path.parent)


def put_no_database(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"not a database" * 1000)


def put_other_tables(path: Path) -> None:
    path.unlink()
    sqlite3.connect(path).close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE other (x)")


@pytest.mark.parametrize("ruin", [remove_state, put_no_database, put_other_tables])
def test_state_that_is_gone_or_damaged(small: Settings, ruin: Callable[[Path], None]) -> None:
    build(small)
    reader, late = Queries(small), Queries(small)
    before = [read(reader) for read in READS]
    ruin(Path(State.path_in(small.state)))
    check_unavailable(late)
    shutil.rmtree(small.state, ignore_errors=True)
    build(small)
    for queries in (reader, late):
        assert [read(queries) for read in READS] == before
        assert queries.similar("ann/reviews", 3)[0] == "ann/review"
        queries.close()


def test_names_are_similar_without_an_index(small: Settings) -> None:
    build(small, index=False)
    queries = Queries(small)
    assert queries.similar("ann/reviews", 3) == ["ann/review"]
    assert queries.similar("care", 3) == []
    build(small)
    assert queries.similar("care", 3) == ["ann/review"]
    queries.close()


def test_a_word_of_the_text_alone_makes_no_name_similar(small: Settings) -> None:
    write_version(small.content, "ann", "poem", "1.0.0", "Sing of marmalade.\n", title="A poem")
    build(small)
    queries = Queries(small)
    assert queries.find(ListQuery(q="marmalade"), 0, 3).total == 1
    assert queries.similar("nobody/marmalade", 3) == []
    assert queries.similar("nobody/poems", 3) == ["ann/poem"]
    queries.close()


def test_counts_and_owners_follow_a_rebuild(small: Settings) -> None:
    build(small)
    queries = Queries(small)
    assert queries.tag_counts(None, ()) == [("code", 2), ("careful", 1)]
    assert queries.tag_counts("ann", ()) == [("careful", 1), ("code", 1)]
    assert queries.owners_beginning("", 9) == ["ann", "bob"]
    write_version(small.content, "ann", "story", "1.1.0", "Tell one.", tags=["code", "fun"])
    write_version(small.content, "abe", "one", "1.0.0", "One.", tags=["fun"])
    shutil.rmtree(f"{small.content}/bob")
    build(small)
    assert queries.tag_counts("ann", ()) == [("code", 2), ("careful", 1), ("fun", 1)]
    assert queries.tag_counts("ann", ("fun",)) == [("code", 1), ("fun", 1)]
    assert queries.tag_counts(None, ("fun",)) == [("fun", 2), ("code", 1)]
    assert queries.owners_beginning("", 9) == ["abe", "ann"]
    assert queries.owners_beginning("", 1) == ["abe"]
    queries.close()


def test_no_build_yet(empty: Settings) -> None:
    queries = Queries(empty)
    check_unavailable(queries)
    build(empty)
    assert queries.find(ListQuery(), 0, 10) == Found([], 0)
    queries.close()


def test_no_build_yet_for_lists(empty: Settings) -> None:
    queries = Queries(empty)
    for fields in ({"q": "a"}, {"tags": ("a", "b")}):
        with pytest.raises(RequestError) as caught:
            ask(queries, **fields)
        assert caught.value.code == "unavailable"
    build(empty)
    rows, meta = ask(queries, q="a")
    assert (rows, meta["pages"], meta["total"]) == ([], 1, 0)
    queries.close()
