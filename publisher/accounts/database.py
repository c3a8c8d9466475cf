"""The accounts database: owners, what they sign in and publish with, answers kept for retries.

SQLite in the state folder, yet no cache: nothing else knows what is in it. So a commit waits
for the disk, and a file that cannot be used is reported, never replaced. Several processes may
have it open at once; the threads of one share a connection and take turns.
"""

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Self

from builder.model.errors import RequestError
from builder.model.metrics import ACCOUNTS_ERRORS
from builder.store import sqlite
from builder.store.sqlite import DatabaseFile
from publisher.accounts.handles import skeleton

ACCOUNTS_FILE = "accounts.sqlite3"
BUSY_SECONDS = 10.0

log = logging.getLogger("hub.accounts")

# Times are epoch seconds. A secret is never here: its hash is.
_OWNERS_AND_TOKENS = """
CREATE TABLE owner (
    handle TEXT PRIMARY KEY, created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE token (
    id TEXT PRIMARY KEY,              -- public: names a token in lists and logs
    hash BLOB NOT NULL UNIQUE,        -- SHA-256 of the token's text, which is nowhere
    owner TEXT NOT NULL REFERENCES owner (handle),
    name TEXT NOT NULL,
    repos TEXT NOT NULL,              -- joined by spaces; empty: all of the owner's
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX token_name ON token (owner, name) WHERE revoked_at IS NULL;
CREATE TABLE answer (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,                -- the Idempotency-Key of the request
    fingerprint BLOB NOT NULL,        -- of the request
    version TEXT NOT NULL,
    record_sha256 BLOB,               -- null: nothing was written
    published BLOB NOT NULL,
    kept_until INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) WITHOUT ROWID;
CREATE INDEX answer_kept_until ON answer (kept_until);
"""
_PEOPLE = """
-- What the handle looks like (`skeleton`), so that nobody takes one that is mistaken for it.
ALTER TABLE owner ADD COLUMN look TEXT NOT NULL DEFAULT '';
UPDATE owner SET look = skeleton(handle);
CREATE INDEX owner_look ON owner (look);
-- Since when the owner is shut out; null: is not.
ALTER TABLE owner ADD COLUMN locked_at INTEGER;
-- Who trusts the job that a token was made for, joined by spaces; null for a personal one.
ALTER TABLE token ADD COLUMN trusted_publisher TEXT;
CREATE INDEX token_owner ON token (owner);
CREATE INDEX token_job ON token (expires_at) WHERE trusted_publisher IS NOT NULL;
CREATE TABLE event (                  -- the security log of an account
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES owner (handle),
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,            -- what it is about, as a token's id
    address TEXT NOT NULL,            -- of who did it; empty: whoever runs the hub, at a shell
    note TEXT NOT NULL                -- for people: what the subject is called
);
CREATE INDEX event_alike ON event (owner, kind, subject, address);
CREATE INDEX event_age ON event (owner, at);
CREATE INDEX event_newest ON event (owner);
CREATE TABLE password (
    owner TEXT PRIMARY KEY REFERENCES owner (handle),
    hash TEXT NOT NULL,               -- Argon2id, with its parameters and salt
    changed_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE invitation (             -- one for each owner: a new one ends the one before
    owner TEXT PRIMARY KEY REFERENCES owner (handle),
    hash BLOB NOT NULL UNIQUE,        -- SHA-256 of the link's secret
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE session (
    hash BLOB PRIMARY KEY,            -- SHA-256 of the cookie's secret
    owner TEXT NOT NULL REFERENCES owner (handle),
    began_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    address TEXT NOT NULL,            -- where it began
    agent TEXT NOT NULL               -- the browser's name of itself
) WITHOUT ROWID;
CREATE INDEX session_owner ON session (owner);
CREATE TABLE identity (               -- at OpenID providers
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    owner TEXT NOT NULL REFERENCES owner (handle),
    added_at INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject)
) WITHOUT ROWID;
CREATE INDEX identity_owner ON identity (owner);
CREATE TABLE trusted_publisher (      -- CI jobs that need no stored token
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES owner (handle),
    repo TEXT NOT NULL,               -- empty: all of the owner's
    issuer TEXT NOT NULL,
    project TEXT NOT NULL,            -- GROUP/NAME at the issuer, lower case
    project_id TEXT NOT NULL,         -- the issuer's number of it; empty until a first job tells
    workflow TEXT NOT NULL,           -- the file that defines the job
    branch TEXT NOT NULL,             -- without refs/heads/; empty: any branch or tag
    environment TEXT NOT NULL,        -- at GitHub in lower case; empty: any
    added_at INTEGER NOT NULL,
    used_at INTEGER,
    UNIQUE (owner, repo, issuer, project, workflow, branch, environment)
) WITHOUT ROWID;
CREATE INDEX trusted_publisher_project ON trusted_publisher (issuer, project);
CREATE TABLE trusted_only (           -- repos that take publications from trusted publishers alone
    owner TEXT NOT NULL REFERENCES owner (handle),
    repo TEXT NOT NULL,
    PRIMARY KEY (owner, repo)
) WITHOUT ROWID;
CREATE TABLE exchanged (              -- ID tokens that are used up
    hash BLOB PRIMARY KEY,            -- SHA-256 of issuer and jti
    until INTEGER NOT NULL            -- when it could not be used any more anyway
) WITHOUT ROWID;
CREATE INDEX exchanged_until ON exchanged (until);
"""
_SMALL_ANSWERS = """
-- The rest of an answer is in the version's record, or follows from the request.
ALTER TABLE answer ADD COLUMN previous_version TEXT;
UPDATE answer SET previous_version = json_extract(CAST(published AS TEXT), '$.previous_version');
ALTER TABLE answer DROP COLUMN published;
CREATE INDEX answer_newest ON answer (owner, kept_until);
"""
_LABELS = """
-- The number of a label's change, where the answer is about one and no new version says so.
ALTER TABLE answer ADD COLUMN label_number INTEGER;
-- What a token may do, joined by spaces; those that are there may do both.
ALTER TABLE token ADD COLUMN rights TEXT NOT NULL DEFAULT 'publish label';
-- The labels that it may move, joined by spaces; empty: all that are not protected.
ALTER TABLE token ADD COLUMN labels TEXT NOT NULL DEFAULT '';
-- The labels that its jobs may move, joined by spaces; empty: none.
ALTER TABLE trusted_publisher ADD COLUMN labels TEXT NOT NULL DEFAULT '';
CREATE TABLE protected_label (        -- that only a token moves which names them
    owner TEXT NOT NULL REFERENCES owner (handle),
    repo TEXT NOT NULL,               -- empty: all of the owner's
    label TEXT NOT NULL,
    PRIMARY KEY (owner, repo, label)
) WITHOUT ROWID;
"""
_DRAFTS = """
CREATE TABLE draft (                  -- what the editor has saved and nobody has published
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES owner (handle),
    repo TEXT NOT NULL,               -- empty: a new prompt
    title TEXT NOT NULL,              -- for lists
    changed_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,        -- how often it was saved
    data BLOB NOT NULL                -- the editor's fields, as JSON
);
CREATE INDEX draft_owner ON draft (owner, changed_at);
CREATE INDEX draft_age ON draft (changed_at);
"""
# Each makes the next version of the one before.
_MIGRATIONS = (_OWNERS_AND_TOKENS, _PEOPLE, _SMALL_ANSWERS, _LABELS, _DRAFTS)
SCHEMA_VERSION = len(_MIGRATIONS)

