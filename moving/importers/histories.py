"""Publishes a prompt with its history elsewhere, and moves its labels.

Safe to repeat. Versions that exist here are recognized by their texts and parameters, or by their
numbers and times, since another release may convert placeholders differently. Versions that were
published here meanwhile stay, and only new ones from elsewhere are added behind them.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from anyascii import anyascii

from builder.model import names
from builder.model.answers import LabelMove, Message
from builder.model.errors import RequestError, cut
from builder.model.names import Version
from builder.model.plural import counted
from builder.model.records import CHANGELOG_BYTES_MAX, CONTENT_BYTES_MAX, Remains, VersionFile
from builder.model.request_bodies import Draft, LabelDraft
from builder.model.withdrawn import WithdrawnVersion
from builder.store import content
from builder.store.labels import read_labels
from builder.store.withdrawn_files import read_parts
from builder.text.messages import escape_markers
from builder.text.prompts import parse_document
from builder.text.summary import clean_title
from moving.importers.items import History, Rejection, Revision, reason_of
from moving.importers.placeholding import Placed, turn_prompt
from publisher.write import gone
from publisher.write.characters import without_controls
from publisher.write.decision import Terms
from publisher.write.labels import change_label
from publisher.write.publish import Past, publish_past
from publisher.write.resolve import resolve
from publisher.write.store_protocol import Store

# A revision with a larger number gets another one: numbers above it must remain for later versions.
NUMBER_MAX = 1_000_000
_LABEL_TEXT_CHARS_MAX = 200


class Target(NamedTuple):
    """The destination of a history, and how to publish it. ``source``: the name of its origin for
    messages.

    ``make_draft`` takes the fields of a publication, and returns the draft and warnings; it raises
    RequestError. ``create_only``: change no existing repo.
    """

    store: Store
    owner: str
    name: str
    source: str
    make_draft: Callable[[dict[str, Any]], tuple[Draft, list[str]]]
    convention: str
    create_only: bool
    dry_run: bool

    @property
    def repo(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def note(self) -> str:
        """The note of label moves by imports, which identifies them later."""
        return f"Imported from {self.source}"


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


class _Ready(NamedTuple):
    """A revision as it would be published here. ``sha256`` of the text and the hash of the
    ``parameters`` show whether it exists already.
    """

    revision: Revision
    draft: Draft
    notes: list[str]
    convention: str
    placed: Placed
    sha256: str
    parameters: bytes


class _Here(NamedTuple):
    """A version that exists here. ``parameters`` is a hash. None: the version was withdrawn, and
    only the hash of its text is known. ``published``: its ordinal and time.
    """

    version: Version
    sha256: str
    parameters: bytes | None
    published: tuple[int, str]

    @property
    def is_withdrawn(self) -> bool:
        return self.parameters is None


def import_history(
    history: History, target: Target, progress: Callable[[], None] = lambda: None
) -> Result:
    """Publish the new versions of a history, and let its labels name the same versions as
    elsewhere.

    ``progress`` is called for each revision. Raises RequestError ``not_owner`` if ``create_only``
    forbids the change, ``storage_unavailable``, ``version_withdrawn`` for a withdrawn repo;
    ContentError.
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
        self._numbers = _number_revisions(history.revisions)

    def run(self) -> Result:
        ready = self._prepare()
        here, self._withdrawn = _read_here(self._target)
        self._versions = _match(ready, here, self._numbers)
        is_other = bool(here) and not self._versions
        published = self._publish(self._find_new(ready), here)
        if is_other and published:
            note = f"{self._target.repo} had other versions before: these come after them. "
            note += "If it is another prompt, import with another --owner."
            self._notes.insert(0, (self._history.where, note))
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

    def _prepare(self) -> dict[int, _Ready]:
        """The revisions that can be published, by their index."""
        ready: dict[int, _Ready] = {}
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
                ready[index] = _make_ready(revision, title, self._target)
            except RequestError as error:
                self._reject(index, reason_of(error))
        return ready

    def _find_new(self, ready: dict[int, _Ready]) -> dict[int, _Ready]:
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

    def _check_alone(self, one: _Ready) -> None:
        """Raises RequestError if the revision could never be published."""
        target = self._target
        gone.check_text(target.owner, target.name, self._withdrawn, one.sha256)
        resolve(one.draft, target.name, None, front_matter=False)

    def _publish(self, new: dict[int, _Ready], here: list[_Here]) -> list[int]:
        """Publish these revisions after those here; returns the indices of the published ones."""
        if not new:
            return []
        target, published = self._target, []
        times = _times(self._history.revisions)
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


def _read_here(target: Target) -> tuple[list[_Here], list[WithdrawnVersion]]:
    """All versions that were published here, and those that were withdrawn. Reads each record of
    the repo once. Raises as ``import_history``.
    """
    store, owner, name, *_ = target
    root = store.root
    listing = content.list_versions(root, owner, name)
    gone.check_open(root, owner, name, listing)
    withdrawn = read_parts(root, target.repo, listing.withdrawn).versions
    here = [
        _Here(one.version, one.remains.sha256, None, _published(one.remains)) for one in withdrawn
    ]
    for version in listing.versions:
        record = content.read_record(root, owner, name, version)
        parameters = _hash_parameters(record.parameters)
        here.append(_Here(version, record.sha256, parameters, _published(record)))
    return sorted(here, key=lambda one: one.version), withdrawn


