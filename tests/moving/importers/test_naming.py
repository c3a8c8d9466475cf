"""Names made of titles are names, and the same each time."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.model import names
from moving.importers import naming
from moving.importers.naming import Names, handle_of, name_of, telling_name, to_words


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Code Review", "code-review"),
        ("  Marauder’s Map!! ", "marauders-map"),
        ("Müzisyenler için", "muzisyenler-icin"),
        ("Недвижимость", "nedvizhimost"),
        ("提示词", "tishici"),
        ("C++ & C#", "c-c"),
        ("5 ideas", "5-ideas"),
        ("2048", "prompt"),
        ("?!", "prompt"),
        ("", "prompt"),
        ("x" * 70, "x" * 64),
        ("word " * 20, "-".join(["word"] * 13)),
        ("a" * 31 + " " + "b" * 32, "a" * 31 + "-" + "b" * 32),
        ("a" * 31 + " " + "b" * 33, "a" * 31),
        ("NUL", "nul-prompt"),
        ("Lpt 1", "lpt-1"),
        ("COM7!", "com7-prompt"),
        ("Index", "index-prompt"),
        ("404", "404-prompt"),
    ],
)
def test_name_of(title, name):
    assert name_of(title) == name


@pytest.mark.parametrize(
    ("contributors", "handle"),
    [
        ("Ann", "ann"),
        ("@f, @ann", "f"),
        ("ann.b_c", "ann-b-c"),
        ("ann@example.org", "ann"),
        ("", "imported"),
        (" , ann", "imported"),
        ("???", "imported"),
        ("API", "api-user"),
        ("aux@example.org", "aux-user"),
        ("Ann Lee - https://example.org/in/ann", "ann-lee"),
        ("Ann <ann@example.org>", "ann"),
        ("<ann@example.org>", "imported"),
        ("Ann-Marie (Lee)", "ann-marie"),
        ("x" * 50, "x" * 39),
    ],
)
def test_handle_of(contributors, handle):
    assert handle_of(contributors, "imported") == handle


def test_a_name_instead_of_a_reserved_one_is_noted():
    notes: list[str] = []
    assert handle_of("Con", "ann", notes) == "con-user" and name_of("Prn", notes) == "prn-prompt"
    assert handle_of("Ann", "bob", notes) == "ann" and name_of("Story", notes) == "story"
    assert notes == [
        "con-user takes the place of the reserved name con: Windows has no files of that name.",
        "prn-prompt takes the place of the reserved name prn: Windows has no files of that name.",
    ]


def test_every_reserved_owner_has_a_way_out():
    for owner in names.RESERVED_OWNERS:
        assert names.check_new_owner(handle_of(owner, "imported")) == f"{owner}-user"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Code review", "Code review"),
        ("code-review", "Code review"),
        ("analyze_SQL_query", "Analyze SQL query"),
        ("sql-to-json", "SQL to JSON"),
        ("4.1-beast", "4.1 beast"),
        ("élan", "Élan"),
        ("-_-", "Prompt"),
        ("x" * 300, "X" + "x" * 198 + "…"),
    ],
)
def test_a_name_in_words(name, title):
    assert to_words(name) == title


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/in/lib/chef", "chef"),
        ("/in/lib/SYSTEM", "lib"),
        ("/in/lib/prompts/main", "lib"),
        ("/in/prompts/index", "in"),
        ("/in/skill", "in"),
    ],
)
def test_a_name_that_says_something(file, name):
    path = Path(file)
    assert telling_name(path.name, path.parent, Path("/in")) == name
    assert telling_name("system", Path("/prompts"), Path("/prompts")) == "system"


def test_collisions_of_other_kinds():
    names_given = Names()
    kinds = ["", "agent", "agent", "", "agent"]
    assert [names_given.give("ann", "chef", kind) for kind in kinds] == [
        "chef", "chef-agent", "chef-agent-2", "chef-2", "chef-agent-3",
    ]  # fmt: skip


def test_collisions():
    given_names = Names()
    titles = ["Chef", "chef", "Chef 2", "CHEF", "x" * 64, "x" * 64]
    assert [given_names.give("ann", name_of(title)) for title in titles] == [
        "chef", "chef-2", "chef-2-2", "chef-3", "x" * 64, "x" * 62 + "-2",
    ]  # fmt: skip
    assert given_names.give("bob", "chef") == "chef"


@given(st.lists(st.text(max_size=100), max_size=8))
def test_names_are_names(titles):
    given_names, again = Names(), Names()
    found = [given_names.give("ann", name_of(title)) for title in titles]
    assert all(names.check_repo(name) for name in found)
    assert len(set(found)) == len(titles)
    assert found == [again.give("ann", name_of(title)) for title in titles]
    assert all(names.check_new_owner(handle_of(title, "imported")) for title in titles)


def test_many_of_one_name_take_one_step_each():
    given_names = Names()
    calls: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, _: calls.update([f"{event} {frame.f_code.co_filename}"]))
    found = {given_names.give("ann", "prompt") for _ in range(100)}
    sys.setprofile(None)
    assert len(found) == 100 and calls[f"call {naming.__file__}"] <= 300
