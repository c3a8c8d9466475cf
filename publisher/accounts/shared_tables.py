"""The tables of everything that many nodes publish, which PostgreSQL has beside those of the
accounts.

``hub`` has one row, whose lock orders all changes. ``change`` has a row for each published file:
``serial`` has no gaps, and ``request`` is random, so it identifies the history. The keys of the
table refuse a number that is given twice, whatever the code does. ``turn`` says which node has its
turn at work that one node does at a time.

``commit_changes`` commits a group of changes. It is a function, so PostgreSQL plans its statements
once for each connection
(https://www.postgresql.org/docs/current/plpgsql-implementation.html#PLPGSQL-PLAN-CACHING). Nothing
has to be prepared, which poolers do not allow.
"""

# Commits the rows that no other change overtook since `seen`, and whose requests have no answer
# yet. Returns the serials of all requests that are committed. A row without `kind` is only an
# answer. Commits nothing in another history, which lacks the row `mark`.
#
# A commit waits for the disk, whatever the server's default. Each statement sees all that was
# committed before it begins (READ COMMITTED). So all statements see everything that was committed
# before the lock.
COMMIT_CHANGES = """CREATE FUNCTION commit_changes(
    changes json, mark_serial bigint, mark_request uuid, at_second bigint, keep_until bigint
) RETURNS TABLE (done uuid, done_serial bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
PERFORM set_config('synchronous_commit',
    replace(current_setting('synchronous_commit'), 'off', 'on'), true);
PERFORM FROM hub WHERE id = 1 FOR UPDATE;
IF mark_request IS NOT NULL
    AND mark_request IS DISTINCT FROM (SELECT request FROM change WHERE serial = mark_serial)
THEN
    RETURN;
END IF;
RETURN QUERY WITH w AS MATERIALIZED (
    SELECT w.*,
        (SELECT max(c.serial) FROM change c
            WHERE c.repo = w.repo AND c.serial > w.seen) IS NOT NULL
        OR w.by_owner AND (SELECT max(c.serial) FROM change c
            WHERE c.owner = w.owner AND c.serial > w.seen) IS NOT NULL
        OR (SELECT c.serial FROM change c WHERE c.request = w.request) IS NOT NULL
        OR w.key IS NOT NULL AND (SELECT count(*) FROM answer a WHERE a.owner = w.key_owner
            AND a.key = w.key AND a.kept_until > at_second) > w.known
        AS late
    FROM json_to_recordset(changes) AS w(
        n int, request uuid, owner text, repo text, kind text, name text, record text, text text,
        seen bigint, by_owner boolean, key_owner text, key text, known bigint, fingerprint text,
        version text, previous_version text, record_sha256 text, label_number bigint
    )
), fine AS MATERIALIZED (
    SELECT *, count(kind) OVER (ORDER BY n) AS k FROM w WHERE NOT late
), h AS (
    UPDATE hub SET serial = serial + (SELECT count(kind) FROM fine)
    WHERE id = 1 AND EXISTS (SELECT FROM fine)
    RETURNING serial - (SELECT count(kind) FROM fine) AS base
), kept AS (
    INSERT INTO answer (owner, key, fingerprint, version, previous_version, record_sha256,
        label_number, kept_until)
    SELECT key_owner, key, decode(fingerprint, 'base64'), version, previous_version,
        decode(record_sha256, 'base64'), label_number, keep_until
    FROM fine WHERE version IS NOT NULL
), put AS (
    INSERT INTO change (serial, request, owner, repo, kind, name, record, text)
    SELECT base + k, request, owner, repo, kind, name,
        decode(record, 'base64'), decode(text, 'base64')
    FROM fine, h WHERE kind IS NOT NULL
), taken AS (  -- a withdrawal takes its texts away; no group has two changes of a prompt
    UPDATE change v SET record = '', text = NULL FROM fine
    WHERE fine.kind = 'withdrawal' AND v.repo = fine.repo AND v.kind = 'version'
        AND fine.name IN (v.name, 'all')
)
SELECT request, base + k FROM fine, h
UNION ALL SELECT c.request, c.serial FROM w JOIN change c ON c.request = w.request;
END $$"""

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
    COMMIT_CHANGES,
    """CREATE TABLE turn (
        what TEXT PRIMARY KEY,
        generation BIGINT NOT NULL,          -- rises each time that another process takes it
        holder UUID NOT NULL,
        until TIMESTAMPTZ NOT NULL,          -- by the clock of this database
        noted BIGINT NOT NULL                -- the highest serial that any holder began to handle
    )""",
)
