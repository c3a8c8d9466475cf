"""What changes for callers: the rule, its words, and where a page says them."""

from typing import Any, NamedTuple

import pytest

from builder.model.records import Variable
from builder.text.interface import (
    KINDS,
    SHOWN_CHARS,
    Interface,
    changes_for_callers,
    explain,
    interface_of,
)
from tests.support.catalogues import build_files, write_version


class Published(NamedTuple):
    """A version, as its author gives it."""

    text: str
    variables: list[dict[str, Any]]
    parameters: dict[str, Any]


def version(text: str, *variables: dict[str, Any], **parameters: Any) -> Published:
    """A version with these variables and model settings."""
    return Published(text, [*variables], parameters)


def one(**fields: Any) -> Published:
    """A version that uses one variable, ``a``."""
    return version("Say {{a}}.\n", {"name": "a"} | fields)


# Two versions, and what changes: kind, name, old and new value.
CASES: dict[str, tuple[Published, Published, list[tuple[str, str, str, str]]]] = {
    "nothing": (one(), one(description="Who", example="Ada"), []),
    "words": (one(), one()._replace(text="Speak, {{ a }}!\n"), []),
    "new": (
        one(),
        version("{{a}}{{b}}{{c}}\n", {"name": "a"}, {"name": "b", "default": 0}, {"name": "c"}),
        [("required", "c", "", ""), ("optional", "b", "", "")],
    ),
    "gone": (one(), version("Say it.\n"), [("gone", "a", "", "")]),
    "escaped": (one(), one()._replace(text="Say \\{{a}}.\n"), [("gone", "a", "", "")]),
    "unused": (version("x\n", {"name": "a"}), version("y\n", {"name": "b"}), []),
    "needed": (one(required=False), one(), [("needed", "a", "", "")]),
    "left out": (one(), one(required=False), [("left out", "a", "", "")]),
    "default": (
        one(default="x"), one(default="", required=True), [("default", "a", "x", '""')]
    ),
    "default and less": (
        one(), one(default=[1.0, "é"]),
        [("left out", "a", "", ""), ("default", "a", "", '[1,"é"]')],
    ),
    "keys in another order": (
        one(type="object", default={"b": 1, "a": {"d": 1, "c": 2}}),
        one(type="object", default={"a": {"c": 2, "d": 1}, "b": 1}), [],
    ),
    "type": (one(type="integer"), one(type="number"), [("type", "a", "integer", "number")]),
    "other type": (one(type="array"), one(), [("retyped", "a", "array", "string")]),
    "fewer values": (
        one(enum=["x", "y", 1]), one(enum=["y", "z"]), [("narrowed", "a", "x, 1", "z")]
    ),
    "values at all": (one(), one(enum=["x", True]), [("narrowed", "a", "", "x, true")]),
    "no empty value": (one(enum=["", "x"]), one(enum=["x"]), [("narrowed", "a", '""', "")]),
    "an empty value": (one(enum=["x"]), one(enum=["x", ""]), [("values", "a", "", '""')]),
    "more values": (one(enum=["x"]), one(enum=["y", "x"]), [("values", "a", "", "y")]),
    "same values": (one(enum=[1.0, 2]), one(enum=[2, 1]), []),
    "any value": (one(enum=["x"]), one(), [("any", "a", "", "")]),
    "long values": (
        one(enum=["x"]), one(enum=["x", "🙂" * 100]),
        [("values", "a", "", "🙂" * (SHOWN_CHARS - 1) + "…")],
    ),
    "chat": (
        one(), one()._replace(text='{{role "user"}}\nSay {{a}}.\n'), [("chat", "", "", "")]
    ),
    "no longer chat": (
        one()._replace(text='{{role "user"}}\nSay {{a}}.\n'), one(), [("text", "", "", "")]
    ),
    "settings": (
        version("x\n", model="m-1", temperature=0.5, seed=1),
        version("x\n", temperature=0, model="m-1", stop=["<b>"]),
        [
            ("setting", "temperature", "0.5", "0"), ("setting", "seed", "1", ""),
            ("setting", "stop", "", '["<b>"]'),
        ],
    ),
    "booleans and numbers": (
        version("{{a}}\n", {"name": "a", "default": True}, seed=1, stop=[0], top=1.0),
        version("{{a}}\n", {"name": "a", "default": 1}, seed=True, stop=[False], top=1),
        [
            ("default", "a", "true", "1"), ("setting", "seed", "1", "true"),
            ("setting", "stop", "[0]", "[false]"),
        ],
    ),
    "names of properties": (
        version("{{constructor}}\n", {"name": "constructor"}),
        version("{{__proto__}}\n", {"name": "__proto__"}, toString=1),
        [
            ("required", "__proto__", "", ""), ("gone", "constructor", "", ""),
            ("setting", "toString", "", "1"),
        ],
    ),
}  # fmt: skip


class Record(NamedTuple):
    """The fields of a record that the rule reads."""

    variables: list[Variable]
    parameters: dict[str, Any]
    front_matter_bytes: int = 0


def interface(one: Published) -> Interface:
    variables = [Variable(**fields) for fields in one.variables]
    return interface_of(Record(variables, one.parameters), one.text)


@pytest.mark.parametrize("case", CASES)
def test_changes_for_callers(case: str) -> None:
    before, after, expected = CASES[case]
    found = changes_for_callers(interface(before), interface(after))
    assert [tuple(change) for change in found] == expected


def test_each_kind_has_a_case() -> None:
    kinds = {change[0] for *_, expected in CASES.values() for change in expected}
    assert kinds == KINDS.keys()


def test_a_step_is_explained() -> None:
    found = changes_for_callers(interface(CASES["new"][0]), interface(CASES["new"][1]))
    assert explain(found, "1.0.0", "1.0.1") == (
        "A major step, because of the first: programs that fill in 1.0.0 can fail, or mean "
        "something else. Its number says patch."
    )
    assert explain(found[1:], "1.0.0", "2.0.0") == (
        "A minor step: programs can fill it in like 1.0.0, and can send more."
    )
    # Back to an older version, where numbers say nothing.
    assert explain(found[1:], "2.0.0", "1.9.1").endswith("and can send more.")


def test_the_page_of_a_version_says_it_before_its_words(empty) -> None:
    write_version(empty.content, "ann", "x", "1.0.0", "Say {{a}}.\n")
    write_version(empty.content, "ann", "x", "1.0.1", "Say {{b}}.\n", parameters={"<b>": "<i>"})
    write_version(empty.content, "ann", "x", "1.0.2", "Speak {{b}}.\n", parameters={"<b>": "<i>"})
    files = build_files(empty)
    page = files["ann/x/1.0.1.html"].decode()
    box, words = page.index("For applications"), page.index('class="changes"')
    assert box < page.index("<ins><code>b</code></ins>") < page.index("Its number says") < words
    assert "<del><code>a</code></del>" in page
    assert "<code>&lt;b&gt;</code>" in page and "<ins>&lt;i&gt;</ins>" in page
    assert "Variables and parameters are as before." in files["ann/x/1.0.2.html"].decode()
