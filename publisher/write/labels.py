"""Changes which version each label of a repo names, durably.

Knows nothing of HTTP, tokens or permissions. Does not build the site.
"""

import contextlib
import hashlib
from collections.abc import Collection
from datetime import UTC, datetime

from msgspec import UNSET, Struct

from builder import RELEASED
from builder.model import names, records
from builder.model.content_tree import LABEL
from builder.model.errors import Detail, RequestError, validation_failed
from builder.model.labels import Labels, Move, fold
from builder.model.names import Version
from builder.model.records import LabelFile
from builder.model.request_bodies import LabelDraft, LabelRemoval
from builder.store import content
from builder.store.withdrawn_files import NOTHING_WITHDRAWN
from publisher.write import gone
from publisher.write.decision import USUAL, Decision, Terms, check_repo, decide, no_repo
from publisher.write.durable import FolderStore, render
from publisher.write.idempotency import KeptAnswer
from publisher.write.moves import read_moves
from publisher.write.quotas import Quotas

_THEN = "Publish its first version, then label it."


class LabelChange(Struct, frozen=True):
    """The result of a change of a label. ``unchanged``: it named ``version`` already; the other
    fields then say who moved it there, and when.
    """

    owner: str
    name: str
    label: str
    version: str | None
    previous: str | None
    moved_at: str
    moved_by: str
    note: str
    unchanged: bool

    @property
    def what(self) -> str:
        """The change, for people: ``ann/story production to 1.2.0``."""
        now = f" to {self.version}" if self.version else ", removed"
        return f"{self.owner}/{self.name} {self.label}{now}"


def change_label(
    store: FolderStore,
    owner: str,
    name: str,
    label: str,
    draft: LabelDraft | LabelRemoval,
    *,
    by: str,
    terms: Terms = USUAL,
) -> LabelChange:
    """Lets a label name ``draft.version``, or removes it; or finds that there is nothing to do.

    Raises what the key of ``terms`` does; RequestError: ``invalid_name``, ``invalid_label``,
    ``name_reserved``, ``repo_not_found``, ``version_not_found``, ``version_withdrawn``,
    ``label_not_found``, ``label_moved``, ``validation_failed`` (too many labels or changes),
    ``storage_unavailable``; and ContentError where a file of the repo is broken.
    """
    check_repo(store, owner, name, by, _THEN)
    names.check_new_label(label)

    def make() -> Decision[LabelChange]:
        return _decide(store.root, owner, name, label, draft, by, terms)

    def find_again(kept: KeptAnswer) -> LabelChange | None:
        return _answer_again(store.root, owner, name, label, kept)

    return decide(store, owner, name, make, find_again, terms)


def check_room(labels: Labels, wanted: Collection[str], files: int, field: str) -> None:
    """Checks the limits of labels and of their changes.

    Raises RequestError ``validation_failed``, about ``field``, where a repo cannot have the
    ``wanted`` labels beside its own, or so many ``files`` of changes; ``name_reserved``.
    """
    added = [label for label in wanted if label not in labels.current]
    for label in added:
        names.check_new("label", label, field)
    count = len(labels.current) + len(added)
    if added and count > names.LABELS_PER_REPO_MAX:
        message = (
            f"would be one of {count} labels, but a prompt has at most "
            f"{names.LABELS_PER_REPO_MAX}. Remove a label first"
        )
        raise validation_failed(Detail(field, message))
    last_number = labels.next_number + len(wanted)
    if files > names.LABEL_EVENTS_PER_REPO_MAX or last_number > names.LABEL_NUMBER_MAX:
        # A publication still works at the limit: it carries its moves in its own record.
        message = (
            f"cannot change: the prompt has {names.LABEL_EVENTS_PER_REPO_MAX:,} changes of labels, "
            "which is the limit. Publish the text that it is to name as a new version with this "
            "label"
        )
        raise validation_failed(Detail(field, message))


