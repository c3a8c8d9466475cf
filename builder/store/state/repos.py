"""Repos: what the next build and lists need of each; and of which tags and totals it is a part."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from builder.store.database import DamageError

ORDER_BY = {
    "top": "pulls DESC, updated DESC, id",
    "trending": "trend DESC, id",
    "new": "created DESC, id",
    "updated": "updated DESC, id",
}

# What fits beside a time in 64 bits: repos with more pulls are equal in searches by `top`.
_PULLS_MAX = 2**24 - 1
_TIMES = 2**39


class RepoRow(NamedTuple):
    """A row of the table ``repo``, without its key."""

    id: str
    owner: str
    mark: str
    names: str
    versions: bytes
    labels: bytes
    withdrawn: str
    versions_count: int
    pulls: int
    updated: int
    created: int
    trend: int
    tags: str
    digest: bytes
    search_digest: bytes
    summary: bytes
    card: bytes
    line: bytes
    langfuse: bytes


def order_values(row: RepoRow) -> dict[str, int]:
    """By order of lists: a number within 64 bits. Repos with greater ones come first, and those
    with equal ones by owner/name, as in ORDER_BY.
    """
    top = min(row.pulls, _PULLS_MAX) * _TIMES + row.updated
    return {"top": top, "trending": row.trend, "new": row.created}


_UPSERT = (
    f"INSERT INTO repo ({', '.join(RepoRow._fields)}) "
    f"VALUES ({', '.join('?' * len(RepoRow._fields))}) "
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{field} = excluded.{field}" for field in RepoRow._fields[1:])
    + " RETURNING key"
)


def digest_of(*parts: bytes) -> bytes:
    """As in the columns ``digest`` and ``search_digest``."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=12).digest()


