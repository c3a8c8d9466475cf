"""Repos: the data that the next build and lists need of each, and queries by id, tag and position
in a list.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from builder.store.database import DamageError, beginning_with
from builder.store.state.tables import Table, one_of

ORDER_BY = {
    "top": "pulls DESC, updated DESC, id",
    "trending": "trend DESC, id",
    "new": "created DESC, id",
    "updated": "updated DESC, id",
}

# The most that fits beside a time in 64 bits. Repos with more pulls rank equally in searches by
# `top`.
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
    gone: bytes
    versions_count: int
    pulls: int
    updated: int
    created: int
    trend: int
    tags: str
    kind: str
    trial: int
    digest: bytes
    search_digest: bytes
    summary: bytes
    card: bytes
    line: bytes
    langfuse: bytes
    skill: bytes


def order_values(row: RepoRow) -> dict[str, int]:
    """A 64-bit number for each order of lists. Repos with greater ones come first, and equal ones
    are sorted by owner/name, as in ORDER_BY.
    """
    top = min(row.pulls, _PULLS_MAX) * _TIMES + row.updated
    return {"top": top, "trending": row.trend, "new": row.created}


_UPSERT = (
    f"INSERT INTO repo ({', '.join(RepoRow._fields)}) "
    f"VALUES ({', '.join('?' * len(RepoRow._fields))}) "
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{field} = excluded.{field}" for field in RepoRow._fields if field != "id")
    + " RETURNING key"
)


# The fields that grow with the versions, and the size of the pieces that are stored of them.
_PIECED = ("versions", "labels")
_PIECE_BYTES = 32 * 1024


def _pieces(data: bytes) -> list[bytes]:
    return [data[at : at + _PIECE_BYTES] for at in range(0, max(1, len(data)), _PIECE_BYTES)]


def _lists_of(row: RepoRow) -> list[str]:
    """The names under which the tables ``tag`` and ``total`` have a repo."""
    return [row.kind, *row.tags.split()]


def digest_of(*parts: bytes) -> bytes:
    """The digest in the columns ``digest`` and ``search_digest``."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=12).digest()


class Listed(NamedTuple):
    """A repo in a list: as JSON, as HTML, and for Langfuse's SDKs."""

    summary: bytes
    card: bytes
    langfuse: bytes


