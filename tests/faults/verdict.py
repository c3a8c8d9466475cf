"""Faults of a content folder after a failure, and after the next work.

The contents of a folder are written as a list: the texts of the repo's versions, then ``@`` and the
version for each move of the label, then ``-`` and each withdrawn version. A situation has the
contents before, the contents after the work, and that work.
"""

import functools
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from builder.model.errors import HubError
from builder.model.settings import Settings
from builder.pipeline.build import build
from builder.store import content
from builder.store.withdrawn_files import read_parts
from operate.content_check import check
from publisher.write.moves import read_labels
from tests.faults import trees
from tests.faults.writers import FILES, LABEL, REPO, put

# Files that a crash may leave are no version, and a build ignores them.
_LEFT_BY_A_CRASH = (
    "no versions", "text without record", "files without record", "was withdrawn",
)  # fmt: skip
_REFUSALS = ("REFUSED storage_unavailable", "REFUSED ContentError", "REFUSED OperatorError")


class Situation(NamedTuple):
    """``old``, which is also the works that make it; ``new``; and the work in between."""

    old: list[str]
    new: list[str]
    work: str

    def prepare(self, root: str) -> None:
        """Do the works before, in an empty folder."""
        for work in self.old:
            put(root, work, sync=False)


SITUATIONS = {
    "first": Situation([], ["One."], "One."),
    "second": Situation(["One."], ["One.", "Two."], "Two."),
    "with a label": Situation(["One."], ["One.", "Three.", "@1.0.1"], "Three.@"),
    "first label": Situation(["One."], ["One.", "@1.0.0"], "@1.0.0"),
    "moved label": Situation(
        ["One.", "Two.", "@1.0.0"], ["One.", "Two.", "@1.0.0", "@1.0.1"], "@1.0.1"
    ),
    "first with files": Situation([], ["One. +"], "One. +"),
    "second with files": Situation(["One. +"], ["One. +", "Two. +"], "Two. +"),
    "first files": Situation(["One."], ["One.", "Three. +"], "Three. +"),
    "withdrawn files": Situation(["One. +"], ["-1.0.0"], "-1.0.0"),
    "withdrawn": Situation(
        ["One.", "Two.", "@1.0.1"], ["One.", "@1.0.1", "@None", "-1.0.1"], "-1.0.1"
    ),
    "withdrawn whole": Situation(["One.", "Two."], ["-1.0.0", "-1.0.1"], "-"),
}


def after_fault(root: str, situation: Situation, *, acknowledged: bool) -> Iterator[str]:
    """Faults after the failure: lost or torn files, or obstacles to a build."""
    faults = []
    try:
        found, faults = _state(root), [*check(root)]
    except HubError as error:
        yield f"torn: {error}"
    else:
        if acknowledged and found != situation.new:
            yield f"lost: acknowledged, but there is {found}"
        elif found not in (situation.old, situation.new):
            yield f"lost: there is {found}"
    for fault in faults:
        if not fault.reason.startswith(_LEFT_BY_A_CRASH):
            yield f"fault: {fault}"
        elif acknowledged and fault.reason.startswith("was withdrawn"):
            yield f"lost: acknowledged, but {fault}"
    yield from _build_faults(trees.read(root))


def after_refusal(root: str, situation: Situation, answer: str) -> Iterator[str]:
    """Faults if the failure was an error that the writer could report."""
    if not answer.startswith(("ACK ", *_REFUSALS)):
        yield f"answer: {answer}"
    if not answer.startswith("ACK "):
        left = [path for path, _ in trees.read(root) if "/." in path]
        # A folder that could not be locked may stay, without a version.
        allowed = set() if situation.old else {"no versions"}
        # A withdrawal counts once its file exists; the next one removes the remaining files.
        left += [
            str(fault)
            for fault in check(root)
            if fault.reason not in allowed and not fault.reason.startswith("was withdrawn")
        ]
        if left:
            yield f"left behind: {left}"


def after_retry(root: str, situation: Situation) -> Iterator[str]:
    """Do the same work again, without a fault; what is wrong then."""
    try:
        put(root, situation.work, sync=False)
        found = _state(root)
    except HubError as error:
        yield f"retry: {error}"
        return
    if found != situation.new:
        yield f"retry: there is {found}"
    for fault in check(root):
        yield f"retry: {fault}"
    yield from _build_faults(trees.read(root))


def _state(root: str) -> list[str]:
    listing = content.list_versions(root, *REPO)
    read = [(version, *content.read_version(root, *REPO, version)) for version in listing.versions]
    texts = [text for _, _, text in read]
    for version, record, text in read:
        files = content.read_files(root, *REPO, version, record)
        texts += [] if len(files) == (len(FILES) if "+" in text else 0) else [f"{files} of {text}"]
    moves = read_labels(root, *REPO).history.get(LABEL, [])
    gone = read_parts(root, "/".join(REPO), listing.withdrawn).versions
    texts += [f"@{move.version}" for move in reversed(moves)]
    return texts + [f"-{one.version}" for one in gone]


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
