"""What the search index holds, and the words by which it does."""

import sqlite3
import zlib
from collections.abc import Iterable, Mapping

from builder.store.database import beginning_with


class Index:
    """The tables ``indexed`` and ``word``."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def stale(self, among: Iterable[str] | None) -> tuple[list[str], list[str]]:
        """Ids of the repos that the search index has to take in, and of those it has to drop."""
        where, ids = "", []
        if among is not None:
            ids = [*among]
            where = f"AND id IN ({', '.join('?' * len(ids))})"
        changed = self._db.execute(
            "SELECT id FROM repo LEFT JOIN indexed USING (id) "
            f"WHERE indexed.text_digest IS NOT repo.text_digest {where} ORDER BY id",
            ids,
        )
        gone = self._db.execute(
            f"SELECT id FROM indexed WHERE id NOT IN (SELECT id FROM repo) {where} ORDER BY id", ids
        )
        return [row[0] for row in changed], [row[0] for row in gone]

    def words(self, repo_id: str) -> list[tuple[str, str]]:
        """The (surface, stem) of the words by which the index holds a repo, if it does."""
        row = self._db.execute("SELECT words FROM indexed WHERE id = ?", (repo_id,)).fetchone()
        lines = zlib.decompress(row[0]).decode().splitlines() if row else []
        return [(surface, stem) for surface, stem in map(str.split, lines)]

    def put(self, repo_id: str, words: Iterable[tuple[str, str]]) -> None:
        """Remember that the index holds a repo as it is now."""
        lines = "\n".join(f"{surface} {stem}" for surface, stem in words)
        self._db.execute(
            "INSERT OR REPLACE INTO indexed SELECT id, text_digest, ? FROM repo WHERE id = ?",
            (zlib.compress(lines.encode(), 1), repo_id),
        )

    def drop(self, repo_id: str) -> None:
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
            beginning_with(prefix),
        )
        return {stem for (stem,) in rows if not stem.startswith(prefix)}

    def holds_any(self) -> bool:
        """Whether it is remembered that the index holds any repo."""
        return self._db.execute("SELECT 1 FROM indexed LIMIT 1").fetchone() is not None

    def forget(self) -> None:
        self._db.execute("DELETE FROM indexed")
        self._db.execute("DELETE FROM word")
