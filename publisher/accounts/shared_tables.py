"""The tables of what many nodes publish, which PostgreSQL has beside those of the accounts.

``hub`` has one row, whose lock orders all changes. ``change`` has a row for each file that was
published: ``serial`` has no gaps, and ``request`` is random, so it tells who asked and one history
from another. The keys of the table refuse a number that is given twice, whatever the code does.
``turn`` says which node does what only one may do at a time.
"""

TABLES = (
    """CREATE TABLE hub (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        serial BIGINT NOT NULL               -- the highest one of `change`
    )""",
    "INSERT INTO hub VALUES (1, 0)",
    """CREATE TABLE change (
        serial BIGINT PRIMARY KEY,
        request UUID NOT NULL UNIQUE,
        owner TEXT COLLATE "C" NOT NULL,
        repo TEXT COLLATE "C" NOT NULL,      -- OWNER/NAME; the owner alone for a profile
        kind TEXT COLLATE "C" NOT NULL,
        name TEXT COLLATE "C" NOT NULL,      -- version, number of a label's change, …
        record BYTEA NOT NULL,
        text BYTEA,                          -- of a version, until it is withdrawn
        UNIQUE (repo, kind, name)
    )""",
    "CREATE INDEX change_repo ON change (repo, serial)",
    "CREATE INDEX change_owner ON change (owner, serial)",
    """CREATE TABLE turn (
        what TEXT PRIMARY KEY,
        generation BIGINT NOT NULL,          -- rises each time that another process takes it
        holder UUID NOT NULL,
        until TIMESTAMPTZ NOT NULL,          -- by the clock of this database
        noted BIGINT NOT NULL                -- the highest serial that any holder began to handle
    )""",
)  # fmt: skip
