"""What is wrong with a content folder after a fault, and after the next publication.

A situation is the texts that the repo had before, and those it has once the publication is in.
"""

import functools
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from builder.model.errors import HubError
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.store import content
from tests.faults import trees
from tests.faults.writers import REPO, put

# What a crash may leave is no version, and a build passes it by.
_LEFT_BY_A_CRASH = ("no versions", "text without record")
_REFUSALS = ("REFUSED storage_unavailable", "REFUSED ContentError", "REFUSED OperatorError")


class Situation(NamedTuple):
    """``old``: the texts of the repo's versions before; ``new``: with the publication's."""

    old: list[str]
    new: list[str]

    @property
    def text(self) -> str:
        """What is published."""
        return self.new[-1]

    def prepare(self, root: str) -> None:
        """Put the old versions into an empty folder."""
        for text in self.old:
            put(root, text, sync=False)


SITUATIONS = {
    "first": Situation([], ["One."]),
    "second": Situation(["One."], ["One.", "Two."]),
}


def after_fault(root: str, situation: Situation, *, acknowledged: bool) -> Iterator[str]:
    """What is wrong: lost, torn, or in the way of a build."""
    try:
        found = _texts(root)
    except HubError as error:
        yield f"torn: {error}"
    else:
        if acknowledged and found != situation.new:
            yield f"lost: acknowledged, but the versions are {found}"
        elif found not in situation:
            yield f"lost: the versions are {found}"
    for fault in content.check(root):
        if not fault.reason.startswith(_LEFT_BY_A_CRASH):
            yield f"fault: {fault}"
    yield from _build_faults(trees.read(root))


def after_refusal(root: str, situation: Situation, answer: str) -> Iterator[str]:
    """What is wrong where the fault was an error that the writer could tell of."""
    if not answer.startswith(("ACK ", *_REFUSALS)):
        yield f"answer: {answer}"
    if not answer.startswith("ACK "):
        left = [path for path, _ in trees.read(root) if "/." in path]
        # A folder that could not be locked may stay, without a version.
        allowed = set() if situation.old else {"no versions"}
        left += [str(fault) for fault in content.check(root) if fault.reason not in allowed]
        if left:
            yield f"left behind: {left}"


def after_retry(root: str, situation: Situation) -> Iterator[str]:
    """Publish the same text again, without a fault; what is wrong then."""
    try:
        put(root, situation.text, sync=False)
        found = _texts(root)
    except HubError as error:
        yield f"retry: {error}"
        return
    if found != situation.new:
        yield f"retry: the versions are {found}"
    for fault in content.check(root):
        yield f"retry: {fault}"
    yield from _build_faults(trees.read(root))


def _texts(root: str) -> list[str]:
    versions = content.list_versions(root, *REPO).versions
    return [content.read_version(root, *REPO, version)[1] for version in versions]


@functools.cache
def _build_faults(tree: trees.Tree) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(f"{folder}/content", f"{folder}/site", f"{folder}/state")
        trees.write(tree, settings.content)
        try:
            build(settings, index=False)
        except HubError as error:
            return [f"build: {error}"]
    return []
