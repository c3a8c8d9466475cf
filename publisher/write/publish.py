"""One publication, from a well-formed draft to a version that outlasts a power cut.

Knows nothing of HTTP, tokens or permissions. Does not build the site.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from builder.model import names, records
from builder.model.content_tree import RECORD
from builder.model.errors import ContentError, Detail, RequestError, bounded, validation_failed
from builder.model.labels import NO_LABELS, Labels, fold
from builder.model.names import Version
from builder.model.records import METADATA, OwnerFile, Source, StoredFile, VersionFile
from builder.model.request_bodies import Draft
from builder.store import content
from publisher.write import gone, labels
from publisher.write.decision import USUAL, Decision, Terms, decide
from publisher.write.durable import FolderStore, NewVersion, render
from publisher.write.folders import VersionFolder, tell_kept
from publisher.write.idempotency import KeptAnswer
from publisher.write.moves import read_moves
from publisher.write.next_version import NO_STEP, Step, step_after, take_step
from publisher.write.quotas import Quotas
from publisher.write.repo import Repo
from publisher.write.resolve import Metadata, resolve

T = TypeVar("T")


class Published(Struct, frozen=True):
    """The result of a publication. ``unchanged``: the latest version already said the same.
    ``labels``: those in the request, which now name this version. ``files`` and
    ``content_sha256``: as in the version's record.
    """

    owner: str
    name: str
    version: str
    previous_version: str | None
    changelog: str
    sha256: str
    size: int
    publisher: str
    published_at: str
    unchanged: bool
    warnings: list[str]
    labels: list[str] | UnsetType = UNSET
    files: list[StoredFile] | UnsetType = UNSET
    content_sha256: str | UnsetType = UNSET

    @property
    def what(self) -> str:
        """The publication, for people: ``ann/story 1.2.0 with production``."""
        labels = f" with {', '.join(self.labels)}" if self.labels else ""
        return f"{self.owner}/{self.name} {self.version}{labels}"


class Preview(NamedTuple):
    """A publication of ``folder`` that is decided, and not yet carried out. ``previous`` is the
    latest version's record and text, and ``step`` leads from it to the new ``metadata``. Both are
    None before the first version.
    """

    decision: Decision[Published]
    folder: VersionFolder
    metadata: Metadata
    previous: tuple[VersionFile, str] | None
    step: Step | None


class Past(NamedTuple):
    """A version that was published elsewhere ``at`` a moment. ``ordinal`` is its number there, or
    0. It is used unless the next number here is higher.
    """

    draft: Draft
    at: datetime
    ordinal: int = 0


def publish(
    store: FolderStore,
    owner: str,
    name: str,
    draft: Draft,
    *,
    publisher: str,
    terms: Terms = USUAL,
) -> Published:
    """Stores the next version of a repo with the labels that move to it. Where the draft says
    nothing new, only the labels move to the latest version, one after the other.

    Raises what the idempotency key of ``terms`` raises; RequestError: ``invalid_name``,
    ``name_reserved``, ``validation_failed``, ``not_owner``, ``base_version_mismatch``,
    ``version_conflict``, ``version_withdrawn``, ``storage_unavailable``; and ContentError where a
    record of the repo or its latest text is broken.
    """
    _check_names(owner, name, publisher)

    def make() -> Decision[Published]:
        repo = Repo(store.root, owner, name)
        return _decide(repo, draft, publisher, terms).decision

    def find_again(kept: KeptAnswer) -> Published | None:
        return _answer_again(store.root, owner, name, draft, kept, terms.front_matter)

    return decide(store, owner, name, make, find_again, terms)


def read_unlocked(read: Callable[[], T]) -> T:
    """Returns what a function reads without a lock. Calls it again if a withdrawal may have removed
    files between two of its reads. Raises as the function does.
    """
    try:
        return read()
    except ContentError:
        return read()


def preview(
    content_root: str,
    owner: str,
    name: str,
    draft: Draft,
    *,
    publisher: str,
    terms: Terms = USUAL,
) -> Preview:
    """Returns what ``publish`` would decide at this moment; writes nothing. Raises as it does."""
    _check_names(owner, name, publisher)
    found = read_unlocked(lambda: _decide(Repo(content_root, owner, name), draft, publisher, terms))
    if terms.quotas and any(found.decision.needs):
        terms.quotas.check(owner, found.decision.needs)
    return found


def publish_past(
    store: FolderStore,
    owner: str,
    name: str,
    past: Iterable[Past],
    *,
    after: Version | None,
    publisher: str,
    dry_run: bool = False,
) -> Iterator[Published | RequestError]:
    """Stores versions that were published elsewhere, in their order. Yields the result of each, or
    the error that refused it.

    The metadata of each version is complete, so none is inherited. Files are inherited as in
    ``publish``. A version that equals the one before it is stored all the same. Front matter is
    left alone.

    They come ``after`` the latest version that the caller knows of. The repo is read once, and
    locked until the last version. Nothing waits for the disk: the caller calls ``os.sync()``.
    ``dry_run`` writes nothing, and yields what would happen. Raises as ``publish`` does where no
    version can be stored, and ``version_conflict`` if another process has added one.
    """
    _check_names(owner, name, publisher)
    locked = contextlib.nullcontext() if dry_run else store.repo_lock(owner, name)
    with locked:
        repo = Repo(store.root, owner, name)
        if repo.latest != after:
            raise RequestError(
                "version_conflict",
                f"Another process changed {owner}/{name} at the same time. Run the command again.",
            )
        for one in past:
            try:
                metadata, warnings = resolve(one.draft, name, None, front_matter=False)
                stamp = _Stamp(publisher, records.format_time(one.at), ordinal=one.ordinal)
                folder = repo.folder_of(one.draft)
                decision, record = _decide_version(
                    repo, one.draft, folder, metadata, warnings, stamp
                )
            except RequestError as error:
                yield error
                continue
            if not dry_run:
                decision.write(store, False)
            repo.add(Version.parse(decision.answer.version), record, one.draft.content, folder)
            yield decision.answer
        if not (repo.versions or dry_run):
            store.remove_empty(owner, name)


def _answer_again(
    root: str, owner: str, name: str, draft: Draft, kept: KeptAnswer, front_matter: bool
) -> Published | None:
    """Returns the first answer to a repeated request, as ``find_again`` of ``decide``; None where
    the version was withdrawn.
    """
    try:
        folder = content.repo_path(root, owner, name)
        with open(f"{folder}/{RECORD.file(kept.version)}", "rb") as file:
            raw = file.read()
        record = msgspec.json.decode(raw, type=VersionFile)
    except (FileNotFoundError, ValueError):
        return None
    if kept.record_sha256 not in (None, hashlib.sha256(raw).digest()):
        return None
    _, warnings = resolve(draft, name, None, front_matter=front_matter)
    if kept.writes and kept.previous_version:
        with contextlib.suppress(ContentError):  # withdrawn since
            before = Version.parse(kept.previous_version)
            previous = content.read_version(root, owner, name, before)
            step = step_after(previous, record, draft.content)
            warnings = take_step(draft, step)[1] + warnings
    return _published(owner, name, kept, record, draft, warnings)


def _published(
    owner: str, name: str, kept: KeptAnswer, record: VersionFile, draft: Draft, warnings: list[str]
) -> Published:
    if record.files and draft.files is UNSET:
        warnings = [*warnings, tell_kept(record.files)]
    labels = sorted(draft.labels) or UNSET
    if labels and not kept.writes:
        # A job that runs again must not undo a rollback.
        warnings = [
            *warnings,
            f"{kept.version} is not a new version, so no label was moved. To move "
            f"{', '.join(labels)}, change the label itself.",
        ]
        labels = UNSET
    return Published(
        owner=owner,
        name=name,
        version=kept.version,
        previous_version=kept.previous_version,
        changelog=record.changelog,
        sha256=record.sha256,
        size=len(draft.content.encode()),
        publisher=record.publisher,
        published_at=record.published_at,
        unchanged=not kept.writes,
        warnings=bounded(warnings),
        labels=labels,
        files=record.files,
        content_sha256=record.content_sha256,
    )


def _check_names(owner: str, name: str, publisher: str) -> None:
    names.check_possible_owner(owner)
    names.check_repo(name)
    names.check_owner(publisher)


class _Stamp(NamedTuple):
    """The facts about a publication that its record keeps. ``ordinal`` is its number, unless the
    next one is higher.
    """

    publisher: str
    at: str
    source: Source | None = None
    ordinal: int = 0


def _decide(repo: Repo, draft: Draft, publisher: str, terms: Terms) -> Preview:
    previous, listing = repo.previous, repo.listing
    metadata, warnings = resolve(draft, repo.name, previous, front_matter=terms.front_matter)
    _check_base(draft, repo.latest)

    moves = read_moves(repo.root, repo.owner, repo.name, listing) if draft.labels else []
    there = fold(moves)
    moment = labels.time_of_next(there, terms.now)
    folder = repo.folder_of(draft)
    if (
        previous
        and folder.whole_sha256 == previous[0].whole_sha256
        and _is_same(metadata, previous[0])
    ):
        before = repo.versions[-2] if len(repo.versions) > 1 else None
        kept = _kept(repo.latest, before, None)
        published = _published(repo.owner, repo.name, kept, previous[0], draft, warnings)
        return Preview(Decision(published, kept, None), folder, metadata, previous, NO_STEP)
    if previous and terms.create_only:
        where = f"{repo.owner}/{repo.name}"
        raise RequestError("not_owner", f"{where} exists, and may not be updated.")
    step = step_after(previous, metadata, draft.content)
    bump, breaking = take_step(draft, step)
    draft, warnings = structs.replace(draft, bump=bump), breaking + warnings
    stamp = _Stamp(publisher, moment, terms.source)
    decision, _ = _decide_version(repo, draft, folder, metadata, warnings, stamp, there)
    return Preview(decision, folder, metadata, previous, step)


def _decide_version(
    repo: Repo,
    draft: Draft,
    folder: VersionFolder,
    metadata: Metadata,
    warnings: list[str],
    stamp: _Stamp,
    there: Labels = NO_LABELS,
) -> tuple[Decision[Published], VersionFile]:
    """Returns the decision to store the next version, and its record."""
    hashes = folder.text_sha256, folder.content_sha256
    gone.check_text(repo.owner, repo.name, repo.withdrawn, *hashes)
    for tag in metadata.tags:
        if not repo.previous or tag not in repo.previous[0].tags:
            names.check_new("tag", tag, "tags")
    labels.check_room(there, draft.labels, 0, "labels")
    version = repo.next_version(draft.bump)
    if (ordinal := max(repo.next_ordinal, stamp.ordinal)) > names.ORDINAL_MAX:
        limit = f"The prompt has the ordinal {names.ORDINAL_MAX:,}, which is the limit."
        raise RequestError("version_conflict", f"{limit} Publish under another name.")
    before = [one.remains.published_at for one in repo.withdrawn]
    before += [repo.previous[0].published_at] if repo.previous else []
    record = VersionFile(
        publisher=stamp.publisher,
        # A clock that was set back must not reverse the order of the history.
        published_at=max([stamp.at, *before]),
        sha256=folder.text_sha256,
        changelog=draft.changelog,
        **metadata._asdict(),
        labels=draft.labels or UNSET,
        label_number=there.next_number if draft.labels else UNSET,
        ordinal=ordinal,
        source=stamp.source or UNSET,
        files=folder.stored or UNSET,
        content_sha256=folder.content_sha256,
    )
    raw = _render(record)
    kept = _kept(version, repo.latest, raw)
    published = _published(repo.owner, repo.name, kept, record, draft, warnings)
    needs = Quotas(int(repo.is_new), 1, published.size + len(raw) + folder.size)

    def write(store: FolderStore, sync: bool) -> None:
        first = OwnerFile(name=published.owner, joined_at=published.published_at)
        profile = None if kept.previous_version else render(first)
        new = NewVersion(draft.content.encode(), raw, folder.files)
        store.write_version(repo.owner, repo.name, str(version), new, profile=profile, sync=sync)

    return Decision(published, kept, write, needs), record


def _render(record: VersionFile) -> bytes:
    """Raises RequestError ``validation_failed`` for a record that is too long."""
    raw = render(record)
    if len(raw) > RECORD.bytes_max:
        message = f"the record would have {len(raw):,} bytes, but {RECORD.bytes_max:,} is the limit"
        raise validation_failed(Detail("parameters", message))
    return raw


def _kept(version: Version, previous: Version | None, record: bytes | None) -> KeptAnswer:
    """Returns what is kept of a publication that writes ``record``, or nothing."""
    return KeptAnswer(
        version=str(version),
        previous_version=previous and str(previous),
        record_sha256=record and hashlib.sha256(record).digest(),
    )


def _check_base(draft: Draft, latest: Version | None) -> None:
    if draft.base_version is UNSET or draft.base_version == str(latest):
        return
    there_is = f"the latest version is {latest}" if latest else "the prompt has no version yet"
    raise RequestError(
        "base_version_mismatch",
        f"base_version is {draft.base_version}, but {there_is}. Merge your change into it, "
        "then publish again.",
        [Detail("base_version", str(latest))] if latest else None,
    )


def _is_same(metadata: Metadata, record: VersionFile) -> bool:
    # Compared as JSON, where 1, 1.0 and true differ and the order of keys does not matter.
    return _encode_fields(metadata) == _encode_fields(record)


def _encode_fields(values: Metadata | VersionFile) -> bytes:
    fields = [getattr(values, field) for field in METADATA]
    return msgspec.json.encode(fields, order="deterministic")
