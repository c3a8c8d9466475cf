"""The tables of the accounts, and the migrations from older releases.

They are written once, for SQLite; another engine translates only the types.
"""

from collections.abc import Callable

from builder.model.errors import OperatorError
from builder.model.metrics import Counter

ACCOUNTS_ERRORS = Counter(
    "hub_accounts_errors_total", "Failed statements of the accounts database."
)

# Times are epoch seconds. No table has a secret, only its hash.
_RELEASE_1_0 = """
CREATE TABLE owner (
    handle TEXT PRIMARY KEY, created_at INTEGER NOT NULL,
    look TEXT NOT NULL,               -- what the handle looks like (`skeleton`), so that nobody
                                      -- takes one that is mistaken for it
    locked_at INTEGER                 -- since when the owner is shut out; null: is not
) WITHOUT ROWID;
CREATE INDEX owner_look ON owner (look);
CREATE TABLE token (
    id TEXT PRIMARY KEY,              -- public: names a token in lists and logs
    hash BLOB NOT NULL UNIQUE,        -- SHA-256 of the token's text, which is nowhere
    owner TEXT NOT NULL REFERENCES owner (handle),
    name TEXT NOT NULL,
    repos TEXT NOT NULL,              -- joined by spaces; empty: all of the owner's
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER,
    trusted_publisher TEXT,           -- who trusts its job, joined by spaces; null: personal
    rights TEXT NOT NULL,             -- joined by spaces
    labels TEXT NOT NULL              -- joined by spaces; empty: all that are not protected
) WITHOUT ROWID;
CREATE UNIQUE INDEX token_name ON token (owner, name) WHERE revoked_at IS NULL;
CREATE INDEX token_owner ON token (owner);
CREATE INDEX token_job ON token (expires_at) WHERE trusted_publisher IS NOT NULL;
CREATE TABLE answer (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,                -- the Idempotency-Key of the request
    fingerprint BLOB NOT NULL,        -- of the request
    version TEXT NOT NULL,
    previous_version TEXT,
    record_sha256 BLOB,               -- null: nothing was written
    label_number INTEGER,             -- of a label's change, where no new version says so
    kept_until INTEGER NOT NULL
);
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
    labels TEXT NOT NULL,             -- that its jobs may move, joined by spaces; empty: none
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
CREATE TABLE protected_label (        -- that only a token moves which names them
    owner TEXT NOT NULL REFERENCES owner (handle),
    repo TEXT NOT NULL,               -- empty: all of the owner's
    label TEXT NOT NULL,
    PRIMARY KEY (owner, repo, label)
) WITHOUT ROWID;
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


# Releases before 1.0 had other tables. Each entry upgrades to the next version.
FIRST_VERSION = 5
MIGRATIONS = (_RELEASE_1_0, _ATTEMPTS, _SOURCES, _TEAMS, _LABEL_ONLY)
SCHEMA_VERSION = FIRST_VERSION + len(MIGRATIONS) - 1


def upgrade(version: int, define: Callable[[str], object]) -> None:
    """Upgrades the tables of ``version`` (0: none exist) to SCHEMA_VERSION, within a transaction.
    ``define`` runs a statement. Raises OperatorError for tables from before release 1.0.
    """
    if 0 < version < FIRST_VERSION:
        raise OperatorError(
            "The accounts are from before release 1.0. Start that release on them once, then this."
        )
    for migration in MIGRATIONS[max(0, version - FIRST_VERSION + 1) :]:
        for statement in filter(str.strip, migration.split(";\n")):
            define(statement)
