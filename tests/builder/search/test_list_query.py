"""The grammar of the parameters of a list."""

from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model.errors import RequestError
from builder.model.routes import QUERY_CHARS_MAX
from builder.search.queries import ListQuery, parse_list_query, parse_parameters


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
        (b"owner=ann", ListQuery(owner="ann")),
        (b"explain=true", ListQuery(explain=True)),
        (b"owners=ann&owners=&tags=a&tags=b&page=3", ListQuery(page=3)),
        (b"page=2;sort=new", None),
    ],
)
def test_parses(query, expected):
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
    *(
        (f"owner={owner}", "owner")
        for owner in ("", "Ann", "a,b", "ann/sql", "-ann", "a--n", "%00", "%C3%A9", "a" * 40)
    ),
    *((f"explain={value}", "explain") for value in ("", "1", "yes", "false", "True", "true%20")),
    (f"q={'a' * (QUERY_CHARS_MAX + 1)}", "q"),
    ("q=" + quote("議" * (QUERY_CHARS_MAX + 1)), "q"),
    ("page=1&page=1", "page"),
    ("page=1&sort=top&page=2", "page"),
    ("sort=new&sort=top", "sort"),
    ("tag=sql&tag=json", "tag"),
    ("q=a&q=b", "q"),
    ("owner=a&owner=b", "owner"),
    ("ref=a&ref=b&page=1&page=2", "page"),
    ("q=%FF", "UTF-8"),
    ("q=%ED%A0%80", "UTF-8"),
    ("x=%80", "UTF-8"),
    ("&".join(f"x{number}=1" for number in range(51)), "50"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "named"), INVALID)
def test_invalid(query, named):
    with pytest.raises(RequestError, match=named) as caught:
        parse_list_query(query.encode())
    assert caught.value.code == "invalid_parameter"
    assert caught.value.status == 400


@given(st.binary(max_size=200))
def test_any_bytes_give_a_query_or_an_error(query):
    for parse in (parse_list_query, parse_parameters):
        try:
            parse(query)
        except RequestError as error:
            assert error.code == "invalid_parameter"


@given(st.text(max_size=100))
def test_q_survives_the_url(q):
    assert parse_list_query(urlencode({"q": q}).encode()).q == q
    assert parse_list_query(b"q=" + quote(q, safe="").encode()).q == q


def test_what_files_answer_is_left_to_them():
    assert ListQuery().match().file == "api/v1/repos/_/top/1.json"
    assert ListQuery(2, "new").match().file == "api/v1/repos/_/new/2.json"
    assert ListQuery(3, None, ("sql",)).match().file == "api/v1/tags/sql/top/3.json"
    assert ListQuery(tags=("sql", "json")).match() is None
    assert ListQuery(q="").match() is None
    assert ListQuery(owner="ann").match() is None
    assert ListQuery(owner="").match() is None