class Repos:
    """The table ``repo``; writes ``tag`` and ``total``, too."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def marks(self) -> dict[str, str]:
        """The remembered mark of each repo, by id."""
        return dict(self._db.execute("SELECT id, mark FROM repo"))

    def get(self, repo_id: str) -> RepoRow | None:
        """What is remembered of a repo."""
        found = self._db.execute(
            f"SELECT {', '.join(RepoRow._fields)} FROM repo WHERE id = ?", (repo_id,)
        ).fetchone()
        return RepoRow(*found) if found else None

    def put(self, row: RepoRow, old: RepoRow | None) -> None:
        """Remember a repo, instead of what was remembered of it (``old``)."""
        (key,) = self._db.execute(_UPSERT, row).fetchone()
        if old:
            self._untag(old, key)
        copied = (key, row.id, row.digest, row.pulls, row.updated, row.created, row.trend)
        self._db.executemany(
            "INSERT INTO tag VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(tag, *copied) for tag in row.tags.split()],
        )
        self._count(row, 1)

    def remove(self, old: RepoRow) -> None:
        (key,) = self._db.execute(
            "DELETE FROM repo WHERE id = ? RETURNING key", (old.id,)
        ).fetchone()
        self._untag(old, key)

    def _untag(self, old: RepoRow, key: int) -> None:
        self._db.executemany(
            "DELETE FROM tag WHERE name = ? AND repo = ?", [(tag, key) for tag in old.tags.split()]
        )
        self._count(old, -1)

    def _count(self, row: RepoRow, sign: int) -> None:
        self._db.executemany(
            "INSERT INTO total VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE "
            "SET repos = repos + ?2, versions = versions + ?3",
            [(tag, sign, sign * row.versions_count) for tag in ("", *row.tags.split())],
        )

    def search_digests(self, among: Iterable[str] | None) -> dict[str, str]:
        """The ``search_digest`` of each repo in hexadecimal, by id; of those in ``among``."""
        where, ids = "", []
        if among is not None:
            ids = [*among]
            where = f"WHERE id IN ({', '.join('?' * len(ids))})"
        return dict(
            self._db.execute(
                f"SELECT id, lower(hex(search_digest)) FROM repo {where} ORDER BY id", ids
            )
        )

    def totals(self, tag: str | None = None) -> tuple[int, int]:
        """How many repos (with a tag) there are, and versions of them."""
        row = self._db.execute(
            "SELECT repos, versions FROM total WHERE tag = ?", (tag or "",)
        ).fetchone()
        return row or (0, 0)

    def rows(self, keys: list[int]) -> list[tuple[bytes, bytes]]:
        """Summary and card of the repos with these keys, in their order; at most a page."""
        found = self._rows("key", f"key IN ({', '.join('?' * len(keys))})", keys)
        return [found[key] for key in keys]

    def langfuse_rows(self, keys: list[int]) -> list[bytes]:
        """What lists for Langfuse's SDKs show of the repos with these keys, in their order."""
        found = dict(
            self._db.execute(
                f"SELECT key, langfuse FROM repo WHERE key IN ({', '.join('?' * len(keys))})", keys
            )
        )
        return [found[key] for key in keys]

    def rows_of_owner(self, owner: str) -> list[tuple[bytes, bytes]]:
        """Summary and card of all repos of an owner, latest updated first."""
        found = self._rows("key", f"owner = ? ORDER BY {ORDER_BY['updated']}", [owner])
        return [*found.values()]

    def summaries_of_owner(self, owner: str, start: int, count: int) -> list[bytes]:
        """The summaries of some repos of an owner, from the one numbered ``start`` on, latest
        updated first; at most a page.
        """
        # Without what is shown, which would be sorted with the rest.
        rows = self._db.execute(
            f"SELECT id FROM repo WHERE owner = ? ORDER BY {ORDER_BY['updated']} LIMIT ? OFFSET ?",
            (owner, count, start),
        )
        return self.summaries([repo_id for (repo_id,) in rows])

    def count_of_owner(self, owner: str) -> int:
        """How many repos an owner has."""
        return self._db.execute("SELECT count(*) FROM repo WHERE owner = ?", (owner,)).fetchone()[0]

    def lines_of_owner(self, owner: str) -> Iterator[tuple[str, bytes]]:
        """The id and the line in the catalogue of each repo of an owner, latest updated first."""
        return self._db.execute(
            f"SELECT id, line FROM repo WHERE owner = ? ORDER BY {ORDER_BY['updated']}", (owner,)
        )

    def summaries(self, ids: list[str]) -> list[bytes]:
        """The summaries of these repos in their order, of those that there are; at most a page."""
        found = self._rows("id", f"id IN ({', '.join('?' * len(ids))})", ids)
        return [found[repo_id][0] for repo_id in ids if repo_id in found]

    def _rows(
        self, column: str, where: str, values: Sequence[object]
    ) -> dict[Any, tuple[bytes, bytes]]:
        """Summary and card of some repos, by a column. Raises DamageError."""
        found = {}
        for key, digest, summary, card, langfuse in self._db.execute(
            f"SELECT {column}, digest, summary, card, langfuse FROM repo WHERE {where}", values
        ):
            if digest_of(summary, card, langfuse) != digest:
                raise DamageError(f"wrong digest of repo {key}")
            found[key] = (summary, card)
        return found

    def find_damage(self) -> str | None:
        """What shows that what lists have of some repo is not what was written."""
        rows = self._db.execute("SELECT id, digest, summary, card, langfuse FROM repo")
        faulty = (id for id, digest, *shown in rows if digest_of(*shown) != digest)
        return next((f"wrong digest of {id}" for id in faulty), None)

    def catalogue_lines(self) -> list[bytes]:
        """Every repo's line, in order of owner/name."""
        return [line for (line,) in self._db.execute("SELECT line FROM repo ORDER BY id")]

    def update_times(self) -> Iterator[tuple[str, str]]:
        """Each repo's id and the time of its last update, in order of owner/name."""
        # With the plus, SQLite sorts what a small index holds instead of reading whole rows.
        return self._db.execute(
            "SELECT id, strftime('%Y-%m-%dT%H:%M:%SZ', updated, 'unixepoch') FROM repo ORDER BY +id"
        )
