"""Which step a new version is."""

import pytest

from builder.model.records import Variable
from publisher.write.step import NAMED_MAX, propose_step

HERO = Variable("hero")
PLACE = Variable("place", default="Rome")


@pytest.mark.parametrize(
    ("before", "after", "bump", "reason"),
    [
        ([], [], "patch", "nothing else"),
        ([HERO, PLACE], [PLACE, HERO], "patch", "nothing else"),
        ([HERO], [Variable("hero", description="Who", example="Ada")], "patch", "nothing else"),
        ([HERO], [HERO, PLACE], "minor", "place is a new optional variable."),
        ([PLACE], [PLACE, HERO], "major", "hero is a new required variable."),
        ([HERO], [], "major", "hero is gone."),
        ([HERO], [Variable("heroine")], "major", "heroine is a new required variable."),
        ([PLACE], [Variable("place")], "major", "place is required now."),
        ([HERO], [Variable("hero", default="Ada")], "minor", "hero may be left out now."),
        ([HERO], [Variable("hero", type="integer")], "major", "hero has another type."),
        ([HERO], [Variable("hero", enum=["a"])], "major", "hero allows fewer values."),
        (
            [Variable("a", enum=[1, 2])], [Variable("a", enum=[2, 1, 3])],
            "minor", "a allows more values.",
        ),
        (
            [Variable("a", enum=[1])], [Variable("a", enum=[True])],
            "major", "a allows fewer values.",
        ),
        ([Variable("a", enum=[1])], [Variable("a")], "minor", "a allows more values."),
    ],
)  # fmt: skip
def test_the_step(before: list[Variable], after: list[Variable], bump: str, reason: str) -> None:
    step = propose_step(before, after)
    assert step.bump == bump and reason in step.reasons[0]


def test_a_long_reason_is_cut() -> None:
    step = propose_step([], [Variable(f"v{number}") for number in range(200)])
    assert step.reasons == [
        f"v0, v1, v2, v3, v4 and {200 - NAMED_MAX} more are new required variables."
    ]
