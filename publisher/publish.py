"""One publication, from a well-formed draft to a version that outlasts a power cut.

Knows nothing of HTTP, of tokens, or of who may publish where. Does not build the site.
"""

import hashlib
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import msgspec
from msgspec import UNSET, Struct

from builder import content, names, records
from builder.errors import Detail, RequestError
from builder.names import Version
from builder.records import Draft, OwnerFile, VersionFile
from publisher import durable
from publisher.fields import METADATA_FIELDS, validation_failed
from publisher.resolve import Metadata, resolve


class Published(Struct, frozen=True):
    """What a publication came to. ``unchanged``: this is the latest version as it was."""

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


class Memory(Protocol):
    """What one request came to when it was sent before. Used under the repo's lock."""

    def recall(self) -> Published | None:
        """What the request has published already; None: go on and publish."""

    def remember(self, published: Published, record: bytes | None) -> None:
        """Keep for good what the request is about to publish, before any of it is written.

        ``record`` is what the version's record will be; None where nothing will be written.
        """


class _Plan(NamedTuple):
    """A publication before it is written; ``record`` is None where there is nothing to write."""

    published: Published
    record: bytes | None


def publish(
    content_root: str,
    owner: str,
    name: str,
    draft: Draft,
    *,
    publisher: str,
    memory: Memory | None = None,
    now: datetime | None = None,
    front_matter: bool = True,
    sync: bool = True,
) -> Published:
    """Store the next version of a repo, or find that it says nothing new.

    ``memory`` makes a repeated request get its first answer instead. ``front_matter`` as in
    resolve, ``sync`` as in durable.write_version. Raises what ``memory`` does; RequestError:
    ``invalid_name``, ``name_reserved``, ``validation_failed``, ``base_version_mismatch``,
    ``version_conflict``, ``storage_unavailable``; and ContentError where the latest version
    is broken.
    """
    _check_names(owner, name, publisher)
    with durable.repo_lock(content_root, owner, name):
        done, record = (memory and memory.recall()), None
        if not done:
            done, record = _plan(content_root, owner, name, draft, publisher, now, front_matter)
            if memory:
                memory.remember(done, record)
        if record:
            durable.write_version(
                content_root, owner, name, done.version, draft.content.encode(), record,
                profile=None if done.previous_version else _new_profile(done), sync=sync,
            )  # fmt: skip
        elif sync:
            durable.sync_repo(content_root, owner, name)
    return done


def preview(
    content_root: str,
    owner: str,
    name: str,
    draft: Draft,
    *,
    publisher: str,
    now: datetime | None = None,
    front_matter: bool = True,
) -> Published:
    """What ``publish`` would answer at this moment; writes nothing. Raises as it does."""
    _check_names(owner, name, publisher)
    return _plan(content_root, owner, name, draft, publisher, now, front_matter).published


def _check_names(owner: str, name: str, publisher: str) -> None:
    names.check_new_owner(owner)
    names.check_repo(name)
    names.check_owner(publisher)


def _plan(
    root: str, owner: str, name: str, draft: Draft, publisher: str, now: datetime | None,
    front_matter: bool,
) -> _Plan:  # fmt: skip
    versions = content.list_versions(root, owner, name).versions
    latest = versions[-1] if versions else None
    previous = content.read_version(root, owner, name, latest) if latest else None
    metadata, warnings = resolve(draft, name, previous, front_matter=front_matter)
    _check_base(draft, latest)

    if previous and draft.content == previous[1] and _is_same(metadata, previous[0]):
        record, raw = previous[0], None
    else:
        moment = records.format_time(now or datetime.now(UTC))
        versions = [*versions, _next_version(versions, draft.bump)]
        record = VersionFile(
            publisher=publisher,
            # A clock that was set back must not turn the history around.
            published_at=max(moment, previous[0].published_at) if previous else moment,
            sha256=hashlib.sha256(draft.content.encode()).hexdigest(),
            changelog=draft.changelog,
            **metadata._asdict(),
        )
        raw = _render_record(record)
    published = Published(
        owner=owner,
        name=name,
        version=str(versions[-1]),
        previous_version=str(versions[-2]) if len(versions) > 1 else None,
        changelog=record.changelog,
        sha256=record.sha256,
        size=len(draft.content.encode()),
        publisher=record.publisher,
        published_at=record.published_at,
        unchanged=raw is None,
        warnings=warnings,
    )
    return _Plan(published, raw)


def _check_base(draft: Draft, latest: Version | None) -> None:
    if draft.base_version is UNSET or draft.base_version == str(latest):
        return
    there_is = f"the latest version is {latest}" if latest else "the repo has no version yet"
    raise RequestError(
        "base_version_mismatch",
        f"base_version is {draft.base_version}, but {there_is}. "
        "Look at it, bring your change into it, and publish again.",
        [Detail("base_version", str(latest))] if latest else None,
    )


def _is_same(metadata: Metadata, record: VersionFile) -> bool:
    # As JSON, where 1, 1.0 and true are not the same, and the order of keys says nothing.
    return _encode_fields(metadata) == _encode_fields(record)


def _encode_fields(values: Metadata | VersionFile) -> bytes:
    fields = [getattr(values, field) for field in METADATA_FIELDS]
    return msgspec.json.encode(fields, order="deterministic")


def _next_version(versions: list[Version], bump: str) -> Version:
    if not versions:
        return names.FIRST_VERSION
    if len(versions) >= names.VERSIONS_PER_REPO_MAX:
        raise RequestError(
            "version_conflict",
            f"The repo has {len(versions):,} versions, which is the most; publish to another.",
        )
    return versions[-1].bump(bump)


def _new_profile(published: Published) -> bytes:
    return _render(OwnerFile(name=published.owner, joined_at=published.published_at))


def _render_record(record: VersionFile) -> bytes:
    raw = _render(record)
    if len(raw) > content.RECORD_BYTES_MAX:
        told = f"the record gets {len(raw):,} bytes; {content.RECORD_BYTES_MAX:,} is the most"
        raise validation_failed(Detail("parameters", told))
    return raw


def _render(record: Struct) -> bytes:
    """A record as a person reads and diffs it: two spaces, a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
