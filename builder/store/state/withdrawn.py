"""Repos of which nothing can be read any more, because all of it was withdrawn."""

import sqlite3


class Withdrawn:
    """The table ``withdrawn``; writes ``total``, too: their versions are publications as well."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def marks(self) -> dict[str, str]:
        """The remembered mark of each such repo, by id."""
        return dict(self._db.execute("SELECT id, mark FROM withdrawn"))

    def has(self, repo_id: str) -> bool:
        row = self._db.execute("SELECT 1 FROM withdrawn WHERE id = ?", (repo_id,)).fetchone()
        return row is not None

    def put(self, repo_id: str, mark: str, versions_count: int) -> None:
        self.remove(repo_id)
        row = (repo_id, mark, versions_count)
        self._db.execute("INSERT INTO withdrawn VALUES (?, ?, ?)", row)
        self._count(versions_count)

    def remove(self, repo_id: str) -> bool:
        """Forget a repo; False if it is not known."""
        found = self._db.execute(
            "DELETE FROM withdrawn WHERE id = ? RETURNING versions_count", (repo_id,)
        ).fetchone()
        if found:
            self._count(-found[0])
        return found is not None

    def _count(self, versions: int) -> None:
        self._db.execute(
            "INSERT INTO total VALUES ('', 0, ?1) "
            "ON CONFLICT DO UPDATE SET versions = versions + ?1",
            (versions,),
        )
