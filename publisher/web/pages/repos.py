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


def show_readers(rebuilder: Rebuilder, owner: str, name: str, told: str) -> str:
    """Have everybody see a change of a repo; returns what came of it, for the owner who is ``told``
    of the change.
    """
    try:
        rebuilder.make_visible(owner, name)
    except RequestError as error:
        return f"{told} {error} Readers will see it as soon as possible."
    return told
