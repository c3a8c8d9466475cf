"""The input of one build of a service, with the publishers that wait for it."""

from concurrent.futures import Future
from dataclasses import dataclass, field

from builder.model.errors import RequestError
from builder.pipeline.context import Named, Visible


@dataclass
class Batch:
    """Repos, with the publishers that wait for each, or everything."""

    is_everything: bool = False
    repos: dict[Named, list[Future[int]]] = field(default_factory=dict)
    # The time of the first request in the batch, by monotonic time.
    since: float | None = None
    # As in ``build``.
    edited: bool = False
    # As in ``build``.
    serial: int | None = None
    covers_serial: bool = True
    check_seconds: float = 0.0

    @property
    def is_waited_for(self) -> bool:
        return any(self.repos.values())

    def note_visible(self, visible: Visible) -> None:
        """Answer the publishers whose repos readers can see now."""
        for (owner, name), futures in self.repos.items():
            is_faulty = f"{owner}/{name}" in visible.faulty
            while futures:
                if is_faulty:
                    error = unavailable(
                        "a file of this prompt has a fault, which the operator's log names"
                    )
                    futures.pop().set_exception(error)
                else:
                    futures.pop().set_result(visible.serial)

    def fail(self, reason: str) -> None:
        """Answer the publishers that still wait that their repos are not visible."""
        for futures in self.repos.values():
            while futures:
                futures.pop().set_exception(unavailable(reason))


def unavailable(reason: str) -> RequestError:
    return RequestError("unavailable", f"It is not on the site yet: {reason}.")
