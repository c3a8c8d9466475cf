"""One publication, from a well-formed draft to a version that outlasts a power cut.

Knows nothing of HTTP, of tokens, or of who may publish where. Does not build the site.
"""

import contextlib
import hashlib
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Struct

from builder.model import names, records
from builder.model.errors import Detail, RequestError, bounded, validation_failed
from builder.model.names import Version
from builder.model.records import Draft, OwnerFile, VersionFile
from builder.store import content
from publisher.write import durable
from publisher.write.fields import METADATA_FIELDS
from publisher.write.idempotency import IdempotencyKey, KeptAnswer
from publisher.write.quotas import QuotaKeeper
from publisher.write.resolve import Metadata, resolve


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


class _Plan(NamedTuple):
    """A publication before it is written; ``record`` is None where there is nothing to write."""

    published: Published
    kept: KeptAnswer
    record: bytes | None


def publish(
    content_root: str,
    owner: str,
    name: str,
    draft: Draft,
    *,
    publisher: str,
    idempotency_key: IdempotencyKey | None = None,
    quotas: QuotaKeeper | None = None,
    now: datetime | None = None,
    front_matter: bool = True,
    create_only: bool = False,
    sync: bool = True,
) -> Published:
    """Store the next version of a repo, or find that it says nothing new.

    A request that is sent again with its ``idempotency_key`` gets its first answer instead. A
    version that does not fit in ``quotas`` is RequestError ``validation_failed``. ``front_matter``
    as in resolve, ``sync`` as in durable.write_version. ``create_only``: add no version to a repo
    that has one, but raise RequestError ``not_owner``. Raises what the key does; RequestError:
    ``invalid_name``, ``name_reserved``, ``validation_failed``, ``base_version_mismatch``,
    ``version_conflict``, ``storage_unavailable``; and ContentError where the latest version
    is broken.
    """
    _check_names(owner, name, publisher)
    with durable.repo_lock(content_root, owner, name):
        kept = idempotency_key and idempotency_key.find()
        done = kept and _answer_again(content_root, owner, name, draft, kept, front_matter)
        if not done:
            plan = _plan(
                content_root, owner, name, draft, publisher, now, front_matter, create_only
            )
            done = plan.published
            with _room(quotas, plan):
                if idempotency_key:
                    idempotency_key.store(plan.kept)
                if plan.record:
                    durable.write_version(
                        content_root, owner, name, done.version, draft.content.encode(),
                        plan.record, sync=sync,
                        profile=None if done.previous_version else _new_profile(done),
                    )  # fmt: skip
                    return done
        if sync:
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
    create_only: bool = False,
) -> Published:
    """What ``publish`` would answer at this moment; writes nothing. Raises as it does."""
    _check_names(owner, name, publisher)
    return _plan(
        content_root, owner, name, draft, publisher, now, front_matter, create_only
    ).published


def _room(quotas: QuotaKeeper | None, plan: _Plan) -> contextlib.AbstractContextManager[None]:
    """Room for what is to be written, in the owner's quota."""
    if not (quotas and plan.record):
        return contextlib.nullcontext()
    is_new_repo = plan.kept.previous_version is None
    size = plan.published.size + len(plan.record)
    return quotas.room_for(plan.published.owner, is_new_repo=is_new_repo, size=size)


def _answer_again(
    root: str, owner: str, name: str, draft: Draft, kept: KeptAnswer, front_matter: bool
) -> Published | None:
    """The first answer to a request that is sent again. None: what was kept of it is not in the
    content, for it died before the commit point, or the version was taken away.
    """
    try:
        with open(f"{content.repo_path(root, owner, name)}/{kept.version}.json", "rb") as file:
            raw = file.read()
        record = msgspec.json.decode(raw, type=VersionFile)
    except (FileNotFoundError, ValueError):
        return None
    if kept.record_sha256 not in (None, hashlib.sha256(raw).digest()):
        return None
    # Warnings are of the request alone.
    _, warnings = resolve(draft, name, None, front_matter=front_matter)
    return _published(owner, name, kept, record, draft, warnings)


def _published(
    owner: str, name: str, kept: KeptAnswer, record: VersionFile, draft: Draft, warnings: list[str]
) -> Published:
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
        unchanged=kept.record_sha256 is None,
        warnings=bounded(warnings),
    )


def _check_names(owner: str, name: str, publisher: str) -> None:
    names.check_new_owner(owner)
    names.check_repo(name)
    names.check_owner(publisher)


def _plan(
    root: str, owner: str, name: str, draft: Draft, publisher: str, now: datetime | None,
    front_matter: bool, create_only: bool,
) -> _Plan:  # fmt: skip
    versions = content.list_versions(root, owner, name).versions
    latest = versions[-1] if versions else None
    previous = content.read_version(root, owner, name, latest) if latest else None
    metadata, warnings = resolve(draft, name, previous, front_matter=front_matter)
    _check_base(draft, latest)

    if previous and draft.content == previous[1] and _is_same(metadata, previous[0]):
        record, raw = previous[0], None
    elif previous and create_only:
        raise RequestError("not_owner", f"{owner}/{name} exists, and may not be updated.")
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
    kept = KeptAnswer(
        version=str(versions[-1]),
        previous_version=str(versions[-2]) if len(versions) > 1 else None,
        record_sha256=raw and hashlib.sha256(raw).digest(),
    )
    return _Plan(_published(owner, name, kept, record, draft, warnings), kept, raw)


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
            f"The prompt has {len(versions):,} versions, which is the limit. Publish under "
            "another name.",
        )
    return versions[-1].bump(bump)


def _new_profile(published: Published) -> bytes:
    return _render(OwnerFile(name=published.owner, joined_at=published.published_at))


def _render_record(record: VersionFile) -> bytes:
    raw = _render(record)
    if len(raw) > content.RECORD_BYTES_MAX:
        told = (
            f"the record would have {len(raw):,} bytes, but {content.RECORD_BYTES_MAX:,} is "
            "the limit"
        )
        raise validation_failed(Detail("parameters", told))
    return raw


def _render(record: Struct) -> bytes:
    """A record as a person reads and diffs it: two spaces, a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
