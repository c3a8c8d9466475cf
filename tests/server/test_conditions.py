"""Conditions and encodings, as RFC 9110 has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.conditions import accepts_gzip, matches_none

ETAGS = ('"a1"', '"a1-gzip"')


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (['"a1"', 'W/"a1"', '"x", "a1"', '"a1-gzip", "a1"', "*", " * "], '"a1"'),
        (['"a1-gzip"', '"x","y" ,W/"a1-gzip"'], '"a1-gzip"'),
        (['"A1"', '"a1', "a1", '"*"', '"x, a1"', "", ",,,"], None),
    ],
)
def test_if_none_match(headers: list[str], expected: str | None) -> None:
    assert [matches_none(header, ETAGS) for header in headers] == [expected] * len(headers)


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


ACCEPTED = [
    "gzip", "GZip", "x-gzip", "gzip, deflate, br, zstd", "br, gzip;q=0.5",
    "br;q=1.0, gzip; q=0.001", "*", "br, *;q=0.1", "gzip;q=1, *;q=0",
]  # fmt: skip
REFUSED = [
    "", "identity", "br, deflate", "gzip;q=0", "gzip;q=0.0", "gzip; q=0.000", "*;q=0",
    "gzip;q=0, *", "notgzip",
]  # fmt: skip


@pytest.mark.parametrize("header", ACCEPTED + REFUSED)
def test_accept_encoding(header: str) -> None:
    assert accepts_gzip(header) is (header in ACCEPTED)


@given(st.text(alphabet=st.characters(max_codepoint=255), max_size=60))
def test_accept_encoding_takes_any_header(header: str) -> None:
    assert isinstance(accepts_gzip(header), bool)


@given(st.integers(0, 1000), st.lists(st.sampled_from(["br", "deflate", "identity;q=0"])))
def test_gzip_is_accepted_with_any_weight_but_zero(thousandths: int, others: list[str]) -> None:
    header = ", ".join([*others, f"gzip;q={thousandths / 1000:.3f}"])
    assert accepts_gzip(header) is (thousandths > 0)
