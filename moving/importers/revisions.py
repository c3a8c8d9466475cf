"""The revisions of a history as drafts of versions, and the versions here that they match."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from builder.model.answers import Message
from builder.model.errors import RequestError
from builder.model.names import Version
from builder.model.records import CHANGELOG_BYTES_MAX, CONTENT_BYTES_MAX, Remains, VersionFile
from builder.model.request_bodies import Draft
from builder.model.withdrawn import WithdrawnVersion
from builder.store import content
from builder.store.withdrawn_files import read_parts
from builder.text.messages import escape_markers
from builder.text.prompts import parse_document
from moving.importers.items import Revision
from moving.importers.placeholding import Placed, turn_prompt
from publisher.write import gone
from publisher.write.durable import FolderStore
from publisher.write.fields import without_controls

# A revision with a larger number gets another one: numbers above it must remain for later versions.
NUMBER_MAX = 1_000_000


class Target(NamedTuple):
    """The destination of a history, and how to publish it. ``source``: the name of its origin for
    messages.

    ``make_draft`` takes the fields of a publication, and returns the draft and warnings; it raises
    RequestError. ``create_only``: change no existing repo. ``onto_others``: the repo may have other
    versions alone.
    """

    store: FolderStore
    owner: str
    name: str
    source: str
    make_draft: Callable[[dict[str, Any]], tuple[Draft, list[str]]]
    convention: str
    create_only: bool
    onto_others: bool
    dry_run: bool

    @property
    def repo(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def note(self) -> str:
        """The note of label moves by imports, which identifies them later."""
        return f"Imported from {self.source}"


class Ready(NamedTuple):
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


class Here(NamedTuple):
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


def read_here(target: Target) -> tuple[list[Here], list[WithdrawnVersion]]:
    """All versions that were published here, and those that were withdrawn. Reads each record of
    the repo once. Raises as ``import_history``.
    """
    store, owner, name, *_ = target
    root = store.root
    listing = content.list_versions(root, owner, name)
    gone.check_open(root, owner, name, listing)
    withdrawn = read_parts(root, target.repo, listing.withdrawn).versions
    here = [
        Here(one.version, one.remains.sha256, None, _published(one.remains)) for one in withdrawn
    ]
    for version in listing.versions:
        record = content.read_record(root, owner, name, version)
        parameters = _hash_parameters(record.parameters)
        here.append(Here(version, record.sha256, parameters, _published(record)))
    return sorted(here, key=lambda one: one.version), withdrawn


def _published(record: VersionFile | Remains) -> tuple[int, str]:
    return record.ordinal or 0, record.published_at


def number_revisions(revisions: Sequence[Revision]) -> list[int]:
    """The ordinal of each revision in an empty repo: its own number, if that is above those before
    it and not too high.
    """
    numbers, last = [], 0
    for revision in revisions:
        number = revision.number or 0
        last = max(last + 1, number if number <= NUMBER_MAX else 0)
        numbers.append(last)
    return numbers


def match_here(
    ready: dict[int, Ready], here: list[Here], numbers: Sequence[int]
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
    found: dict[int, Version], ready: dict[int, Ready], here: list[Here], lowest: Sequence[int]
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


def make_ready(revision: Revision, title: str, target: Target) -> Ready:
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
    return Ready(
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


def times_of(revisions: Sequence[Revision]) -> list[datetime]:
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
