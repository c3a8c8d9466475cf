"""Publishes a prompt with its history elsewhere, and moves its labels.

Safe to repeat. Versions that exist here are recognized by their texts and parameters, or by their
numbers and times, since another release may convert placeholders differently. Versions that were
published here meanwhile stay, and only new ones from elsewhere are added behind them.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from anyascii import anyascii

from builder.model import names
from builder.model.answers import LabelMove
from builder.model.errors import RequestError, cut
from builder.model.names import Version
from builder.model.plural import counted
from builder.model.records import VersionFile
from builder.model.request_bodies import LabelDraft
from builder.model.withdrawn import WithdrawnVersion
from builder.store import content
from builder.text.summary import clean_title
from moving.importers.items import History, Rejection, reason_of
from moving.importers.placeholding import Placed
from moving.importers.revisions import (
    NUMBER_MAX,
    Here,
    Ready,
    Target,
    make_ready,
    match_here,
    number_revisions,
    read_here,
    times_of,
)
from publisher.write import gone
from publisher.write.decision import Terms
from publisher.write.labels import change_label
from publisher.write.moves import read_labels
from publisher.write.publish import Past, publish_past
from publisher.write.resolve import resolve

_LABEL_TEXT_CHARS_MAX = 200


class FromElsewhere(Exception):
    """The repo has other versions alone. ``first``: the record of its oldest one."""

    def __init__(self, first: VersionFile) -> None:
        super().__init__()
        self.first = first


class Result(NamedTuple):
    """The result of a history: the number of published versions and of moved labels. ``is_here``:
    one of its versions exists here, now or before. ``is_new``: none did before. ``placed``: the
    converted placeholders of each revision, with their convention.
    """

    is_here: bool
    is_new: bool
    versions: int
    labels: int
    placed: list[tuple[str, Placed]]
    rejected: list[Rejection]
    warnings: list[str]


def import_history(
    history: History, target: Target, progress: Callable[[], None] = lambda: None
) -> Result:
    """Publish the new versions of a history, and let its labels name the same versions as
    elsewhere.

    ``progress`` is called for each revision. Raises RequestError ``not_owner`` if ``create_only``
    forbids the change, ``storage_unavailable``, ``version_withdrawn`` for a withdrawn repo;
    ContentError; FromElsewhere unless ``onto_others``.
    """
    if not history.revisions:
        rejection = Rejection(history.where, "has no versions")
        return Result(False, False, 0, 0, [], [rejection], [])
    return _Import(history, target, progress).run()


class _Import:
    """The import of one history. ``_versions``: the version here of each revision, by its index."""

    def __init__(self, history: History, target: Target, progress: Callable[[], None]) -> None:
        self._history = history
        self._target = target
        self._progress = progress
        self._rejected: list[tuple[int, Rejection]] = []
        self._notes: list[tuple[str, str]] = []
        self._versions: dict[int, Version] = {}
        self._withdrawn: list[WithdrawnVersion] = []
        self._numbers = number_revisions(history.revisions)

    def run(self) -> Result:
        ready = self._prepare()
        here, self._withdrawn = read_here(self._target)
        self._versions = match_here(ready, here, self._numbers)
        others = [] if self._versions or self._target.onto_others else here
        if first := next((one for one in others if not one.is_withdrawn), None):
            target = self._target
            at = (target.store.root, target.owner, target.name, first.version)
            raise FromElsewhere(content.read_record(*at))
        published = self._publish(self._find_new(ready), here)
        labels = self._move_labels(is_new=not here)
        return Result(
            is_here=bool(self._versions),
            is_new=not here and bool(published),
            versions=len(published),
            labels=labels,
            placed=[(one.convention, one.placed) for one in ready.values()],
            rejected=[rejection for _, rejection in sorted(self._rejected)],
            warnings=_summarize(self._notes, self._history.where),
        )

    def _reject(self, index: int, reason: str) -> None:
        where = self._history.revisions[index].where
        self._rejected.append((index, Rejection(where, reason)))

    def _prepare(self) -> dict[int, Ready]:
        """The revisions that can be published, by their index."""
        ready: dict[int, Ready] = {}
        numbered: dict[int, str] = {}
        title = clean_title(self._history.name) or self._target.name
        for index, revision in enumerate(self._history.revisions):
            if revision.number in numbered:
                first = numbered[revision.number]
                self._reject(index, f"has the number {revision.number}, as {first}")
                continue
            if revision.number is not None:
                numbered[revision.number] = revision.where
            try:
                ready[index] = make_ready(revision, title, self._target)
            except RequestError as error:
                self._reject(index, reason_of(error))
        return ready

    def _find_new(self, ready: dict[int, Ready]) -> dict[int, Ready]:
        """The revisions after all that exist here. Rejects those before them, since versions come
        in order.
        """
        last = max(self._versions, default=-1)
        newer = ""
        for index in sorted(ready, reverse=True):
            newer = self._versions.get(index, newer)
            if index < last and index not in self._versions:
                try:
                    self._check_alone(ready[index])
                    self._reject(index, f"older than {newer}, which is here already")
                except RequestError as error:
                    self._reject(index, reason_of(error))
        return {index: one for index, one in ready.items() if index > last}

    def _check_alone(self, one: Ready) -> None:
        """Raises RequestError if the revision could never be published."""
        target = self._target
        gone.check_text(target.owner, target.name, self._withdrawn, one.sha256)
        resolve(one.draft, target.name, None, front_matter=False)

    def _publish(self, new: dict[int, Ready], here: list[Here]) -> list[int]:
        """Publish these revisions after those here; returns the indices of the published ones."""
        if not new:
            return []
        target, published = self._target, []
        times = times_of(self._history.revisions)
        past = [Past(one.draft, times[index], self._numbers[index]) for index, one in new.items()]
        latest = max((one.version for one in here if not one.is_withdrawn), default=None)
        if latest and target.create_only:
            raise self._not_owner()
        done = publish_past(
            target.store,
            target.owner,
            target.name,
            past,
            publisher=target.owner,
            after=latest,
            dry_run=target.dry_run,
        )
        for index, one in zip(new, done, strict=True):
            self._progress()
            if isinstance(one, RequestError):
                self._reject(index, reason_of(one))
                continue
            published.append(index)
            self._versions[index] = Version.parse(one.version)
            revision = new[index].revision
            self._notes += [(revision.where, note) for note in new[index].notes + one.warnings]
            if (revision.number or 0) > NUMBER_MAX:
                note = f"The number {revision.number} is above {NUMBER_MAX:,}: it gets another one."
                self._notes.append((revision.where, note))
        return published

    def _move_labels(self, *, is_new: bool) -> int:
        """Let the labels name the same versions as elsewhere, except labels that were moved here by
        hand. Returns the number of moves.
        """
        wanted = self._wanted_labels()
        if not wanted:
            return 0
        target = self._target
        there = read_labels(target.store.root, target.owner, target.name)
        current = {*there.current}
        moves = []
        for label, (where, version) in sorted(wanted.items()):
            past = there.history.get(label)
            if past and past[0].version == version:
                continue
            if past and past[0].note != target.note:
                self._notes.append((where, _tell_moved(label, past[0])))
            elif label not in current and len(current) >= names.LABELS_PER_REPO_MAX:
                note = f"Left out label {label}: a prompt has at most {names.LABELS_PER_REPO_MAX}."
                self._notes.append((where, note))
            else:
                moves.append((where, label, version))
                current.add(label)
        if moves and target.create_only and not is_new:
            raise self._not_owner()
        return sum(self._move(*move) for move in moves)

    def _not_owner(self) -> RequestError:
        repo = self._target.repo
        return RequestError("not_owner", f"{repo} exists, and may not be updated.")

    def _wanted_labels(self) -> dict[str, tuple[str, str]]:
        """The version that each label has to name, and the place in the source that says so."""
        withdrawn = {one.version for one in self._withdrawn}
        wanted: dict[str, tuple[str, str]] = {}
        for index, revision in enumerate(self._history.revisions):
            version = self._versions.get(index)
            for spelled in revision.labels:
                try:
                    label = clean_label(spelled)
                except RequestError as error:
                    note = f"Left out label {cut(repr(spelled), 60)}: {error}"
                    self._notes.append((revision.where, note))
                    continue
                if label == names.LATEST:
                    continue
                if version is None or version in withdrawn:
                    why = "was withdrawn here" if version else "is not here"
                    note = f"Left out label {label}: its version {why}."
                    self._notes.append((revision.where, note))
                    continue
                if label in wanted and wanted[label][1] != str(version):
                    note = f"The label {label} names two versions; the later one gets it."
                    self._notes.append((revision.where, note))
                wanted[label] = revision.where, str(version)
        return wanted

    def _move(self, where: str, label: str, version: str) -> bool:
        target = self._target
        if target.dry_run:
            return True
        draft = LabelDraft(version=version, note=target.note)
        try:
            change_label(
                target.store,
                target.owner,
                target.name,
                label,
                draft,
                by=target.owner,
                terms=Terms(sync=False),
            )
        except RequestError as error:
            if error.code == "storage_unavailable":
                raise
            self._notes.append((where, f"Left out label {label}: {error}"))
            return False
        return True


def clean_label(text: str) -> str:
    """A label from a vendor's name for it. Raises RequestError if that cannot be a label."""
    plain = re.sub("[^a-z0-9._-]+", "-", anyascii(text[:_LABEL_TEXT_CHARS_MAX]).lower())
    label = plain.strip("._-")[: names.LABEL_CHARS_MAX].strip("._-")
    if label == names.LATEST:
        return label
    return names.check_new("label", names.check_new_label(label), "label")


def _tell_moved(label: str, move: LabelMove) -> str:
    now = f"names {move.version}" if move.version else "was removed"
    return f"The label {label} stays as it is: it {now} here since {move.moved_at[:10]}."


def _summarize(notes: Iterable[tuple[str, str]], where: str) -> list[str]:
    """Each warning once, with its place, or with the number of versions that have it."""
    places: dict[str, list[str]] = {}
    for place, warning in notes:
        places.setdefault(warning, []).append(place)
    return [
        f"{found[0]}: {warning}"
        if len(found) == 1
        else f"{where}: {warning} ({counted(len(found), 'version')})"
        for warning, found in places.items()
    ]