class Repos(Table):
    """The table ``repo``; also writes ``tag`` and ``total``."""

    def marks(self) -> dict[str, str]:
        """The remembered mark of each repo, by id."""
        return dict(self._db.execute("SELECT id, mark FROM repo"))

    def get(self, repo_id: str) -> RepoRow | None:
        """The stored row of a repo."""
        found = self._db.execute(
            f"SELECT {', '.join(RepoRow._fields)} FROM repo WHERE id = ?", (repo_id,)
        ).fetchone()
        if not found:
            return None
        row = RepoRow(*found)
        rest = "SELECT data FROM piece WHERE repo = ? AND field = ? ORDER BY number"
        for field in _PIECED:
            if len(first := getattr(row, field)) == _PIECE_BYTES:
                data = b"".join([first, *self._column(rest, repo_id, field)])
                row = row._replace(**{field: data})
        return row

    def put(self, row: RepoRow, old: RepoRow | None) -> None:
        """Store a repo, replacing its row ``old``."""
        short = row._replace(**{field: self._put_pieces(row, old, field) for field in _PIECED})
        (key,) = self._db.execute(_UPSERT, short).fetchone()
        if old:
            self._untag(old, key)
        copied = (key, row.id, row.digest, row.pulls, row.updated, row.created, row.trend)
        self._db.executemany(
            "INSERT INTO tag VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(name, *copied) for name in _lists_of(row)],
        )
        self._count(row, 1)

    def _put_pieces(self, row: RepoRow, old: RepoRow | None, field: str) -> bytes:
        """Store the pieces of a field that have changed; returns the first, which the row has."""
        first, *rest = _pieces(getattr(row, field))
        _, *before = _pieces(getattr(old, field)) if old else [b""]
        if rest or before:
            changed = [
                (row.id, field, number, piece)
                for number, piece in enumerate(rest)
                if before[number : number + 1] != [piece]
            ]
            self._db.executemany("INSERT OR REPLACE INTO piece VALUES (?, ?, ?, ?)", changed)
            end = "DELETE FROM piece WHERE repo = ? AND field = ? AND number >= ?"
            self._db.execute(end, (row.id, field, len(rest)))
        return first

    def remove(self, old: RepoRow) -> None:
        self._db.execute("DELETE FROM piece WHERE repo = ?", (old.id,))
        (key,) = self._db.execute(
            "DELETE FROM repo WHERE id = ? RETURNING key", (old.id,)
        ).fetchone()
        self._untag(old, key)

    def _untag(self, old: RepoRow, key: int) -> None:
        self._db.executemany(
            "DELETE FROM tag WHERE name = ? AND repo = ?", [(name, key) for name in _lists_of(old)]
        )
        self._count(old, -1)

    def _count(self, row: RepoRow, sign: int) -> None:
        self._db.executemany(
            "INSERT INTO total VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE "
            "SET repos = repos + ?2, versions = versions + ?3",
            [(name, sign, sign * row.versions_count) for name in ("", *_lists_of(row))],
        )

    def search_digests(self, among: Iterable[str] | None) -> dict[str, str]:
        """The ``search_digest`` of each repo in hexadecimal, by id; only for ids in ``among`` if
        given.
        """
        where, ids = "", []
        if among is not None:
            ids = [*among]
            where = f"WHERE {one_of('id', ids)}"
        return dict(
            self._db.execute(
                f"SELECT id, lower(hex(search_digest)) FROM repo {where} ORDER BY id", ids
            )
        )

    def totals(self, tag: str | None = None) -> tuple[int, int]:
        """The numbers of repos (with a tag, or of a kind) and of their versions."""
        row = self._db.execute(
            "SELECT repos, versions FROM total WHERE tag = ?", (tag or "",)
        ).fetchone()
        return row or (0, 0)

    def rows(self, keys: list[int]) -> list[Listed]:
        """The repos with these keys, in their order; at most a page."""
        found = self._rows("key", one_of("key", keys), keys)
        return [found[key] for key in keys]

    def best_trial(self) -> str | None:
        """The id of the repo that suits the home page best; a ``top`` one among equals."""
        return self._value(
            f"SELECT id FROM repo WHERE trial > 0 ORDER BY trial DESC, {ORDER_BY['top']} LIMIT 1"
        )

    def rows_of_owner(self, owner: str) -> list[Listed]:
        """All repos of an owner, latest updated first."""
        found = self._rows("key", f"owner = ? ORDER BY {ORDER_BY['updated']}", [owner])
        return [*found.values()]

    def skills_of_owner(self, owner: str) -> list[bytes]:
        """The skill of each repo in its owner's files, in the order of `top`."""
        rows = self._db.execute(
            f"SELECT skill FROM repo WHERE owner = ? ORDER BY {ORDER_BY['top']}", (owner,)
        )
        return [skill for (skill,) in rows]

    def summaries_of_owners(self, owners: Sequence[str], start: int, count: int) -> list[bytes]:
        """The summaries of some repos of these owners, latest updated first, beginning with number
        ``start``; at most a page.
        """
        # Only ids are sorted, because SQLite would sort the summaries along with them.
        order = f"ORDER BY {ORDER_BY['updated']} LIMIT ? OFFSET ?"
        ids = self._column(
            f"SELECT id FROM repo WHERE {one_of('owner', owners)} {order}", *owners, count, start
        )
        return self.summaries(ids)

    def count_of_owners(self, owners: Sequence[str]) -> int:
        """The number of repos of these owners."""
        return self._value(f"SELECT count(*) FROM repo WHERE {one_of('owner', owners)}", *owners)

    def summaries(self, ids: list[str]) -> list[bytes]:
        """The summaries of these repos in their order, without unknown ones; at most hundreds."""
        found = self._rows("id", one_of("id", ids), ids)
        return [found[repo_id].summary for repo_id in ids if repo_id in found]

    def lines(self, ids: list[str]) -> dict[str, bytes]:
        """The line in the catalogue of each of these repos, by id."""
        return dict(self._db.execute(f"SELECT id, line FROM repo WHERE {one_of('id', ids)}", ids))

    def _rows(self, column: str, where: str, values: Sequence[object]) -> dict[Any, Listed]:
        """Some repos, by a column. Raises DamageError."""
        found = {}
        for key, digest, *shown in self._db.execute(
            f"SELECT {column}, digest, summary, card, langfuse FROM repo WHERE {where}", values
        ):
            if digest_of(*shown) != digest:
                raise DamageError(f"wrong digest of repo {key}")
            found[key] = Listed(*shown)
        return found

    def find_damage(self) -> str | None:
        """Evidence that a repo's data for lists differs from what was written; None if there is
        none.
        """
        rows = self._db.execute("SELECT id, digest, summary, card, langfuse FROM repo")
        faulty = (id for id, digest, *shown in rows if digest_of(*shown) != digest)
        return next((f"wrong digest of {id}" for id in faulty), None)

    def catalogue_lines(self) -> list[bytes]:
        """Every repo's line, in order of owner/name."""
        return self._column("SELECT line FROM repo ORDER BY id")

    def update_times(self) -> Iterator[tuple[str, str]]:
        """Each repo's id and the time of its last update, in order of owner/name."""
        # With the plus, SQLite sorts rows of a small index instead of reading whole rows.
        return self._db.execute(
            "SELECT id, strftime('%Y-%m-%dT%H:%M:%SZ', updated, 'unixepoch') FROM repo ORDER BY +id"
        )


