"""Computes the public records from the stored ones. Pure: no files, no clock.

A repo *is* its versions: its own fields come from the latest one.
"""

import math
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import astuple

from builder import installed_version
from builder.model import answers, records
from builder.model.envelopes import json_bytes
from builder.model.kinds import PROMPT, kind_of
from builder.model.labels import NO_LABELS, Labels
from builder.model.links import Links
from builder.model.matching import version_file
from builder.model.names import Version
from builder.model.records import DAY_SECONDS, OwnerFile, VersionFile
from builder.model.routes import BY_NAME
from builder.model.service_urls import PUBLISH_URL
from builder.model.settings import Settings
from builder.model.withdrawn import WithdrawnVersion, public
from builder.text.messages import parse_messages

PULL_WEIGHT = 1
PUBLICATION_WEIGHT = 5
HALF_LIFE_SECONDS = 7 * DAY_SECONDS
# The most versions on a page with, and without, a prompt, and in a feed; older ones are left out.
VERSIONS_WITH_PROMPT_MAX = 4
VERSIONS_SHOWN_MAX = 200
VERSIONS_IN_FEED_MAX = 50

# The fields of a version's record that readers get as they are.
_RECORDED = (
    "title description tags variables parameters license sha256 changelog content_sha256".split()
)
_REMAINS = ("publisher", "published_at", "sha256", "size")

Part = TypeVar("Part", answers.ListedVersion, answers.RepoSummary)


class Stored(NamedTuple):
    """One version as stored in the content tree."""

    owner: str
    name: str
    version: Version
    record: VersionFile
    content: str
    body: str


def version_record(
    stored: Stored, previous: Version | None, ordinal: int, links: Links
) -> answers.Version:
    """The version on its own; ``previous`` is the one below it in version order, ``ordinal`` its
    number of publication.
    """
    at = {"owner": stored.owner, "name": stored.name, "version": str(stored.version)}
    return answers.Version(
        version=str(stored.version),
        previous=str(previous) if previous else None,
        publisher=stored.record.publisher,
        published_at=stored.record.published_at,
        raw_url=links.file("version_raw", **at),
        diff_url=links.file("diff", **at) if previous else None,
        ordinal=ordinal,
        source=stored.record.source or None,
        **_text_fields(stored, links),
    )


def _text_fields(stored: Stored, links: Links) -> dict[str, Any]:
    """The fields that a version has on its own and as the latest of its repo."""
    return {field: getattr(stored.record, field) for field in _RECORDED} | {
        "owner": stored.owner,
        "name": stored.name,
        "content": stored.content,
        "body": stored.body,
        "messages": parse_messages(stored.body),
        "size": len(stored.content.encode()),
        "files": _files(stored, links),
    }


def _files(stored: Stored, links: Links) -> list[answers.File] | UnsetType:
    """The files of a version with their addresses; UNSET if it has none."""
    at = {"owner": stored.owner, "name": stored.name, "version": stored.version}
    listed = [
        answers.File(*astuple(one), f"{links.base_url}/{version_file(**at, path=one.path).file}")
        for one in stored.record.files or ()
    ]
    return listed or UNSET


def version_entry(version: answers.Version) -> answers.ListedVersion:
    """The version in its repo's list."""
    return _part(answers.ListedVersion, version)


def withdrawn_entry(
    owner: str,
    name: str,
    one: WithdrawnVersion,
    previous: Version | None,
    ordinal: int,
    links: Links,
) -> answers.ListedVersion:
    """A withdrawn version in its repo's list; ``previous`` and ``ordinal`` as in
    ``version_record``.
    """
    at = {"owner": owner, "name": name, "version": str(one.version)}
    return answers.ListedVersion(
        version=str(one.version),
        previous=str(previous) if previous else None,
        changelog="",
        **{field: getattr(one.remains, field) for field in _REMAINS},
        raw_url=links.file("version_raw", **at),
        diff_url=None,
        ordinal=ordinal,
        source=None,
        withdrawn=public(one.withdrawal),
    )


class _KnownVersion(answers.ListedVersion, gc=False):
    """An entry that this program has written, so reading it back checks no patterns."""

    version: str
    previous: str | None
    publisher: str
    published_at: str
    sha256: str


_decode_entry = msgspec.json.Decoder(_KnownVersion).decode


class Entries(NamedTuple):
    """The versions of a repo as they are listed, newest first: of ``count``, the ``newest``, and
    the first of those that are ``readable``, not withdrawn; ``listed`` has the JSON of all.
    ``gone``: the number of withdrawn ones.
    """

    count: int
    gone: int
    newest: list[answers.ListedVersion]
    readable: list[answers.ListedVersion]
    listed: list[Raw]


