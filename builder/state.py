"""What the builder remembers between builds, in SQLite under the state folder.

A cache: all of it follows from the content, and when in doubt it is thrown away. It holds, for
each repo, the marks of its files and the bytes that lists are joined from; and the digest of
each list page that is on the site. One build is one transaction, so a reader of the state
(search, queries) sees the catalogue before a build or after it.
"""

import contextlib
import fcntl
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self

from builder.database import SCHEMA, SCHEMA_VERSION, STATE_FILE, boot_id, connect
from builder.errors import OperatorError

_ORDER = {
    "top": "pulls DESC, updated DESC, id",
    "trending": "trend DESC, id",
    "new": "created DESC, id",
    "updated": "updated DESC, id",
}


class RepoRow(NamedTuple):
    """A row of the table ``repo``, without its key."""

    id: str
    owner: str
    mark: str
    versions: bytes
    versions_count: int
    pulls: int | None
    updated: int
    created: int
    trend: int
    tags: str
    digest: bytes
    text_digest: bytes
    summary: bytes
    card: bytes
    line: bytes


_UPSERT = (
    f"INSERT INTO repo ({', '.join(RepoRow._fields)}) "
    f"VALUES ({', '.join('?' * len(RepoRow._fields))}) "
    "ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{field} = excluded.{field}" for field in RepoRow._fields[1:])
    + " RETURNING key"
)


