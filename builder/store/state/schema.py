"""The tables of the state."""

import zlib

from builder.model.routes import ROUTES

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE repo (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,          -- owner/name
    owner TEXT NOT NULL,
    mark TEXT NOT NULL,               -- of its files; empty: look again
    versions_count INTEGER NOT NULL,
    pulls INTEGER NOT NULL,           -- 0 where nobody counts them, so that orders hold meanwhile
    updated INTEGER NOT NULL,         -- epoch seconds
    created INTEGER NOT NULL,
    trend INTEGER NOT NULL,
    tags TEXT NOT NULL,               -- joined by spaces
    kind TEXT NOT NULL,               -- "/" and a word, so that no tag is equal
    trial INTEGER NOT NULL,           -- suits the home page; greater is better, 0: does not
    digest BLOB NOT NULL,             -- of summary, card and langfuse
    search_digest BLOB NOT NULL,      -- of all that search looks at
    line BLOB NOT NULL,
    summary BLOB NOT NULL,
    card BLOB NOT NULL,
    langfuse BLOB NOT NULL,           -- in lists for Langfuse's SDKs; empty: there are none
    skill BLOB NOT NULL,              -- in the files of its owner
    names TEXT NOT NULL,              -- of the versions on the site, joined by spaces
    versions BLOB NOT NULL,           -- what is on the site, for the next build of this repo
    labels BLOB NOT NULL,             -- the same for its changes of labels
    withdrawn TEXT NOT NULL,          -- versions, joined by spaces
    gone BLOB NOT NULL                -- their lines in withdrawn.jsonl
);
-- What follows the first piece of a long BLOB of a repo. A version more changes the last one alone.
CREATE TABLE piece (
    repo TEXT NOT NULL, field TEXT NOT NULL, number INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (repo, field, number)
) WITHOUT ROWID;
CREATE TABLE tag (
    name TEXT NOT NULL,               -- or the kind
    repo INTEGER NOT NULL,
    -- As in its repo, so that the first page of a tag's list is found without reading the rest.
    id TEXT NOT NULL,
    digest BLOB NOT NULL,
    pulls INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    created INTEGER NOT NULL,
    trend INTEGER NOT NULL,
    PRIMARY KEY (name, repo)
) WITHOUT ROWID;
-- Repos of which nothing can be read any more, and how many versions they had.
CREATE TABLE withdrawn (
    id TEXT PRIMARY KEY, mark TEXT NOT NULL, versions_count INTEGER NOT NULL,
    gone BLOB NOT NULL                -- as in a repo
) WITHOUT ROWID;
-- How many repos have a tag or are of a kind, and, without a name, how many there are.
CREATE TABLE total (
    tag TEXT PRIMARY KEY, repos INTEGER NOT NULL, versions INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE owner (
    handle TEXT PRIMARY KEY, mark TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE page (
    tag TEXT NOT NULL,                -- empty: all repos
    sort TEXT NOT NULL, number INTEGER NOT NULL,
    digest BLOB NOT NULL,             -- empty: may be on the site, and with any rows
    PRIMARY KEY (tag, sort, number)
) WITHOUT ROWID;
-- What is on the site (``model.objects``): says what to remove, and what is lost.
CREATE TABLE object (
    id TEXT PRIMARY KEY,
    files BLOB NOT NULL               -- by number of route or path, in the order of writing
) WITHOUT ROWID;
-- Which counts of pulls the site has or is about to get, in one row; no row: none.
CREATE TABLE pulls (serial INTEGER NOT NULL, nonce TEXT);
-- What is begun. Committed before the first file of it is touched, so a build that dies is
-- taken up where it was.
CREATE TABLE todo (
    kind TEXT NOT NULL,               -- a Work
    name TEXT NOT NULL,               -- of a piece of it
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
-- What may have lost its object; if it has, the build after the next removes it, or the next
-- where it is due. Outlives the rest, or repeated full builds would remove nothing.
CREATE TABLE IF NOT EXISTS orphan (
    file TEXT PRIMARY KEY, is_due INTEGER NOT NULL
) WITHOUT ROWID;
"""

# Separate, because creating them is cheaper once the tables are filled.
INDEXES = """
CREATE INDEX repo_mark ON repo (id, mark);
CREATE INDEX repo_owner ON repo (owner);
CREATE INDEX repo_top ON repo (pulls DESC, updated DESC, id, digest);
CREATE INDEX repo_trending ON repo (trend DESC, id, digest);
CREATE INDEX repo_new ON repo (created DESC, id, digest);
CREATE INDEX repo_gone ON repo (id) WHERE withdrawn > '';
CREATE INDEX repo_trial ON repo (trial DESC, pulls DESC, updated DESC, id) WHERE trial > 0;
CREATE INDEX tag_top ON tag (name, pulls DESC, updated DESC, id);
CREATE INDEX tag_trending ON tag (name, trend DESC, id);
CREATE INDEX tag_new ON tag (name, created DESC, id);
"""

# Tables that survive a reset, as long as the schema is the same.
LASTING = ("orphan",)
SCHEMA_VERSION = zlib.crc32(f"{SCHEMA}{INDEXES}{[route.name for route in ROUTES]}".encode()) >> 1
