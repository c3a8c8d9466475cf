"""Suggestions for a misspelt name, and the work that they take."""

import itertools

import pytest

from builder.text.likeness import COMPARED_CHARS_MAX, COMPARED_MAX, alike


def test_the_most_alike_come_first():
    known = ["tags", "titles", "license", "title", "tiles"]
    assert list(alike("title", known)) == ["title", "titles", "tiles"]
    assert alike("title", known)["title"] == 1
    assert list(alike("ac", ["ab", "aa"])) == []
    # Equally similar names come in the order of names.
    assert list(alike("abc", ["abd", "abb"])) == ["abb", "abd"]
    assert alike("zzz", known) == alike("", known) == alike("title", []) == {}


def test_no_more_names_are_compared_than_the_limit(compared_names):
    endless = map("ab{}".format, itertools.count())
    found = alike("ab7", endless)
    assert found["ab7"] == 1
    assert len(compared_names) == COMPARED_MAX == 50
    # No more names are taken than compared.
    assert next(endless) == "ab50"


@pytest.mark.parametrize("chars", [COMPARED_CHARS_MAX + 1, 1_000_000])
def test_what_is_too_long_is_compared_with_nothing(compared_names, chars):
    assert alike("a" * chars, ["a" * chars]) == {}
    assert compared_names == []
    assert alike("a" * COMPARED_CHARS_MAX, ["a" * COMPARED_CHARS_MAX])
