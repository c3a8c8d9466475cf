"""An owner's repos on the pages: which there are, what their labels name, and when readers see a
change.
"""

import os

import msgspec

from builder.model.errors import OperatorError, RequestError
from builder.model.records import LabelMove
from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from builder.store import content

# More are not offered one by one: one writes the names of those that are meant.
OFFERED_MAX = 100


class _LabelList(msgspec.Struct):
    data: list[LabelMove]


_decode_labels = msgspec.json.Decoder(_LabelList).decode


def repos_of(root: str, owner: str) -> list[str] | None:
    """The names of an owner's repos, sorted; None where a fault in the content hides them."""
    if not os.path.isdir(f"{root}/{owner}"):
        return []
    try:
        return content.list_repos(root, owner)
    except OperatorError:
        return None


def offered(repos: list[str] | None) -> list[str]:
    """The names to choose from: none where there are too many."""
    return repos if repos and len(repos) <= OFFERED_MAX else []


def repo_in(text: str | None, owner: str) -> str:
    """The name of an owner's repo as somebody typed it, with or without the owner."""
    return (text or "").strip().removeprefix(f"{owner}/")


def labels_of(settings: Settings, owner: str, name: str) -> dict[str, str | None] | None:
    """What each label of a repo names as readers see it, None where it is removed; None for a repo
    that never had one.

    From the site, which has a small file for that: the content would be all of the repo's.
    """
    file = BY_NAME["labels"].file_for(owner=owner, name=name)
    try:
        with open(f"{settings.out}/{file}", "rb") as opened:
            listed = _decode_labels(opened.read())
    except FileNotFoundError:
        return None
    return {move.label: move.version for move in listed.data}


def why_late(rebuilder: Rebuilder, owner: str, name: str | None) -> str:
    """Wait until readers see a change of a repo, or of an owner's profile; returns why they do not
    see it yet, or nothing.
    """
    try:
        rebuilder.make_visible(owner, name)
    except RequestError as error:
        return str(error)
    return ""


def show_readers(rebuilder: Rebuilder, owner: str, name: str, done: str) -> str:
    """Wait until readers see a change of a repo. Returns the message for its owner: what is
    ``done``, and that readers see it later, if so.
    """
    late = why_late(rebuilder, owner, name)
    return f"{done} {late} Readers will see it as soon as possible." if late else done