_REMEDIES = {
    sqlite3.SQLITE_FULL: "Free disk space or tell the operator, then try again",
    sqlite3.SQLITE_READONLY: "Give this service write access to the state folder, then restart it",
    sqlite3.SQLITE_CANTOPEN: "Give this service write access to the state folder, then restart it",
    sqlite3.SQLITE_PERM: "Give this service write access to the state folder, then restart it",
    sqlite3.SQLITE_IOERR: "Check the disk, then try again",
    sqlite3.SQLITE_BUSY: "Another process is using it. Try again",
    sqlite3.SQLITE_LOCKED: "Another process is using it. Try again",
}


def accounts_file(folder: str) -> DatabaseFile:
    """The database of a state folder."""
    return DatabaseFile(
        f"{folder}/{ACCOUNTS_FILE}", "accounts", "the owners and tokens",
        "create owners and tokens again",
    )  # fmt: skip


class Database:
    """The accounts database of a state folder; makes both where they are missing.

    Raises OperatorError where the file cannot be used, is damaged, or is of a newer release.
    """

    def __init__(self, state_folder: str) -> None:
        # Reentrant, so that what runs in a transaction may call what would run without one.
        self._turn = threading.RLock()
        self._file = accounts_file(state_folder)
        self.path = self._file.path
        with self._file.telling():
            os.makedirs(state_folder, exist_ok=True)
            # SQLite does not wait for another that changes the file to WAL at the same time.
            with sqlite.folder_lock(state_folder), contextlib.ExitStack() as failing:
                sqlite.make_private(self.path)
                self._db = sqlite3.connect(
                    self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
                )
                failing.callback(self._db.close)
                self._inode = os.stat(self.path)
                self._prepare()
                failing.pop_all()

    def execute(self, sql: str, args: Sequence[Any] = ()) -> list[tuple]:
        """The rows of one statement; on its own it is committed when this returns.

        Raises RequestError ``storage_unavailable``; OperatorError where the file is damaged.
        """
        with self._turn, self._telling():
            self._check_in_place()
            return self._db.execute(sql, args).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """All that the block executes, or nothing if it raises; durable when the block ends.

        Within another transaction it is a part of that one. Keep it short: other writers wait, in
        every process, and this one's readers. Raises as ``execute`` does.
        """
        with self._turn:
            if self._db.in_transaction:
                yield self
                return
            self.execute("BEGIN IMMEDIATE")
            try:
                yield self
                self.execute("COMMIT")
            except BaseException:
                # A full disk makes SQLite itself roll back.
                if self._db.in_transaction:
                    with self._telling():
                        self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file; nothing can be executed any more."""
        with self._turn:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> None:
        db = self._db
        ((version,),) = db.execute("PRAGMA user_version")
        ((tables,),) = db.execute("SELECT count(*) FROM sqlite_master")
        self._file.check_version(version, SCHEMA_VERSION, is_ours=version > 0 or not tables)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            db.execute(f"PRAGMA {pragma}")
        if version == SCHEMA_VERSION:
            return
        db.create_function("skeleton", 1, skeleton)
        # What fails closes the file, which rolls back.
        db.execute("BEGIN IMMEDIATE")
        for migration in _MIGRATIONS[version:]:
            for statement in migration.split(";\n"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        db.execute("COMMIT")
        if version:
            told = {"file": ACCOUNTS_FILE, "from_version": version, "to_version": SCHEMA_VERSION}
            log.info("upgrade", extra={"fields": told})

    def _check_in_place(self) -> None:
        # SQLite would go on with a file that was deleted or replaced, and a token that is revoked
        # in the new one would stay good here.
        with contextlib.suppress(OSError):
            if os.path.samestat(self._inode, os.stat(self.path)):
                return
        ACCOUNTS_ERRORS.count()
        raise RequestError(
            "storage_unavailable",
            "The accounts database was deleted, replaced or became unreadable while in use. "
            "Restore it if that was a mistake, then restart this service.",
        )

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            ACCOUNTS_ERRORS.count()
            primary = sqlite.primary_code(error)
            if primary in sqlite.DAMAGE:
                raise self._file.damaged(str(error)) from error
            if primary not in _REMEDIES:
                raise
            raise RequestError(
                "storage_unavailable",
                f"Cannot use the accounts database: {error}. {_REMEDIES[primary]}.",
            ) from error
