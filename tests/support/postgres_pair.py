"""A PostgreSQL with a synchronous standby, and PgBouncer before a PostgreSQL."""

import contextlib
import os
import signal
from collections.abc import Iterator
from urllib.parse import urlsplit

from tests.support.postgres import PASSWORD, Postgres
from tests.support.servers import Process, free_port, wait_until

# Connections that wait until a standby confirms their commit.
WAITING = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


class Pair:
    """``primary`` confirms no commit before ``standby`` has it."""

    def __init__(self) -> None:
        self.primary = Postgres()
        self.standby = Postgres()
        self._servers = [self.primary, self.standby]

    def start(self) -> None:
        self.primary.make()
        self.primary.start()
        self.set_synchronous("standby")
        self.standby.copy(self.primary)
        self.standby.start()
        self.wait_confirmed()

    def remove(self) -> None:
        for server in self._servers:
            server.remove()

    def set_synchronous(self, names: str) -> None:
        self.primary.execute(
            "postgres",
            f"ALTER SYSTEM SET synchronous_standby_names = '{names}'",
            "SELECT pg_reload_conf()",
        )

    def wait_confirmed(self) -> None:
        """Wait until the standby has all that can be seen now, and confirms what comes."""
        ((lsn,),) = self.primary.execute("postgres", "SELECT pg_current_wal_lsn()")
        wait_until(
            lambda: self.primary.execute(
                "postgres",
                "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' "
                f"AND flush_lsn >= '{lsn}'",
            ),
            "the standby",
        )

    def cancel_waits(self) -> None:
        """Each commit that waits for the standby succeeds with a warning."""
        self.primary.execute("postgres", f"SELECT pg_cancel_backend(pid) {WAITING}")

    def fail_over(self) -> None:
        """The primary crashes, and the standby takes over; then it has a new standby itself."""
        self.primary.stop()
        self.standby.start()
        self.standby.promote()
        self._begin_again(self.standby)

    def backup(self) -> Postgres:
        """A server to ``restore``, which stops at the restore point ``before``."""
        made = Postgres(recovery_target_name="before", recovery_target_action="promote")
        made.copy(self.primary)
        self._servers.append(made)
        return made

    def restore(self, backup: Postgres) -> None:
        """Put a backup in the place of the primary, as of its restore point."""
        backup.start()
        wait_until(
            lambda: backup.execute("postgres", "SELECT pg_is_in_recovery()") == [(False,)],
            "the end of the recovery",
        )
        self.primary.stop()
        self.standby.stop()
        self._begin_again(backup)

    def _begin_again(self, primary: Postgres) -> None:
        self.primary, self.standby = primary, Postgres()
        self._servers.append(self.standby)
        self.standby.copy(primary)
        self.standby.start()
        self.wait_confirmed()


def url_of(url: str, *servers: Postgres) -> str:
    """The URL of the same database on the server that accepts writes."""
    there = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return url.replace(urlsplit(url).netloc.rpartition("@")[2], there)


@contextlib.contextmanager
def running_pair() -> Iterator[Pair]:
    pair = Pair()
    try:
        pair.start()
        yield pair
    finally:
        pair.remove()


@contextlib.contextmanager
def running_pgbouncer(postgres: Postgres) -> Iterator[str]:
    """The address of a PgBouncer that gives each transaction another connection."""
    port = free_port()
    users = postgres.folder / "pgbouncer-users"
    users.write_text(f'"hub" "{PASSWORD}"\n')
    users.chmod(0o644)
    settings = postgres.folder / "pgbouncer.ini"
    settings.write_text(f"""
[databases]
* = host=127.0.0.1 port={postgres.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
""")
    process = Process(
        *(
            ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            if os.geteuid() == 0
            else []
        ),
        "pgbouncer",
        str(settings),
    )
    try:
        process.wait_for_line("process up")
        yield f"127.0.0.1:{port}"
    finally:
        process.stop(signal.SIGKILL)
