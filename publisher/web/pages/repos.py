"""An owner's repos on the pages: their names, their labels, and when readers see a change."""

import contextlib
import sqlite3
from collections.abc import Iterator

import msgspec

from builder.model.answers import LabelMove, RepoSummary
from builder.model.errors import OperatorError, RequestError
from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from builder.render.chart import by_weight
from builder.store.state import State

# More are not listed: the owner types the names.
OFFERED_MAX = 100


class _LabelList(msgspec.Struct):
    data: list[LabelMove]


_decode_summary = msgspec.json.Decoder(RepoSummary).decode
_decode_labels = msgspec.json.Decoder(_LabelList).decode


def repos_of(settings: Settings, owner: str) -> list[str] | None:
    """Returns the names of an owner's repos as readers see them, sorted; None before the site is
    built.
    """
    try:
        with reading(settings) as state:
            return [one.partition("/")[2] for one in state.ids.beginning(f"{owner}/")]
    except RequestError:
        return None


def offered(repos: list[str] | None) -> list[str]:
    """Returns the names to choose from: none where there are too many."""
    return repos if repos and len(repos) <= OFFERED_MAX else []


def repo_in(text: str | None, owner: str) -> str:
    """Returns the name of an owner's repo as a person typed it, with or without the owner."""
    return (text or "").strip().removeprefix(f"{owner}/")


def labels_of(settings: Settings, owner: str, name: str) -> dict[str, LabelMove]:
    """Returns the last change of each label that a repo has or had, as readers see it, the label
    with most weight first.

    Reads the site's small file of labels: the content would need all files of the repo.
    """
    file = BY_NAME["labels"].file_for(owner=owner, name=name)
    try:
        with open(f"{settings.out}/{file}", "rb") as opened:
            listed = _decode_labels(opened.read())
    except FileNotFoundError:
        return {}
    return by_weight({move.label: move for move in listed.data})


@contextlib.contextmanager
def reading(settings: Settings) -> Iterator[State]:
    """The state of the last build, to read. Raises RequestError ``unavailable`` without one."""
    try:
        with State(settings.state, read_only=True) as state:
            if not state.has_tables():
                raise sqlite3.OperationalError("no build has ended")
            yield state
    except (sqlite3.Error, OperatorError) as error:
        raise RequestError(
            "unavailable", "Your prompts cannot be listed right now. Try again in a moment."
        ) from error


def latest_versions(settings: Settings, owner: str, names: list[str]) -> dict[str, str]:
    """Returns the latest version of some of an owner's prompts, by name, as readers see them."""
    try:
        with reading(settings) as state:
            rows = state.repos.summaries([f"{owner}/{name}" for name in names])
    except RequestError:
        return {}  # the labels are shown without it
    return {one.name: one.latest_version for one in map(_decode_summary, rows)}


def why_late(rebuilder: Rebuilder, owner: str, name: str | None) -> str:
    """Waits until readers see a change of a repo, or of an owner's profile. Returns the reason why
    they do not see it yet, or an empty text.
    """
    try:
        rebuilder.make_visible(owner, name)
    except RequestError as error:
        return str(error)
    return ""


def show_readers(rebuilder: Rebuilder, owner: str, name: str, done: str) -> str:
    """Waits until readers see a change of a repo. Returns the message for its owner: ``done``, and
    that readers see it later, if so.
    """
    late = why_late(rebuilder, owner, name)
    return f"{done} {late} Readers will see it as soon as possible." if late else done
