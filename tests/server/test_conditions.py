"""Conditions, encodings and ranges, as RFC 9110 has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.conditions import RangeNotSatisfiable, accepts_gzip, matches_none, parse_range

ETAGS = ('"a1"', '"a1-gzip"')


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('"a1"', '"a1"'),
        ('"a1-gzip"', '"a1-gzip"'),
        ('W/"a1"', '"a1"'),
        ('"x", "a1"', '"a1"'),
        ('"x","y" ,W/"a1-gzip"', '"a1-gzip"'),
        ('"a1-gzip", "a1"', '"a1"'),
        ("*", '"a1"'),
        (" * ", '"a1"'),
        ('"A1"', None),
        ('"a1', None),
        ("a1", None),
        ('"*"', None),
        ('"x, a1"', None),
        ("", None),
        (",,,", None),
    ],
)
def test_if_none_match(header: str, expected: str | None) -> None:
    assert matches_none(header, ETAGS) == expected


@given(st.text(alphabet=st.characters(max_codepoint=255), max_size=60))
def test_if_none_match_takes_any_header(header: str) -> None:
    found = matches_none(header, ETAGS)
    assert found is None or found in header or header.strip() == "*"


_opaque = st.text(alphabet="abcxyz-, /W*", max_size=8).map(lambda text: f'"{text}"')
_entity_tags = st.tuples(st.sampled_from(["", "W/"]), st.one_of(_opaque, st.sampled_from(ETAGS)))


@given(st.lists(_entity_tags, min_size=1, max_size=5), st.sampled_from([",", ", ", " , "]))
def test_if_none_match_finds_a_tag_wherever_it_stands(tags: list, comma: str) -> None:
    named = {tag for _, tag in tags}
    header = comma.join(weak + tag for weak, tag in tags)
    assert matches_none(header, ETAGS) == next((tag for tag in ETAGS if tag in named), None)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("gzip", True),
        ("GZip", True),
        ("x-gzip", True),
        ("gzip, deflate, br, zstd", True),
        ("br, gzip;q=0.5", True),
        ("br;q=1.0, gzip; q=0.001", True),
        ("*", True),
        ("br, *;q=0.1", True),
        ("gzip;q=1, *;q=0", True),
        ("", False),
        ("identity", False),
        ("br, deflate", False),
        ("gzip;q=0", False),
        ("gzip;q=0.0", False),
        ("gzip; q=0.000", False),
        ("*;q=0", False),
        ("gzip;q=0, *", False),
        ("notgzip", False),
    ],
)
def test_accept_encoding(header: str, expected: bool) -> None:
    assert accepts_gzip(header) is expected


@given(st.text(alphabet=st.characters(max_codepoint=255), max_size=60))
def test_accept_encoding_takes_any_header(header: str) -> None:
    assert isinstance(accepts_gzip(header), bool)


@given(st.integers(0, 1000), st.lists(st.sampled_from(["br", "deflate", "identity;q=0"])))
def test_gzip_is_accepted_with_any_weight_but_zero(thousandths: int, others: list[str]) -> None:
    header = ", ".join([*others, f"gzip;q={thousandths / 1000:.3f}"])
    assert accepts_gzip(header) is (thousandths > 0)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=50-99999999999999999999999999", (50, 100)),
        ("bytes=-99999999999999999999999999", (0, 100)),
        ("BYTES=1-2", (1, 3)),
        (" bytes=1-2 ", (1, 3)),
    ],
)
def test_range(header: str, expected: tuple[int, int]) -> None:
    assert parse_range(header, 100) == expected


@pytest.mark.parametrize(
    "header",
    [
        "bytes=0-1,2-3", "bytes=-", "bytes=", "bytes", "", "bytes=9-3", "bytes=a-b", "bytes=1-b",
        "bytes=--1", "bytes=1--2", "bytes 0-1", "items=0-1", "bytes=0-1;x", "bytes=+1-2",
        "bytes=0x1-0x2", "bytes=1_0-2_0", "bytes = 0-1", "bytes=1.0-2",
    ],
)  # fmt: skip
def test_ignored_range(header: str) -> None:
    assert parse_range(header, 100) is None


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ("bytes=100-", 100), ("bytes=100-200", 100), ("bytes=-0", 100), ("bytes=0-", 0),
        ("bytes=-1", 0), ("bytes=99999999999999999999999999-", 100),
    ],
)  # fmt: skip
def test_range_beyond_the_end(header: str, size: int) -> None:
    with pytest.raises(RangeNotSatisfiable):
        parse_range(header, size)


_number = st.one_of(st.just(""), st.integers(0, 130).map(str), st.integers(0).map(str))
_zeros = st.integers(0, 30).map(lambda count: "0" * count)


@given(_number, _number, _zeros, st.integers(0, 120))
def test_range_is_what_the_definition_says(first: str, last: str, zeros: str, size: int) -> None:
    start = first and zeros + first
    stop = last and zeros + last
    data = bytes(range(size))
    if first == last == "" or (first and last and int(last) < int(first)):
        expected = None
    elif first:
        expected = data[int(first) : int(last) + 1 if last else size]
    else:
        expected = data[-int(last) :] if int(last) else b""
    try:
        found = parse_range(f"bytes={start}-{stop}", size)
    except RangeNotSatisfiable:
        assert expected == b""
    else:
        assert (found and data[found[0] : found[1]]) == expected


@given(st.text(max_size=40), st.integers(0, 1000))
def test_range_takes_any_header(header: str, size: int) -> None:
    for text in (header, f"bytes={header}"):
        try:
            found = parse_range(text, size)
        except RangeNotSatisfiable:
            continue
        assert found is None or 0 <= found[0] < found[1] <= size


@given(st.text(alphabet="0123456789", min_size=1, max_size=6000))
def test_range_takes_any_length_of_number(digits: str) -> None:
    for text in (f"bytes={digits}-", f"bytes=-{digits}", f"bytes=0-{digits}"):
        try:
            found = parse_range(text, 100)
        except RangeNotSatisfiable:
            continue
        assert found is not None
