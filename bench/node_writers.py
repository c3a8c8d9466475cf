"""Work on a database that nodes share, in a process of its own. It publishes through a node's
write path, without HTTP and without building; commits without one; or reads everything.

``python bench/node_writers.py WHAT URL FOLDER CLIENTS SECONDS`` prints its figures as JSON. WHAT:

- ``publish``: clients publish versions to prompts of their own, as the endpoint does
- ``commit``: clients have changes committed that were decided before; this is the commit alone
- ``steps``: one transaction after another, a round trip each for the lock, the row, the commit
- ``bare``: one statement after another that inserts a row, each a transaction
- ``read``: a new node, until it has everything
"""

import contextlib
import itertools
import json
import os
import resource
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import psycopg

from builder.model.request_bodies import Draft
from publisher.accounts.database import open_postgres
from publisher.nodes import rows
from publisher.nodes.rows import VERSION, File
from publisher.nodes.store import Shared
from publisher.write.publish import publish

TEXT = "Write down what this text has to say, point by point, and leave nothing out.\n" * 26
READY_SECONDS_MAX = 600
PROMPTS_EACH = 4
# Versions of each prompt: more would add to the time of deciding, which is not measured here.
VERSIONS_EACH = 10

Work = Callable[[int, int], None]


def main() -> None:
    what, url, folder, clients, seconds = sys.argv[1:]
    if what in ("steps", "bare"):
        with psycopg.connect(url, autocommit=True) as connection:
            work = steps(connection) if what == "steps" else bare(connection)
            print(json.dumps(timed(work, 1, float(seconds))))
        return
    with (
        contextlib.closing(open_postgres(url)) as engine,
        Shared(folder, engine.connections) as store,
    ):
        started = time.perf_counter()
        if not store.wait_ready(READY_SECONDS_MAX):
            store.check()
            raise SystemExit("The node is not ready.")
        if what == "read":
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(json.dumps({"seconds": time.perf_counter() - started, "kilobytes": peak}))
            return
        work = publications(store) if what == "publish" else commits(store)
        print(json.dumps(timed(work, int(clients), float(seconds))))


def timed(work: Work, clients: int, seconds: float) -> dict[str, object]:
    """Let clients work at once; ``milliseconds`` of each, and the number a second."""
    gate, is_over = threading.Barrier(clients + 1), threading.Event()

    def one(client: int) -> list[float]:
        found = []
        gate.wait()
        for number in itertools.count():
            began = time.perf_counter()
            work(client, number)
            found.append((time.perf_counter() - began) * 1000)
            if is_over.is_set():
                return found

    with ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(one, client) for client in range(clients)]
        gate.wait()
        began = time.perf_counter()
        is_over.wait(seconds)
        is_over.set()
        found = [each for client in running for each in client.result()]
        elapsed = time.perf_counter() - began
    return {"per_second": len(found) / elapsed, "milliseconds": found}


def publications(store: Shared) -> Work:
    own = uuid.uuid4().hex[:8]

    def work(client: int, number: int) -> None:
        turn = number // (PROMPTS_EACH * VERSIONS_EACH)
        name = f"p-{own}-{client}-{turn}-{number % PROMPTS_EACH}"
        publish(store, "ann", name, Draft(content=f"{TEXT}{number}\n"), publisher="ann")

    return work


def commits(store: Shared) -> Work:
    own = uuid.uuid4().hex[:8]

    def work(client: int, number: int) -> None:
        repo = f"ann/c-{own}-{client}-{number % PROMPTS_EACH}"
        file = File(repo, VERSION, f"1.0.{number}", b"{}" * 150, TEXT.encode())
        seen = store._copy.mark.serial
        change = rows.make_change("ann", repo, [file], seen, by_owner=False)
        store._commits.commit(change)

    return work


def steps(connection: psycopg.Connection) -> Work:
    own = uuid.uuid4().hex[:8]

    def work(client: int, number: int) -> None:
        cursor = connection.execute(
            "BEGIN; UPDATE hub SET serial = serial + 1 WHERE id = 1 RETURNING serial"
        )
        cursor.nextset()
        ((serial,),) = cursor.fetchall()
        values = (serial, uuid.uuid4(), f"ann/s-{own}", f"1.0.{number}", b"{}" * 150, TEXT.encode())
        connection.execute(
            "INSERT INTO change VALUES (%s, %s, 'ann', %s, 'version', %s, %s, %s)", values
        )
        connection.execute("COMMIT")

    return work


def bare(connection: psycopg.Connection) -> Work:
    connection.execute("CREATE TABLE IF NOT EXISTS bare (id UUID PRIMARY KEY, text BYTEA)")

    def work(client: int, number: int) -> None:
        connection.execute("INSERT INTO bare VALUES (%s, %s)", (uuid.uuid4(), TEXT.encode()))

    return work


if __name__ == "__main__":
    main()