def _published(record: VersionFile | Remains) -> tuple[int, str]:
    return record.ordinal or 0, record.published_at


def _number_revisions(revisions: Sequence[Revision]) -> list[int]:
    """The ordinal of each revision in an empty repo: its own number, if that is above those before
    it and not too high.
    """
    numbers, last = [], 0
    for revision in revisions:
        number = revision.number or 0
        last = max(last + 1, number if number <= NUMBER_MAX else 0)
        numbers.append(last)
    return numbers


def _match(
    ready: dict[int, _Ready], here: list[_Here], numbers: Sequence[int]
) -> dict[int, Version]:
    """The version here of each revision, by its index.

    An imported version's ordinal is never below its revision's number. So a version matches the
    newest revision of its text that this rule allows, and the next run finds the versions of the
    last one. Then other revisions of its text may match: those were published here by hand.
    """
    found: dict[int, Version] = {}
    _match_text(found, ready, here, numbers)
    taken = {*found.values()}
    left = {one.published: one.version for one in here if one.version not in taken}
    for index, one in ready.items():
        published = numbers[index], one.revision.published_at
        if index not in found and published in left:
            found[index] = left.pop(published)
    _match_text(found, ready, here, [0] * len(numbers))
    return found


def _match_text(
    found: dict[int, Version], ready: dict[int, _Ready], here: list[_Here], lowest: Sequence[int]
) -> None:
    """Add matches with the same text and an ordinal not below the revision's ``lowest``."""
    for withdrawn in (False, True):
        taken = {*found.values()}
        waiting: dict[tuple[str, bytes | None], list[int]] = {}
        for index, one in ready.items():
            if index not in found:
                key = one.sha256, None if withdrawn else one.parameters
                waiting.setdefault(key, []).append(index)
        for one in reversed(here):
            indices = waiting.get((one.sha256, one.parameters), [])
            if one.is_withdrawn == withdrawn and one.version not in taken:
                while indices and lowest[indices[-1]] > one.published[0]:
                    indices.pop()
                if indices:
                    found[indices.pop()] = one.version


def _make_ready(revision: Revision, title: str, target: Target) -> _Ready:
    """The revision as a draft. Raises RequestError as make_draft."""
    convention = revision.convention if target.convention == "auto" else target.convention
    if _count_chars(revision.prompt) > CONTENT_BYTES_MAX:  # as bytes, it has at least as many
        raise RequestError("content_too_large", f"larger than {CONTENT_BYTES_MAX:,} bytes")
    prompt, notes = _without_front_matter(revision.prompt)
    placed = turn_prompt(prompt, revision.fields, convention)
    text = placed.text
    if isinstance(prompt, str) and escape_markers(text) != text:
        text = escape_markers(text)
        notes.append("A line that reads as the beginning of a message is marked as text.")
    changelog, note = _tidy_changelog(revision.changelog)
    draft, more = target.make_draft(
        {"title": title} | placed.fields | {"content": text, "changelog": changelog}
    )
    return _Ready(
        revision,
        draft,
        [*revision.warnings, *notes, *placed.warnings, *note, *more],
        convention,
        placed,
        hashlib.sha256(text.encode()).hexdigest(),
        _hash_parameters(draft.parameters or {}),
    )


def _count_chars(prompt: str | list[Message]) -> int:
    return len(prompt) if isinstance(prompt, str) else sum(len(one.content) for one in prompt)


def _without_front_matter(prompt: str | list[Message]) -> tuple[str | list[Message], list[str]]:
    """A vendor's prompt, which has no front matter. A text that begins like front matter gets an
    empty line before it.
    """
    document = parse_document(prompt) if isinstance(prompt, str) else None
    if document and document.front is not None:
        note = "The text begins like front matter; an empty line before it keeps it as text."
        return f"\n{prompt}", [note]
    return prompt, document.warnings if document else []


def _tidy_changelog(text: str) -> tuple[str, list[str]]:
    tidy = without_controls(text)
    notes = [] if tidy == text else ["Replaced control characters in the changelog by spaces."]
    raw = tidy.encode("utf-8", "replace")
    if len(raw) > CHANGELOG_BYTES_MAX:
        tidy = raw[: CHANGELOG_BYTES_MAX - 4].decode("utf-8", "ignore") + "…"
        notes.append(f"Shortened the changelog to {CHANGELOG_BYTES_MAX:,} bytes.")
    return tidy, notes


def _hash_parameters(parameters: dict[str, Any]) -> bytes:
    # As JSON, which tells 1 from 1.0; the order of keys is ignored.
    return hashlib.sha256(msgspec.json.encode(parameters, order="deterministic")).digest()


def _times(revisions: Sequence[Revision]) -> list[datetime]:
    """The time of publication of each, never in the future. A revision without a time gets that of
    the next.
    """
    now = datetime.now(UTC)
    times, following = [], now
    for revision in reversed(revisions):
        if revision.published_at:
            following = min(datetime.fromisoformat(revision.published_at), now)
        times.append(following)
    return times[::-1]


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
