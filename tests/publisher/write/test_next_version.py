"""The step of a new version: major, minor or patch."""

import pytest

from builder.model.records import Variable, VersionFile
from builder.text.interface import Interface, interface_of
from publisher.write.next_version import NAMED_MAX, propose_step

HERO = Variable("hero")
PLACE = Variable("place", default="Rome")


def asking(*variables: Variable, is_chat: bool = False) -> Interface:
    return Interface({variable.name: variable for variable in variables}, is_chat, {})


@pytest.mark.parametrize(
    ("before", "after", "bump", "reason"),
    [
        ([], [], "patch", "as before"),
        ([HERO, PLACE], [PLACE, HERO], "patch", "as before"),
        ([HERO], [Variable("hero", description="Who", example="Ada")], "patch", "as before"),
        ([HERO], [HERO, PLACE], "minor", "place is a new optional variable."),
        ([HERO], [HERO, Variable("a", required=False)], "minor", "a is a new optional variable."),
        ([], [Variable("a", required=True, default="x")], "minor", "a is a new optional"),
        ([PLACE], [PLACE, HERO], "major", "hero is a new required variable."),
        ([HERO], [], "major", "hero is gone."),
        ([Variable("a", required=False)], [], "major", "a is gone."),
        ([HERO], [Variable("heroine")], "major", "heroine is a new required variable."),
        ([PLACE], [Variable("place")], "major", "place is required now."),
        ([PLACE], [Variable("place", required=True, default="Oslo")], "patch", "as before"),
        ([HERO], [Variable("hero", default="Ada")], "patch", "as before"),
        ([HERO], [Variable("hero", type="integer")], "major", "hero has another type."),
        ([Variable("a", type="integer")], [Variable("a", type="number")], "patch", "as before"),
        ([Variable("a", type="boolean")], [Variable("a")], "patch", "as before"),
        ([Variable("a", type="number")], [Variable("a", type="integer")], "major", "another type"),
        ([Variable("a", type="array")], [Variable("a")], "major", "a has another type."),
        ([HERO], [Variable("hero", enum=["a"])], "major", "hero allows fewer values."),
        ([Variable("a", enum=[1, 2])], [Variable("a", enum=[2, 1, 3])], "patch", "as before"),
        ([Variable("a", enum=[1.0])], [Variable("a", enum=[1])], "patch", "as before"),
        ([Variable("a", enum=[1])], [Variable("a", enum=[True])], "major", "allows fewer values."),
        ([Variable("a", enum=["x", "y"])], [Variable("a", enum=["x"])], "major", "fewer values."),
        ([Variable("a", enum=[1])], [Variable("a")], "patch", "as before"),
    ],
)
def test_the_step(before: list[Variable], after: list[Variable], bump: str, reason: str) -> None:
    step = propose_step(asking(*before), asking(*after))
    assert step.bump == bump and reason in step.reasons[0]


@pytest.mark.parametrize(("before", "reason"), [(False, "is now a chat"), (True, "is no longer a")])
def test_a_text_that_becomes_messages_or_the_reverse_is_major(before: bool, reason: str) -> None:
    step = propose_step(asking(HERO, is_chat=before), asking(HERO, is_chat=not before))
    assert step.bump == "major" and reason in step.reasons[0]


def test_what_was_added_removed_and_changed_is_named() -> None:
    before = asking(HERO, PLACE, Variable("a", type="integer"), Variable("b", default=1))
    after = asking(
        Variable("hero", description="Who"), Variable("a"), Variable("b", default=True),
        Variable("c"), Variable("d", default=""),
    )  # fmt: skip
    step = propose_step(before, after)
    assert (step.added, step.removed, step.changed) == (["c", "d"], ["place"], ["a", "b"])


def test_a_long_reason_is_cut() -> None:
    step = propose_step(asking(), asking(*(Variable(f"v{number}") for number in range(200))))
    assert step.reasons == [
        f"v0, v1, v2, v3, v4 and {200 - NAMED_MAX} more are new required variables."
    ]


def test_variables_that_the_body_does_not_have_ask_for_nothing() -> None:
    text = '---\ntitle: Say {{c}}\n---\n{{role "user"}}\n{{ a }} \\{{b}}\n'
    record = VersionFile(
        "ann", "2025-01-01T00:00:00Z", "0" * 64, "Title",
        variables=[Variable("a"), Variable("b"), Variable("c")], front_matter_bytes=25,
    )  # fmt: skip
    assert interface_of(record, text) == Interface({"a": Variable("a")}, True, {})
