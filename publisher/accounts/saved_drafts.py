"""Drafts that people have saved in the editor, for an owner; visible only to their authors.

A draft is kept for 90 days after its last change. ``now`` is an aware datetime, by default the
present. The methods raise RequestError ``storage_unavailable`` as the database does.
"""

import secrets
from datetime import datetime
from typing import NamedTuple

from builder.model.errors import RequestError, cut
from publisher.accounts.database import Database, epoch_seconds

DRAFTS_PER_AUTHOR_MAX = 50
DRAFT_SECONDS = 90 * 86_400
DRAFT_BYTES_MAX = 512 * 1024
TITLE_CHARS_MAX = 200
ID_PATTERN = "[0-9a-f]{16}"


class SavedDraft(NamedTuple):
    """A draft as a list shows it. ``owner``: for whom it is written. ``repo``: the prompt that it
    changes; empty for a new one. ``changed_at`` is epoch seconds; ``revision`` counts how often it
    was saved.
    """

    id: str
    owner: str
    repo: str
    title: str
    changed_at: int
    revision: int


_COLUMNS = ", ".join(SavedDraft._fields)


class SavedDrafts:
    """The drafts of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(
        self,
        author: str,
        owner: str | None = None,
        repo: str | None = None,
        now: datetime | None = None,
    ) -> list[SavedDraft]:
        """Returns the drafts of an author (for one owner, of one prompt), the last changed first,
        without their data.
        """
        rows = self._database.execute(
            f"SELECT {_COLUMNS} FROM draft WHERE author = ?1 AND changed_at > ?2 "
            "AND (owner = ?3 OR ?3 IS NULL) AND (repo = ?4 OR ?4 IS NULL) "
            "ORDER BY changed_at DESC, id",
            (author, epoch_seconds(now) - DRAFT_SECONDS, owner, repo),
        )
        return [SavedDraft(*row) for row in rows]

    def find(
        self, author: str, draft_id: str, now: datetime | None = None
    ) -> tuple[SavedDraft, bytes] | None:
        """Returns a draft of an author, and its data; None if it does not exist."""
        rows = self._database.execute(
            f"SELECT {_COLUMNS}, data FROM draft WHERE author = ? AND id = ? AND changed_at > ?",
            (author, draft_id, epoch_seconds(now) - DRAFT_SECONDS),
        )
        return (SavedDraft(*rows[0][:-1]), rows[0][-1]) if rows else None

    def save(
        self,
        author: str,
        where: tuple[str, str],
        title: str,
        data: bytes,
        *,
        over: SavedDraft | None = None,
        now: datetime | None = None,
    ) -> SavedDraft:
        """Saves a draft in place of ``over``, the draft that was opened. Without ``over``, or if
        that was saved again meanwhile, it becomes a new draft. ``where``: its owner and repo.

        Raises RequestError ``content_too_large`` for too much data, and ``validation_failed`` for
        one draft too many.
        """
        if len(data) > DRAFT_BYTES_MAX:
            raise RequestError(
                "content_too_large",
                f"The draft has {len(data):,} bytes, but {DRAFT_BYTES_MAX:,} is the limit. "
                "Shorten the text, or remove changed files, then save it again.",
            )
        at, title = epoch_seconds(now), cut(title, TITLE_CHARS_MAX)
        owner, repo = where
        with self._database.transaction():
            # Deletes old drafts of all owners, so those of an owner who never returns go too.
            self._database.execute("DELETE FROM draft WHERE changed_at <= ?", (at - DRAFT_SECONDS,))
            if over:
                rows = self._database.execute(
                    "UPDATE draft "
                    "SET title = ?, data = ?, changed_at = ?, owner = ?, revision = revision + 1 "
                    "WHERE author = ? AND id = ? AND repo = ? AND revision = ? RETURNING revision",
                    (title, data, at, owner, author, over.id, repo, over.revision),
                )
                if rows:
                    return SavedDraft(over.id, owner, repo, title, at, rows[0][0])
            count_of_author = "SELECT count(*) FROM draft WHERE author = ?"
            ((count,),) = self._database.execute(count_of_author, (author,))
            if count >= DRAFTS_PER_AUTHOR_MAX:
                raise RequestError(
                    "validation_failed",
                    f"You have {count} drafts, which is the limit. Open My prompts in another tab "
                    "and discard one, then save this one again.",
                )
            draft = SavedDraft(secrets.token_hex(8), owner, repo, title, at, 1)
            self._database.execute(
                f"INSERT INTO draft ({_COLUMNS}, author, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*draft, author, data),
            )
        return draft

    def discard(self, author: str, draft_id: str, revision: int | None = None) -> bool:
        """Deletes a draft; only one with this ``revision``, where that is given. True if it
        existed.
        """
        rows = self._database.execute(
            "DELETE FROM draft WHERE author = ?1 AND id = ?2 AND (revision = ?3 OR ?3 IS NULL) "
            "RETURNING 1",
            (author, draft_id, revision),
        )
        return bool(rows)