class Ids(Table):
    """Ids (``owner/name``) in the tables ``repo`` and ``tag``."""

    def all(self) -> list[str]:
        """The ids of all repos, in order."""
        return self._column("SELECT id FROM repo ORDER BY id")

    def fitting(
        self, tags: Collection[str], owner: str | None, sort: str, limit: int, offset: int
    ) -> tuple[list[str], int]:
        """A part of the ids of the repos that have all of these tags and belong to an owner (None:
        any), in an order; and the count of all.
        """
        owners = [] if owner is None else [owner]
        tagged = ["key IN (SELECT repo FROM tag WHERE name = ?)"] * len(tags)
        where = " AND ".join([*tagged, *["owner = ?"] * len(owners)]) or "true"
        values = [*tags, *owners]
        total = self._value(f"SELECT count(*) FROM repo WHERE {where}", *values)
        ids = self._column(
            f"SELECT id FROM repo WHERE {where} ORDER BY {ORDER_BY[sort]} LIMIT ? OFFSET ?",
            *values,
            limit,
            offset,
        )
        return ids, total

    def beginning(self, prefix: str, limit: int = -1) -> list[str]:
        """The ids with this prefix, in order; all of them if ``limit`` is -1."""
        return self._column(
            "SELECT id FROM repo WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
            *beginning_with(prefix),
            limit,
        )

    def around(self, prefix: str, name: str, limit: int) -> list[str]:
        """Up to ``limit`` of the ids with this prefix, in order: the neighbours of ``prefix +
        name`` on both sides. That id itself need not exist.
        """
        first, end = beginning_with(prefix)
        between = "SELECT id FROM repo WHERE id >= ? AND id < ? ORDER BY id"
        after = self._column(f"{between} LIMIT ?", first + name, end, limit)
        before = self._column(f"{between} DESC LIMIT ?", first, first + name, limit)
        # Half from each side, or more from one if the other has fewer.
        half = limit // 2
        before = before[: limit - min(len(after), limit - half)]
        return [*reversed(before), *after[: limit - len(before)]]

    def named(self, name: str, limit: int) -> list[str]:
        """The ids of all owners' repos with exactly this name; ``top`` ones first."""
        # One pass over an index that has all columns. It costs less than another index would cost
        # each build.
        return self._column(
            f"SELECT id FROM repo WHERE id LIKE '%/' || ? ORDER BY {ORDER_BY['top']} LIMIT ?",
            name,
            limit,
        )


class Tags(Table):
    """The tables ``tag`` and ``total``, as ``Repos`` writes them."""

    def has(self, tag: str) -> bool:
        return bool(self._value("SELECT 1 FROM tag WHERE name = ? LIMIT 1", tag))

    def counts(self) -> list[tuple[str, int]]:
        """Each tag with its count, most used first, then by name."""
        return self._db.execute(
            "SELECT tag, repos FROM total WHERE tag >= '0' AND repos > 0 ORDER BY repos DESC, tag"
        ).fetchall()

    def kinds(self) -> dict[str, int]:
        """The number of repos of each kind that exists."""
        where = "tag > '' AND tag < '0' AND repos > 0"
        return dict(self._db.execute(f"SELECT tag, repos FROM total WHERE {where}"))


class Lists(Table):
    """Orders of repos, and the table ``page``. ``tag`` None: the list of all repos. Orders also
    take a kind for ``tag``.
    """

    def order(
        self, tag: str | None, sort: str, limit: int, *, offset: int = 0
    ) -> list[tuple[int, bytes]]:
        """Key and digest of repos of a list, in its order: at most ``limit``."""
        order = f"ORDER BY {ORDER_BY[sort]} LIMIT ? OFFSET ?"
        if tag is None:
            return self._db.execute(
                f"SELECT key, digest FROM repo {order}", (limit, offset)
            ).fetchall()
        return self._db.execute(
            f"SELECT repo, digest FROM tag WHERE name = ? {order}", (tag, limit, offset)
        ).fetchall()

    def pages(self, tag: str | None, sort: str, first: int = 1) -> dict[int, bytes]:
        """The digest of each page of a list that is on the site, from ``first`` on."""
        return dict(
            self._db.execute(
                "SELECT number, digest FROM page WHERE tag = ? AND sort = ? AND number >= ?",
                (tag or "", sort, first),
            )
        )

    def page(self, tag: str | None, sort: str, number: int) -> bytes | None:
        """The digest of one page, as in ``pages``."""
        one = "SELECT digest FROM page WHERE tag = ? AND sort = ? AND number = ?"
        return self._value(one, tag or "", sort, number)

    def put_page(self, tag: str | None, sort: str, number: int, digest: bytes) -> None:
        """Store the digest of a page on the site; an empty digest if the page is about to be
        written.
        """
        self._db.execute(
            "INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?)", (tag or "", sort, number, digest)
        )

    def drop_pages_after(self, tag: str | None, sort: str, last: int) -> None:
        self._db.execute(
            "DELETE FROM page WHERE tag = ? AND sort = ? AND number > ?", (tag or "", sort, last)
        )