@contextlib.contextmanager
def build_lock(folder: str, on_wait=lambda: None) -> Iterator[None]:
    """Hold the only right to build with this state; waits for another build to end.

    ``on_wait`` is called once when there is one. Raises OperatorError.
    """
    with contextlib.ExitStack() as stack:
        try:
            os.makedirs(folder, exist_ok=True)
            file = stack.enter_context(open(f"{folder}/build.lock", "w"))
        except OSError as error:
            raise OperatorError(f"Cannot use {folder} for the state: {error.strerror}.") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class State:
    """A connection to the state of one site. ``State(None)`` is an empty one in memory."""

    def __init__(self, folder: str | None, *, read_only: bool = False) -> None:
        self.path = self.path_in(folder) if folder else ":memory:"
        self._db = connect(self.path, read_only=read_only)

    @staticmethod
    def path_in(folder: str) -> str:
        return f"{folder}/{STATE_FILE}"

    def close(self) -> None:
        """Close the connection; what was not committed is as if it had not been."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Beginning and end of a build

    def vouches_for(self, stamp: str, site_mark: str) -> bool:
        """Whether what is remembered holds for a site.

        Not after another stamp (code, templates, settings), nor when the site is not the one
        that the last build left (``site_mark``), nor after a build that did not end, nor after
        a restart of the machine, when the kernel may have lost what was not yet on the disk.
        """
        return self._meta("clean") == f"{stamp} {boot_id()} {site_mark}"

    def begin(self, *, forget: bool) -> None:
        """Start a build's transaction; ``forget`` all that is remembered first."""
        # From here until the end, a build that dies is one that did not end.
        with contextlib.suppress(sqlite3.OperationalError):  # a new file, without tables
            self._db.execute("DELETE FROM meta WHERE key = 'clean'")
        self._db.execute("BEGIN IMMEDIATE")
        if forget:
            self._reset()

    def end(self, stamp: str, site_mark: str) -> None:
        """Commit a build that has done everything."""
        clean = f"{stamp} {boot_id()} {site_mark}"
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('clean', ?)", (clean,))
        self._db.execute("COMMIT")

    def _meta(self, key: str) -> str | None:
        try:
            row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        except sqlite3.OperationalError:
            return None  # a new file, without tables
        return row[0] if row else None

    def _reset(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        kept = ("orphan", "indexed", "word") if version == SCHEMA_VERSION else ()
        tables = self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (name,) in tables:
            if name not in kept:
                self._db.execute(f"DROP TABLE {name}")
        self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        # Not executescript, which would commit: readers keep the old state until the end.
        for statement in SCHEMA.split(";\n"):
            self._db.execute(statement)

    # Repos

    def marks(self, owner: str | None = None) -> dict[str, str]:
        """The remembered mark of each repo (of one owner), by id."""
        where, args = ("WHERE owner = ?", (owner,)) if owner else ("", ())
        return dict(self._db.execute(f"SELECT id, mark FROM repo {where}", args))

    def repo(self, repo_id: str) -> RepoRow | None:
        row = self._db.execute(
            f"SELECT {', '.join(RepoRow._fields)} FROM repo WHERE id = ?", (repo_id,)
        ).fetchone()
        return RepoRow(*row) if row else None

    def put_repo(self, row: RepoRow, old_tags: Iterable[str]) -> None:
        (key,) = self._db.execute(_UPSERT, row).fetchone()
        self._db.executemany(
            "DELETE FROM tag WHERE name = ? AND repo = ?", [(tag, key) for tag in old_tags]
        )
        self._db.executemany(
            "INSERT INTO tag VALUES (?, ?)", [(tag, key) for tag in row.tags.split()]
        )

    def remove_repo(self, repo_id: str) -> None:
        self._db.execute(
            "DELETE FROM tag WHERE repo = (SELECT key FROM repo WHERE id = ?)", (repo_id,)
        )
        self._db.execute("DELETE FROM repo WHERE id = ?", (repo_id,))

    def totals(self) -> tuple[int, int]:
        """How many repos and versions there are."""
        return self._db.execute(
            "SELECT count(*), coalesce(sum(versions_count), 0) FROM repo"
        ).fetchone()

    def catalogue_lines(self) -> list[bytes]:
        """Every repo's line, in order of owner/name."""
        return [line for (line,) in self._db.execute("SELECT line FROM repo ORDER BY id")]

    # Lists

    def order(self, tag: str | None, sort: str, limit: int = -1) -> list[tuple[int, bytes]]:
        """Key and digest of each repo of a list, in its order; at most ``limit`` of them."""
        if tag is None:
            return self._db.execute(
                f"SELECT key, digest FROM repo ORDER BY {_ORDER[sort]} LIMIT ?", (limit,)
            ).fetchall()
        return self._db.execute(
            "SELECT key, digest FROM tag JOIN repo ON repo.key = tag.repo "
            f"WHERE tag.name = ? ORDER BY {_ORDER[sort]} LIMIT ?",
            (tag, limit),
        ).fetchall()

    def rows(self, keys: list[int]) -> list[tuple[bytes, bytes]]:
        """Summary and card of the repos with these keys, in their order; at most a page."""
        marks = ", ".join("?" * len(keys))
        found = {
            key: (summary, card)
            for key, summary, card in self._db.execute(
                f"SELECT key, summary, card FROM repo WHERE key IN ({marks})", keys
            )
        }
        return [found[key] for key in keys]

    def owner_rows(self, owner: str) -> list[tuple[bytes, bytes]]:
        """Summary and card of all repos of an owner, latest updated first."""
        return self._db.execute(
            f"SELECT summary, card FROM repo WHERE owner = ? ORDER BY {_ORDER['updated']}",
            (owner,),
        ).fetchall()

    def joined_at(self, owner: str) -> int | None:
        """When the owner's first repo was made, in epoch seconds."""
        return self._db.execute(
            "SELECT min(created) FROM repo WHERE owner = ?", (owner,)
        ).fetchone()[0]

    def tags(self) -> list[tuple[str, int]]:
        """Each tag with its count, most used first, then by name."""
        return self._db.execute(
            "SELECT name, count(*) AS n FROM tag GROUP BY name ORDER BY n DESC, name"
        ).fetchall()

    def pages(self, tag: str | None, sort: str) -> dict[int, bytes]:
        """The digest of each page of a list that is on the site."""
        return dict(
            self._db.execute(
                "SELECT number, digest FROM page WHERE tag = ? AND sort = ?", (tag or "", sort)
            )
        )

    def put_pages(self, tag: str | None, sort: str, digests: dict[int, bytes], last: int) -> None:
        """Remember these pages, and that there are none after ``last``."""
        self._db.execute(
            "DELETE FROM page WHERE tag = ? AND sort = ? AND number > ?", (tag or "", sort, last)
        )
        self._db.executemany(
            "INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?)",
            [(tag or "", sort, number, digest) for number, digest in digests.items()],
        )

    # Queries

    def data_version(self) -> int:
        """Differs after each build that this connection has not made itself."""
        return self._db.execute("PRAGMA data_version").fetchone()[0]

    def ordered_ids(self, sort: str | None) -> list[str]:
        """The ids of all repos in an order; by owner/name where ``sort`` is None."""
        order = _ORDER[sort] if sort else "id"
        return [repo_id for (repo_id,) in self._db.execute(f"SELECT id FROM repo ORDER BY {order}")]

    def ids_with_tags(self, tags: Iterable[str]) -> set[str]:
        """The ids of the repos that have all of these tags."""
        found = None
        for tag in tags:
            rows = self._db.execute(
                "SELECT id FROM tag JOIN repo ON repo.key = tag.repo WHERE tag.name = ?", (tag,)
            )
            ids = {repo_id for (repo_id,) in rows}
            found = ids if found is None else found & ids
        return found or set()

    def has_tag(self, tag: str) -> bool:
        row = self._db.execute("SELECT 1 FROM tag WHERE name = ? LIMIT 1", (tag,)).fetchone()
        return row is not None

    def summaries(self, ids: list[str]) -> list[bytes]:
        """The summaries of these repos in their order, of those that there are; at most a page."""
        marks = ", ".join("?" * len(ids))
        found = dict(self._db.execute(f"SELECT id, summary FROM repo WHERE id IN ({marks})", ids))
        return [found[repo_id] for repo_id in ids if repo_id in found]

    # Owners

    def owners(self) -> dict[str, str]:
        """The remembered mark of each owner's profile, by handle."""
        return dict(self._db.execute("SELECT handle, mark FROM owner"))

    def put_owner(self, handle: str, mark: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO owner VALUES (?, ?)", (handle, mark))

    def remove_owner(self, handle: str) -> None:
        self._db.execute("DELETE FROM owner WHERE handle = ?", (handle,))

    # Orphans: files whose object is gone, kept for one build more

    def orphans(self) -> set[str]:
        try:
            return {file for (file,) in self._db.execute("SELECT file FROM orphan")}
        except sqlite3.OperationalError:
            return set()  # no build has ended yet

    def put_orphans(self, files: Iterable[str]) -> None:
        self._db.execute("DELETE FROM orphan")
        self._db.executemany("INSERT INTO orphan VALUES (?)", [(file,) for file in files])

    # Search

    def stale_in_index(self) -> tuple[list[str], list[str]]:
        """Ids of the repos that the search index has to take in, and of those it has to drop."""
        changed = self._db.execute(
            "SELECT repo.id FROM repo LEFT JOIN indexed ON indexed.id = repo.id "
            "WHERE indexed.text_digest IS NOT repo.text_digest ORDER BY repo.id"
        )
        gone = self._db.execute(
            "SELECT id FROM indexed WHERE id NOT IN (SELECT id FROM repo) ORDER BY id"
        )
        return [row[0] for row in changed], [row[0] for row in gone]

    def indexed_words(self, repo_id: str) -> list[tuple[str, str]]:
        """The (surface, stem) of the words by which the index holds a repo, if it does."""
        row = self._db.execute("SELECT words FROM indexed WHERE id = ?", (repo_id,)).fetchone()
        lines = zlib.decompress(row[0]).decode().splitlines() if row else []
        return [(surface, stem) for surface, stem in map(str.split, lines)]

    def put_indexed(self, repo_id: str, words: Iterable[tuple[str, str]]) -> None:
        """Remember that the index holds a repo as it is now."""
        lines = "\n".join(f"{surface} {stem}" for surface, stem in words)
        self._db.execute(
            "INSERT OR REPLACE INTO indexed SELECT id, text_digest, ? FROM repo WHERE id = ?",
            (zlib.compress(lines.encode(), 1), repo_id),
        )

    def drop_indexed(self, repo_id: str) -> None:
        self._db.execute("DELETE FROM indexed WHERE id = ?", (repo_id,))

    def count_words(self, changes: Mapping[tuple[str, str], int]) -> None:
        """Add to the number of repos that have a word; one that none has is forgotten."""
        self._db.executemany(
            "INSERT INTO word VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET repos = repos + ?3",
            [(*word, count) for word, count in changes.items() if count],
        )
        self._db.executemany(
            "DELETE FROM word WHERE surface = ? AND stem = ? AND repos <= 0",
            [word for word, count in changes.items() if count < 0],
        )

    def stems_of_words_beginning(self, prefix: str) -> set[str]:
        """What the words that begin so are found by, where it does not begin so itself."""
        rows = self._db.execute(
            "SELECT DISTINCT stem FROM word WHERE surface >= ? AND surface < ?",
            (prefix, prefix + "\U0010ffff"),
        )
        return {stem for (stem,) in rows if not stem.startswith(prefix)}

    def forget_index(self) -> None:
        self._db.execute("DELETE FROM indexed")
        self._db.execute("DELETE FROM word")