def entries_of(rows: dict[str, bytes], gone: int, labels: Labels) -> Entries:
    """The entries, from their JSON without labels, oldest first. Decodes no more than are shown,
    because a repo may have thousands.
    """
    decoded = map(_decode_entry, reversed(rows.values()))
    newest = [*islice(decoded, VERSIONS_SHOWN_MAX)]
    readable = (one for one in chain(newest, decoded) if not one.withdrawn)
    if labels.history:
        rows = {name: row[:-1] + b',"labels":[]}' for name, row in rows.items()}
        for name, shown in labels.by_version().items():
            rows[name] = rows[name][:-3] + json_bytes(shown) + b"}"
    listed = [*map(Raw, reversed(rows.values()))]
    return Entries(len(rows), gone, newest, [*islice(readable, VERSIONS_IN_FEED_MAX)], listed)


def labelled_version(version: answers.Version, label: str, moved_at: str) -> answers.Version:
    """The version as the one that a label names."""
    return answers.LabelledVersion(*astuple(version), label=label, moved_at=moved_at)


def repo_record(
    latest: Stored,
    versions_count: int,
    created_at: str,
    pulls: int | None,
    links: Links,
    labels: Labels = NO_LABELS,
) -> answers.Repo:
    """The repo on its own; ``versions_count`` includes withdrawn ones."""
    at = {"owner": latest.owner, "name": latest.name}
    return answers.Repo(
        latest_version=str(latest.version),
        versions_count=versions_count,
        pulls=pulls,
        created_at=created_at,
        updated_at=latest.record.published_at,
        url=links.page("repo_page", **at),
        raw_url=links.file("raw", **at),
        versions_url=links.file("versions", **at),
        labels=labels.versions() if labels.history else UNSET,
        **_text_fields(latest, links),
    )


def repo_summary(repo: answers.Repo) -> answers.RepoSummary:
    """The repo in a list."""
    return _part(answers.RepoSummary, repo)


def catalogue_line(repo: answers.Repo, words: str) -> answers.CatalogueLine:
    """The repo in ``catalogue.jsonl``. ``words`` come from ``builder.search.telling_words``."""
    fields = (getattr(repo, field) for field in answers.CatalogueLine.__struct_fields__[:-3])
    kind = kind_of(repo)
    labels = sorted(repo.labels or ()) or UNSET
    return answers.CatalogueLine(*fields, words, UNSET if kind is PROMPT else kind.key[1:], labels)


def _part(kind: type[Part], whole: answers.Version | answers.Repo) -> Part:
    # Fields that the whole record lacks are optional.
    fields = kind.__struct_fields__
    return kind(**{field: getattr(whole, field) for field in fields if hasattr(whole, field)})


def user_record(
    handle: str,
    profile: OwnerFile | None,
    first_repo: int | None,
    repos_count: int,
    pulls: int | None,
) -> answers.User:
    """An owner's profile, without the repos; ``pulls`` are the sum over all repos.

    If the owner has no profile, the time of the first repo (epoch seconds) stands for
    ``joined_at``.
    """
    if not profile:
        profile = OwnerFile(name=handle, joined_at=records.time_of(first_repo or 0))
    fields = {field: getattr(profile, field) for field in ("name", "bio", "url", "joined_at")}
    counts = {"repos_count": repos_count, "pulls": pulls, "repos": []}
    return answers.User(handle=handle, kind=profile.kind or "person", **fields, **counts)


def epoch_seconds(time: str) -> int:
    """Seconds since 1970 of a record's time."""
    return int(datetime.fromisoformat(time).timestamp())


def trend(publications: Iterable[int], pulls: Iterable[tuple[int, int]] = ()) -> int:
    """A score of a repo's activity; higher is more active.

    ``publications``: their times in epoch seconds, at least one. ``pulls``: as
    ``PullCounts.by_day``; they count at the start of their day. Each event's weight doubles with
    every half-life since the epoch, instead of halving with its age. So the order is the same at
    any time of build, and changes only when something happened. The logarithm keeps it small; an
    integer of millionths keeps it the same on every machine.
    """
    weights: Counter[int] = Counter()
    for seconds in publications:
        weights[seconds] += PUBLICATION_WEIGHT
    for day, count in pulls:
        weights[day * DAY_SECONDS] += count * PULL_WEIGHT
    # Relative to the newest event, so that no power is above one. fsum is exact in any order.
    newest = max(weights)
    total = math.fsum(
        weight * 2.0 ** ((seconds - newest) / HALF_LIFE_SECONDS)
        for seconds, weight in weights.items()
    )
    return round((newest / HALF_LIFE_SECONDS + math.log2(total)) * 1e6)


def hub_record(settings: Settings, repos_count: int, serial: int) -> answers.Hub:
    """The record of this service; ``serial`` is the count of publications."""
    return answers.Hub(
        name=settings.site_name,
        base_url=settings.base_url,
        api_version="v1",
        publish_url=settings.base_url + PUBLISH_URL,
        queries=settings.queries,
        search=settings.search,
        serial=serial,
        repos_count=repos_count,
        paths=answers.Paths(
            **{field: "/" + BY_NAME[field].file for field in answers.Paths.__struct_fields__}
        ),
        private=settings.private,
        version=installed_version(),
        file_bytes=settings.file_bytes,
    )