def time_of_next(labels: Labels, now: datetime | None) -> str:
    """Returns the time of the next change: now, but no earlier than the last one, in case a clock
    was set back. Raises RequestError ``unavailable`` if the clock is before this release.
    """
    if now is None and (shown := records.format_time(datetime.now(UTC))) < RELEASED:
        raise RequestError(
            "unavailable",
            f"The clock of this server is wrong: it shows {shown}, and this release was made after "
            f"{RELEASED}. Set the clock, then try again.",
        )
    last = max((past[0].moved_at for past in labels.history.values()), default="")
    return max(records.format_time(now or datetime.now(UTC)), last)


def hash_event(root: str, owner: str, name: str, number: int) -> bytes | None:
    """Returns the SHA-256 of the file of a change; None where the file does not exist."""
    with contextlib.suppress(FileNotFoundError):
        path = f"{content.repo_path(root, owner, name)}/{LABEL.file(number)}"
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).digest()
    return None


def _answer_again(
    root: str, owner: str, name: str, label: str, kept: KeptAnswer
) -> LabelChange | None:
    """Returns the first answer to a repeated request, as ``find_again`` of ``decide``."""
    number = kept.label_number
    if kept.record_sha256 not in (None, hash_event(root, owner, name, number)):
        return None
    for move in read_moves(root, owner, name, content.list_versions(root, owner, name)):
        if (move.number, move.label) == (number, label):
            return _change(owner, name, move, kept.previous_version, not kept.writes)
    return None


def _decide(
    root: str,
    owner: str,
    name: str,
    label: str,
    draft: LabelDraft | LabelRemoval,
    by: str,
    terms: Terms,
) -> Decision[LabelChange]:
    listing = content.list_versions(root, owner, name)
    moves = read_moves(root, owner, name, listing)
    versions, files = listing.versions, listing.events
    gone.check_open(root, owner, name, listing)
    if not versions and listing.withdrawn == NOTHING_WITHDRAWN:
        raise no_repo(owner, name, _THEN)
    if draft.version is not None:
        gone.check_label_target(root, owner, name, listing, Version.parse(draft.version))
    labels = fold(moves)
    current = labels.versions().get(label)
    _check_expected(draft, label, current)
    if draft.version is None and current is None:
        raise RequestError("label_not_found", f"{owner}/{name} has no label {label}.")
    if draft.version == current:
        last = max((move for move in moves if move.label == label), key=lambda move: move.number)
        previous = labels.current[label].previous
        change = _change(owner, name, last, previous, is_unchanged=True)
        return Decision(change, KeptAnswer(current, previous, None, last.number), None)
    wanted = [label] if draft.version else []
    check_room(labels, wanted, len(files) + 1, "label")
    at, number = time_of_next(labels, terms.now), labels.next_number
    what = label, draft.version, at, by, draft.note
    data = render(LabelFile(*what, source=terms.source or UNSET))
    move = Move(number, LABEL.file(number), *what)
    mark = hashlib.sha256(data).digest()
    kept = KeptAnswer(draft.version or "", current, mark, number)
    change = _change(owner, name, move, current, is_unchanged=False)

    def write(store: FolderStore, sync: bool) -> None:
        store.write_events(owner, name, [(number, data)], sync=sync)

    return Decision(change, kept, write, Quotas(bytes=len(data)))


def _check_expected(draft: LabelDraft | LabelRemoval, label: str, current: str | None) -> None:
    if draft.expected is UNSET or draft.expected == current:
        return
    expected = draft.expected or "no version"
    there_is = f"it names {current}" if current else "there is no such label"
    raise RequestError(
        "label_moved",
        f"Expected {label} to name {expected}, but {there_is}. Look at its history, then send "
        "the request again with what it names now.",
        [Detail("expected", current)] if current else None,
    )


def _change(
    owner: str, name: str, move: Move, previous: str | None, is_unchanged: bool
) -> LabelChange:
    what = move.label, move.version, previous, move.at, move.by, move.note
    return LabelChange(owner, name, *what, is_unchanged)
