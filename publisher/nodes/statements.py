"""The statements that commit and read what is published; ``shared_tables`` has the tables."""

LOCK = "SELECT serial FROM hub WHERE id = 1 FOR UPDATE"

# Commits those changes that nobody overtook since what they were decided by, and whose requests
# have no answer yet; a row without `kind` is only an answer. Gives the serials of what is there.
PUT = """WITH w AS MATERIALIZED (
    SELECT w.*,
        (w.history IS NOT NULL AND w.history IS DISTINCT FROM
            (SELECT c.request FROM change c WHERE c.serial = w.seen))
        OR (SELECT max(c.serial) FROM change c
            WHERE c.repo = w.repo AND c.serial > w.seen) IS NOT NULL
        OR w.by_owner AND (SELECT max(c.serial) FROM change c
            WHERE c.owner = w.owner AND c.serial > w.seen) IS NOT NULL
        OR (SELECT c.serial FROM change c WHERE c.request = w.request) IS NOT NULL
        OR w.key IS NOT NULL AND (SELECT count(*) FROM answer a
            WHERE a.owner = w.key_owner AND a.key = w.key AND a.kept_until > %(now)s) > w.known
        AS late
    FROM unnest(
        %(request)s::uuid[], %(owner)s::text[], %(repo)s::text[], %(kind)s::text[],
        %(name)s::text[], %(record)b::bytea[], %(text)b::bytea[], %(seen)s::bigint[],
        %(history)s::uuid[], %(by_owner)s::boolean[], %(key_owner)s::text[], %(key)s::text[],
        %(known)s::bigint[], %(fingerprint)b::bytea[], %(version)s::text[],
        %(previous_version)s::text[], %(record_sha256)b::bytea[], %(label_number)s::bigint[]
    ) WITH ORDINALITY AS w(
        request, owner, repo, kind, name, record, text, seen, history, by_owner, key_owner, key,
        known, fingerprint, version, previous_version, record_sha256, label_number, n
    )
), sound AS (  -- what was decided on top of a refused change is refused, too
    SELECT *, bool_or(late) OVER (PARTITION BY repo ORDER BY n)
        OR by_owner AND bool_or(late) OVER (PARTITION BY owner ORDER BY n) AS fails
    FROM w
), fine AS MATERIALIZED (
    SELECT *, count(kind) OVER (ORDER BY n) AS k FROM sound WHERE NOT fails
), h AS (
    UPDATE hub SET serial = serial + (SELECT count(kind) FROM fine)
    WHERE id = 1 AND EXISTS (SELECT 1 FROM fine)
    RETURNING serial - (SELECT count(kind) FROM fine) AS base
), kept AS (
    INSERT INTO answer (owner, key, fingerprint, version, previous_version, record_sha256,
        label_number, kept_until)
    SELECT key_owner, key, fingerprint, version, previous_version, record_sha256, label_number,
        %(kept_until)s FROM fine, h WHERE version IS NOT NULL
), put AS (
    INSERT INTO change (serial, request, owner, repo, kind, name, record, text)
    SELECT base + k, request, owner, repo, kind, name, record, text
    FROM fine, h WHERE kind IS NOT NULL
)
SELECT request, base + k FROM fine, h
UNION ALL SELECT c.request, c.serial FROM w JOIN change c ON c.request = w.request"""

# In the transaction of the withdrawals with these requests.
TAKE_TEXTS = """UPDATE change v SET record = '', text = NULL FROM change w
WHERE w.request = ANY(%(request)s::uuid[]) AND w.kind = 'withdrawal' AND v.repo = w.repo
    AND v.kind = 'version' AND v.serial < w.serial AND w.name IN (v.name, %(whole)s)"""

# Ends what holds the hub's row and waits for a client that has stopped while it sent: no timeout of
# the server ends that. Whoever waits for its disk or its standby is left alone.
END_STOPPED = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid IN (SELECT pid FROM pg_locks WHERE relation = 'hub'::regclass AND granted)
    AND pid <> pg_backend_pid() AND application_name = 'prompt-hub' AND wait_event = 'ClientRead'
    AND xact_start < clock_timestamp() - make_interval(secs => %s)"""

# A page. With `>=`, its first row is the one that the node has, or this is another history; what
# that row says is not sent again.
SINCE = """SELECT serial, request, owner, repo, kind, name,
    CASE WHEN serial > %(serial)s THEN record END, CASE WHEN serial > %(serial)s THEN text END
FROM (
    SELECT *, sum(octet_length(record) + coalesce(octet_length(text), 0))
        OVER (ORDER BY serial) AS size
    FROM change WHERE serial >= %(serial)s ORDER BY serial LIMIT %(rows)s
) AS page WHERE size <= %(bytes)s OR serial <= %(serial)s + 1 ORDER BY serial"""

# What is there after a decision: the hub's serial, the request of the row that was seen last, and
# the newest change of what it was decided by.
NEWER = """SELECT serial, (SELECT request FROM change WHERE serial = %(seen)s),
    greatest(
        (SELECT max(serial) FROM change WHERE repo = %(repo)s AND serial > %(seen)s),
        (SELECT max(serial) FROM change
            WHERE %(by_owner)s AND owner = %(owner)s AND serial > %(seen)s))
FROM hub WHERE id = 1"""

FORGET_ANSWERS = "DELETE FROM answer WHERE kept_until <= %s"
