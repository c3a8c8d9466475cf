"""Results of queries in the sample catalogue, with each engine."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.errors import RequestError
from builder.model.settings import SEARCH_ENGINES
from builder.pipeline.build import build
from builder.search.plan import query_words
from builder.search.queries import ListQuery, Queries
from tests.support.catalogues import settings_in
from tests.support.servers import SAMPLE


def find(queries: Queries, q: str, **options) -> list[str]:
    """The owner/name of the repos on a page, in order."""
    page = json.loads(queries.answer(ListQuery(q=q, **options)))
    return [f"{repo['owner']}/{repo['name']}" for repo in page["data"]]


@pytest.fixture(scope="module", params=SEARCH_ENGINES)
def sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Queries]:
    settings = settings_in(tmp_path_factory.mktemp("sample"), search=request.param)
    settings = settings._replace(content=str(SAMPLE))
    build(settings)
    queries = Queries(settings)
    yield queries
    queries.close()


# Queries that people type. A set: exactly these results. A string: this result first.
WRITTEN_DOWN = [
    ("interviewer act as", "career-bench/mock-interview"),
    # Title and name before content
    ("log", "tidewater-platform/log-triage"),
    ("release notes", "tidewater-platform/release-notes"),
    ("judge", "kestrel-lab/pairwise-judge"),
    ("WCAG 2.2", {"a11y-guild/wcag-22-audit"}),
    # The last word as a beginning, others in any form
    ("negotiat", {"career-bench/negotiation-prep"}),
    ("rev sql", "mara-okafor/sql-review"),
    ("debugging templates", "sam-ferreira/template-debugger"),
    # Owner, name and tags
    ("kestrel-lab/pairwise-judge", "kestrel-lab/pairwise-judge"),
    ("yuki tanabe", {"yuki-tanabe/eibun-mail", "yuki-tanabe/gijiroku-seiri"}),
    ("conventional-commits", "sam-ferreira/commit-message"),
    # Other scripts
    ("事録", {"yuki-tanabe/gijiroku-seiri"}),
    ("ビジネスメール", {"yuki-tanabe/eibun-mail"}),
    ("УКРАЇНСЬКОЮ", {"olena-kovalchuk/pereklad-interfeisu"}),
    # The markers of a chat prompt are none of its words: this is the nearest one.
    ("assistant", {"a11y-guild/wcag-22-audit"}),
    # Nothing, and nothing in one place
    ("zzzz", set()),
    ("xss dinner", {"ines-caldeira/xss-code-review", "north-table/weekly-meal-plan"}),
]


@pytest.mark.parametrize(("q", "expected"), WRITTEN_DOWN)
def test_written_down(sample, q, expected):
    found = find(sample, q)
    if isinstance(expected, str):
        assert found[0] == expected
    else:
        assert set(found) == expected


@pytest.mark.parametrize("q", ["", " ", "!?", "...", "—", "'", "’", "/", "_", "\0", "\u0301", "🙂"])
def test_no_word(sample, q):
    with pytest.raises(RequestError, match="no word") as caught:
        find(sample, q)
    assert caught.value.code == "invalid_parameter"


def finds_or_refuses(queries: Queries, q: str) -> None:
    try:
        assert json.loads(queries.answer(ListQuery(q=q)))["meta"]["q"] == q
    except RequestError as error:
        assert error.code == "invalid_parameter"
        assert not query_words(q)


_syntax = st.sampled_from(
    ["*", "?", "~", "~2", "^2", '"', "'", "(", ")", "[", "]", "{", "}", " TO ", ":", "id:", "text:",
     " AND ", " OR ", " NOT ", " ANDNOT ", "+", "-", "\\", "/", "..", "<", ">", "=", "&&", "||",
     "review", "sql", "a", "\0", "\x1f", "\x7f", "\u200d", "\ufeff", "\u202e", "\ufffd", "議", "ก",
     "é"]
)  # fmt: skip


@given(st.text(max_size=100) | st.lists(_syntax, max_size=20).map("".join))
def test_any_text_and_query_syntax_mean_nothing_else(sample, q):
    finds_or_refuses(sample, q)


def test_query_syntax_is_only_text_between_words(sample):
    plain = find(sample, "sql review")
    for q in ('"sql review"', "sql AND review*", "+sql +review", "(sql) (review)", "sql~ review~"):
        if "AND" in q:
            assert set(find(sample, q)) == set(find(sample, "sql and review"))
        else:
            assert find(sample, q) == plain
