"""The tables of the accounts, and the migrations from older releases.

They are written once, for SQLite; another engine translates only the types.
"""

from collections.abc import Callable

import msgspec

from builder.model.metrics import Counter
from publisher.accounts.handles import skeleton

ACCOUNTS_ERRORS = Counter(
    "hub_accounts_errors_total", "Failed statements of the accounts database."
)

Execute = Callable[..., list[tuple]]

# Times are epoch seconds. No table has a secret, only its hash.
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
"""
_LOOKS = """
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
"""
_ANSWERS_WITHOUT_REST = """
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
_ATTEMPTS = """
-- Of one request there may be several: each time that it was tried.
CREATE TABLE attempt (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,                -- the Idempotency-Key of the request
    fingerprint BLOB NOT NULL,        -- of the request
    version TEXT NOT NULL,
    previous_version TEXT,
    record_sha256 BLOB,               -- null: nothing was to be written
    label_number INTEGER,             -- of a label's change, where no new version says so
    kept_until INTEGER NOT NULL
);
INSERT INTO attempt SELECT owner, key, fingerprint, version, previous_version, record_sha256,
    label_number, kept_until FROM answer;
DROP TABLE answer;
ALTER TABLE attempt RENAME TO answer;
CREATE INDEX answer_key ON answer (owner, key);
CREATE INDEX answer_kept_until ON answer (kept_until);
CREATE INDEX answer_newest ON answer (owner, kept_until);
"""
_SOURCES = """
-- The CI job that a token was made for, as JSON; null for a personal one, and in older releases'.
ALTER TABLE token ADD COLUMN source TEXT;
"""
_TEAMS = """
-- A person, or a team: no one signs in as that.
ALTER TABLE owner ADD COLUMN kind TEXT NOT NULL DEFAULT 'person';
ALTER TABLE owner ADD COLUMN is_operator INTEGER NOT NULL DEFAULT 0;
CREATE TABLE member (
    team TEXT NOT NULL REFERENCES owner (handle),
    person TEXT NOT NULL REFERENCES owner (handle),
    role TEXT NOT NULL,               -- writer or maintainer
    since INTEGER NOT NULL,
    PRIMARY KEY (team, person)
) WITHOUT ROWID;
CREATE INDEX member_person ON member (person);
CREATE TABLE team_link (              -- with which one person joins a team
    hash BLOB PRIMARY KEY,            -- SHA-256 of the link's secret
    team TEXT NOT NULL REFERENCES owner (handle),
    role TEXT NOT NULL,
    made_by TEXT NOT NULL REFERENCES owner (handle),
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
-- When a session ends whatever happens; null: by its age alone.
ALTER TABLE session ADD COLUMN ends_at INTEGER;
-- The person who wrote a draft for its owner.
ALTER TABLE draft ADD COLUMN author TEXT NOT NULL DEFAULT '';
UPDATE draft SET author = owner;
CREATE INDEX draft_author ON draft (author, changed_at);
-- The person who did it; empty: the owner, or the operator at a shell.
ALTER TABLE event ADD COLUMN author TEXT NOT NULL DEFAULT '';
"""
_LABEL_ONLY = """
-- 0: its jobs move labels, and publish nothing.
ALTER TABLE trusted_publisher ADD COLUMN publishes INTEGER NOT NULL DEFAULT 1;
"""


def _fill_looks(execute: Execute) -> None:
    for (handle,) in execute("SELECT handle FROM owner"):
        execute("UPDATE owner SET look = ? WHERE handle = ?", (skeleton(handle), handle))


def _fill_previous_versions(execute: Execute) -> None:
    for owner, key, published in execute("SELECT owner, key, published FROM answer"):
        execute(
            "UPDATE answer SET previous_version = ? WHERE owner = ? AND key = ?",
            (msgspec.json.decode(published).get("previous_version"), owner, key),
        )


# Each entry upgrades to the next version: statements, and functions that fill in values.
MIGRATIONS: tuple[tuple[str | Callable[[Execute], None], ...], ...] = (
    (_OWNERS_AND_TOKENS,),
    (_PEOPLE, _fill_looks, _LOOKS),
    (_SMALL_ANSWERS, _fill_previous_versions, _ANSWERS_WITHOUT_REST),
    (_LABELS,),
    (_DRAFTS,),
    (_ATTEMPTS,),
    (_SOURCES,),
    (_TEAMS,),
    (_LABEL_ONLY,),
)
SCHEMA_VERSION = len(MIGRATIONS)


def upgrade(version: int, define: Callable[[str], object], execute: Execute) -> None:
    """Upgrades the tables of ``version`` (0: none exist) to SCHEMA_VERSION, within a transaction.
    ``define`` runs a statement about tables; ``execute`` any other, with its values.
    """
    for migration in MIGRATIONS[version:]:
        for step in migration:
            if callable(step):
                step(execute)
                continue
            for statement in filter(str.strip, step.split(";\n")):
                define(statement)
