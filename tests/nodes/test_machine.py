"""Three nodes with clients at all of them, under many faults.

Nodes are killed, paused and wiped. The database fails, answers late or not at all. The
primary crashes; its standby is lost or takes over. At rest nothing acknowledged is lost, everything
is in one order, and all nodes have the same site.

One fault is left out: a standby that takes over without the last changes. It takes back
acknowledged work, and no node writes before an operator renews it, so none of the above can be
checked. ``test_a_history_that_lost_changes_is_recognized_before_anything_is_written``, in
``tests/publisher/nodes/test_standby.py``, fails over to such a standby while a node runs.

NODES_OPERATIONS is the number of operations, NODES_SEED chooses what happens. Operations and faults
are the same for a seed; their times are not.
"""

import os
import random
import threading
import time
from pathlib import Path

from publisher.accounts.database import Database
from tests.nodes.client import Client, Notes, Published
from tests.nodes.cluster import Cluster, database_of, running_cluster
from tests.nodes.rest import faults, order_faults, resolved
from tests.nodes.trouble import Trouble
from tests.support.depth import QUARTER
from tests.support.linearizability import Prompt, complaints, step_prompt
from tests.support.servers import DEADLINE_SECONDS

OPERATIONS = int(os.environ.get("NODES_OPERATIONS", "200"))
SEED = int(os.environ.get("NODES_SEED", QUARTER or 0))
CLIENTS = 8
OWNERS = ("ann", "bob", "cleo")
REPOS = tuple(f"{owner}/{name}" for owner in OWNERS for name in ("story", "review"))
# Seconds by which the clocks are off.
SKEWS = (0, 60, -60)
# Operations between one trouble and the next.
TROUBLE_EVERY = 12


class Run:
    """Clients in threads, and trouble beside them."""

    def __init__(self, cluster: Cluster, seed: int, trouble: Trouble) -> None:
        self.notes = Notes()
        self.trouble = trouble
        self._clients = [
            Client(cluster, self.notes, REPOS, random.Random(f"{seed}/{number}"))
            for number in range(CLIENTS)
        ]
        self._failures: list[BaseException] = []

    def go(self, operations: int) -> None:
        """Do so many operations; raises what went wrong in a client."""
        threads = [
            threading.Thread(target=self._work, args=(client, operations), daemon=True)
            for client in self._clients
        ]
        for thread in threads:
            thread.start()
        due = min(TROUBLE_EVERY, operations)
        seen, since = 0, time.monotonic()
        while any(thread.is_alive() for thread in threads):
            if self.notes.done >= due:
                # After the last operation, no client waits for a paused node.
                self.trouble.make() if self.notes.done < operations else self.trouble.heal()
                due = max(min(self.notes.done + TROUBLE_EVERY, operations), self.notes.done + 1)
            if self.notes.done != seen:
                seen, since = self.notes.done, time.monotonic()
            assert time.monotonic() - since < DEADLINE_SECONDS, f"nothing happens after {seen}"
            time.sleep(0.01)
        if self._failures:
            raise self._failures[0]

    def _work(self, client: Client, operations: int) -> None:
        try:
            while self.notes.done < operations and not self._failures:
                client.do_one()
        except BaseException as error:
            self._failures.append(error)
        finally:
            client.close()


def test_operations_and_trouble(installed_tools: None, tmp_path: Path) -> None:
    with running_cluster(tmp_path, OWNERS, SKEWS) as cluster:
        run = Run(cluster, SEED, Trouble(cluster, random.Random(f"{SEED}/trouble")))
        try:
            run.go(OPERATIONS)
            published = verdict(cluster, run)
        except BaseException as error:
            trouble = "\n".join(run.trouble.made)
            error.add_note(f"NODES_SEED={SEED} NODES_OPERATIONS={OPERATIONS}\n{trouble}")
            error.add_note(cluster.output)
            raise
    # It is no proof if next to nothing has happened.
    assert len(published) >= OPERATIONS // 10
    assert {"heal"} < {*run.trouble.made}


def verdict(cluster: Cluster, run: Run) -> list[Published]:
    """Fails where anything is wrong; what was acknowledged, if not."""
    notes = run.notes
    cluster.heal()
    # Each node publishes still, and with that, all remove what builds have left to readers.
    quiet = Client(cluster, notes, REPOS, random.Random(0))
    for repo in REPOS:
        quiet.publish(repo)
    cluster.wait_same()
    root = cluster.nodes[0].settings.content
    assert notes.complaints == []
    assert faults(root, REPOS, notes.published) == []
    with Database(database_of(cluster.pair)) as database:
        rows = database.execute("SELECT serial, repo, kind, name FROM change ORDER BY serial")
    assert [serial for serial, *_ in rows] == [*range(1, len(rows) + 1)]
    versions = [(serial, repo, name) for serial, repo, kind, name in rows if kind == "version"]
    assert order_faults(versions, notes.published) == []
    history = resolved(notes.history, root)
    assert complaints(history, step_prompt, Prompt()) == []
    return notes.published
