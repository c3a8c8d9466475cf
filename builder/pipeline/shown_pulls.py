"""The counts of pulls that the site shows, beside those that there are."""

from builder.model.errors import PullsError
from builder.stats.pulls import PullCounts, Pulls
from builder.store.state import State


class ShownPulls:
    """The counts that the site shows, where the database of pulls cannot be used: publishers do
    not wait until it is mended.

    They are not known by day, so a repo that is rendered by them is listed too low in `trending`:
    the next build that can read the database looks at all repos.
    """

    def __init__(self, state: State, error: PullsError) -> None:
        self.error = error
        self._state = state

    def note(self) -> None:
        """Have the next build that can read the database see that others than its are shown."""
        if serial := self.serial():
            self._state.pulls.show(serial, "unreadable")

    def serial(self) -> int:
        return self._state.pulls.shown()[0]

    def nonce(self, serial: int) -> str | None:
        return self._state.pulls.shown()[1]

    def of(self, repo_id: str) -> PullCounts | None:
        row = self._state.repos.get(repo_id)
        return PullCounts(row.pulls if row else 0, ()) if self.serial() else None


def newest(pulls: Pulls | ShownPulls) -> tuple[int, str | None]:
    """The counts that there are, as ``state.pulls.shown`` tells of the shown ones."""
    serial = pulls.serial()
    return serial, pulls.nonce(serial)
