"""Reads the site's files and queries its index, for one call.

Notes the files that it read: an answer can be reused as long as these are unchanged.
"""

import asyncio
import os
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from builder.model.answers import (
    LabelMove,
    ListedVersion,
    ListMeta,
    Repo,
    RepoSummary,
    Tag,
)
from builder.model.answers import Version as VersionRecord
from builder.model.errors import RequestError
from builder.model.matching import version_file
from builder.model.names import Version
from builder.model.routes import BY_NAME, PAGE_SIZE
from builder.model.settings import Settings
from builder.search.queries import ListPart, ListQuery, Queries
from builder.search.query_thread import QueryThread
from builder.store.site import Mark, is_built, mark_of
from mcp_app.cursors import make_cursor, read_cursor

# Reading and decoding a file up to this size takes no noticeable time. Larger files are read in a
# thread.
QUICK_BYTES_MAX = 128 * 1024
SIMILAR_MAX = 3
# Clients that read a whole list before anything else get so many repos.
TOP_MAX = 200

T = TypeVar("T")


class _Single(msgspec.Struct, Generic[T]):
    data: T


class _Listed(msgspec.Struct, Generic[T]):
    data: list[T]
    meta: ListMeta


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder:
    return msgspec.json.Decoder(kind)


class Catalogue(NamedTuple):
    """The sources of the catalogue."""

    settings: Settings
    queries: QueryThread


class Reader:
    """One look at the catalogue.

    ``sources``: the files that the answer came from. None if it came from anything else, except
    from queries of the index of ``version``. Every method raises RequestError ``unavailable`` if
    the site is not built, or not whole.
    """

    def __init__(self, catalogue: Catalogue, version: object = None) -> None:
        self.settings = catalogue.settings
        self.sources: dict[str, Mark] | None = {}
        self._queries = catalogue.queries
        self._version = version

    async def repo(self, owner: str, name: str) -> Repo | None:
        found = await self._read("repo", _Single[Repo], owner=owner, name=name)
        return found and found.data

    async def version(self, owner: str, name: str, version: Version) -> VersionRecord | None:
        found = await self._read(
            "version", _Single[VersionRecord], owner=owner, name=name, version=version
        )
        return found and found.data

    async def labelled(self, owner: str, name: str, label: str) -> VersionRecord | None:
        """The version that a label names; None if there is none."""
        found = await self._read(
            "label", _Single[VersionRecord], owner=owner, name=name, label=label
        )
        return found and found.data

    async def labels(self, owner: str, name: str) -> list[str]:
        """The labels of a repo, sorted; empty if it never had one."""
        found = await self._read("labels", _Listed[LabelMove], owner=owner, name=name)
        return [one.label for one in found.data] if found else []

    async def versions(self, owner: str, name: str) -> list[ListedVersion]:
        """All versions of a repo that exist, newest first."""
        found = await self._read("versions", _Listed[ListedVersion], owner=owner, name=name)
        if found is None:
            raise not_whole()
        return found.data

    async def skill(self, owner: str, name: str) -> str | None:
        """The latest version of a repo as an Agent Skill; None if there is none."""
        data = await self._load(BY_NAME["skill"].file_for(owner=owner, name=name))
        try:
            return data and data.decode()
        except UnicodeDecodeError:
            raise not_whole() from None

    async def file(self, owner: str, name: str, version: str, path: str) -> bytes | None:
        """The bytes of a file of a version; None if it does not exist."""
        return await self._load(version_file(owner, name, version, path).file)

    def is_withdrawn(self, owner: str, name: str) -> bool:
        """True if the whole repo was withdrawn."""
        file = BY_NAME["withdrawn_repo"].file_for(owner=owner, name=name)
        return os.path.exists(f"{self.settings.out}/{file}")

    async def tags(self) -> list[Tag]:
        """The tags with counts, most used first."""
        found = await self._read("tags", _Listed[Tag])
        if found is None:
            raise self.missing()
        return found.data

    async def find(
        self, query: ListQuery, start: int, count: int
    ) -> tuple[list[RepoSummary], ListPart]:
        """``count`` summaries of a list from ``start``, and the data of the whole list.

        Raises RequestError ``tag_not_found``, or ``invalid_parameter`` for a query without words.
        """
        found: ListPart = await self._query(Queries.find, query, start, count)
        return [_decoder(RepoSummary).decode(row) for row in found.rows], found

    async def owners_beginning(self, prefix: str, count: int) -> list[str]:
        return await self._query(Queries.owners_beginning, prefix, count)

    async def similar(self, repo_id: str) -> list[str]:
        """Ids that are similar to ``repo_id``, which no repo has."""
        found = await self._query(Queries.similar, repo_id, SIMILAR_MAX)
        if repo_id in found:
            raise not_whole()
        return found

    def has_owner(self, owner: str) -> bool:
        return os.path.exists(f"{self.settings.out}/{BY_NAME['user'].file_for(owner=owner)}")

    def missing(self) -> RequestError:
        """The error for a missing file that every site has."""
        return (
            not_whole()
            if is_built(self.settings.out)
            else RequestError(
                "unavailable", "The catalogue is not built yet. Try again in a moment."
            )
        )

    async def _query(self, function: Any, *args: Any) -> Any:
        if self._version is None:
            self.sources = None
        if not is_built(self.settings.out):
            raise self.missing()
        try:
            return await self._queries.run(function, *args)
        except RequestError as error:
            if error.code == "unavailable":
                raise RequestError(
                    "unavailable",
                    "Search is temporarily unavailable. Try again in a moment.",
                ) from None
            raise

    async def _read(self, route: str, kind: Any, **params: object) -> Any:
        return await self._read_file(BY_NAME[route].file_for(**params), kind)

    async def _read_file(self, file: str, kind: Any) -> Any:
        data = await self._load(file)
        if data is None:
            return None
        decode = _decoder(kind).decode
        try:
            if len(data) > QUICK_BYTES_MAX:
                return await asyncio.to_thread(decode, data)
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise not_whole() from None

    async def _load(self, file: str) -> bytes | None:
        """The bytes of a file of the site; None if it does not exist."""
        path = f"{self.settings.out}/{file}"
        try:
            # Unbuffered, since it is read in one call.
            with open(path, "rb", buffering=0) as opened:
                # The mark is that of the opened file: the path may have a new file by now.
                status = os.fstat(opened.fileno())
                if status.st_size > QUICK_BYTES_MAX:
                    data = await asyncio.to_thread(opened.readall)
                else:
                    data = opened.readall()
        except FileNotFoundError:
            self.sources = None
            return None
        except OSError as error:
            raise not_whole() from error
        if self.sources is not None:
            self.sources[path] = mark_of(status)
        return data


def not_whole() -> RequestError:
    return RequestError(
        "unavailable",
        "A part of the catalogue cannot be read. It may be being copied: try again in a moment.",
    )


async def list_top(
    reader: Reader, cursor: str | None, count: int = TOP_MAX
) -> tuple[list[RepoSummary], dict[str, Any]]:
    """A page of the ``count`` most read repos, and ``nextCursor`` if another follows.

    Raises RequestError ``invalid_parameter`` for a cursor of another list.
    """
    list_key = ("top", count)
    start = read_cursor(cursor, *list_key) if cursor is not None else 0
    rows, found = await reader.find(ListQuery(), start, PAGE_SIZE)
    end = start + len(rows)
    if rows and end < min(found.total, count):
        return rows, {"nextCursor": make_cursor(end, *list_key)}
    return rows, {}
