"""A PostgreSQL server for tests: in a folder of its own, at a free port, removed at the end."""

import contextlib
import getpass
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from publisher.accounts.database import Database
from tests.support.servers import free_port, wait_until

PASSWORD = "not/for:people@all"
QUOTED_PASSWORD = "not%2Ffor%3Apeople%40all"
# The folder where packages keep programs that only the server needs.
_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")


def program(name: str) -> str:
    """The path of a program of PostgreSQL."""
    found = [path for folder in _FOLDERS for path in Path("/").glob(f"{folder[1:]}/{name}")]
    path = max(map(str, found), default=None) or shutil.which(name)
    assert path, f"No {name}. Run `make test-all`, which installs PostgreSQL."
    return path


class Postgres:
    """A server that can be stopped and started again. Over TCP it requires PASSWORD."""

    # Numbers of databases are unique across servers, as one server may be a copy of another.
    _numbers = itertools.count()

    def __init__(self, **settings: str) -> None:
        # pytest's folder belongs to its user alone, so this one is outside it.
        self.folder = Path(tempfile.mkdtemp(prefix="hub-pg-"))
        self.port = free_port()
        # It does not run as root.
        self._user = "postgres" if os.geteuid() == 0 else getpass.getuser()
        self._process: subprocess.Popen | None = None
        # Statements that empty the database of ``accounts``.
        self._emptying: list[str] = []
        if os.geteuid() == 0:
            os.chown(self.folder, pwd.getpwnam(self._user).pw_uid, -1)
        self.data = self.folder / "data"
        self._settings = settings

    def make(self) -> None:
        """Make an empty cluster."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run(
            "initdb", "--pgdata", str(self.data), "--username", "hub", "--auth", "scram-sha-256",
            "--pwfile", str(secret), "--encoding", "UTF8", "--locale-provider", "icu",
            "--icu-locale", "en", "--no-sync",
        )  # fmt: skip

    def copy(self, of: "Postgres") -> None:
        """Make a standby of another."""
        self._run(
            "pg_basebackup", "--pgdata", str(self.data), "--write-recovery-conf", "--no-sync",
            "--checkpoint", "fast", "--dbname",
            of.url("postgres") + "?application_name=standby",
        )  # fmt: skip

    def promote(self) -> None:
        """Let a standby take over."""
        self.execute("postgres", "SELECT pg_promote()")

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._process:
            return
        settings = {
            "port": str(self.port), "listen_addresses": "127.0.0.1", "fsync": "off",
            "unix_socket_directories": str(self.folder), "shared_buffers": "16MB",
            "wal_retrieve_retry_interval": "100ms",
        } | self._settings  # fmt: skip
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [program("postgres"), "-D", str(self.data)]
                + [f"--{name}={value}" for name, value in settings.items()],
                stdout=log, stderr=log, cwd=self.folder, **self._as_user(),
            )  # fmt: skip
        wait_until(self._answers, "PostgreSQL")

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self.folder / "log").read_text()
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.url("postgres")).close()
            return True
        return False

    def send(self, number: int) -> None:
        """Send a signal to the server and all of its processes."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for pid in [*map(int, children.read_text().split()), self._process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self, how: int = signal.SIGQUIT) -> None:
        """SIGQUIT: at once, as in a crash. SIGINT: connections are ended."""
        if self._process:
            self._process.send_signal(how)
            self._process.wait(300)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def url(self, database: str) -> str:
        return f"postgresql://hub:{QUOTED_PASSWORD}@127.0.0.1:{self.port}/{database}"

    def new_database(self, options: str = "") -> str:
        """The URL of a new database."""
        name = f"hub{next(self._numbers)}"
        self.execute("postgres", f"CREATE DATABASE {name} {options}")
        return self.url(name)

    def accounts(self) -> str:
        """The URL of an empty accounts database. It is the same one each time, because creating one
        takes longer than most tests.
        """
        name = "accounts"
        if not self._emptying:
            self.execute("postgres", f"CREATE DATABASE {name}")
            Database(self.url(name)).close()
            tables = self.execute(name, "SELECT tablename FROM pg_tables WHERE schemaname='public'")
            # Rows may refer to each other in any order.
            self._emptying = ["SET session_replication_role = replica"] + [
                f"DELETE FROM {table}"
                for (table,) in tables
                if not self.execute(name, f"SELECT 1 FROM {table}")
            ]
        self.execute(name, *self._emptying)
        return self.url(name)

    def execute(self, database: str, *statements: str) -> list[tuple]:
        """The rows of the last statement."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _run(self, name: str, *arguments: str) -> None:
        subprocess.run(
            [program(name), *arguments], check=True, capture_output=True, cwd=self.folder,
            **self._as_user(),
        )  # fmt: skip

    def _as_user(self) -> dict[str, object]:
        return (
            {"user": self._user, "group": self._user, "extra_groups": ()}
            if os.geteuid() == 0
            else {}
        )


@contextlib.contextmanager
def running_postgres(**settings: str) -> Iterator[Postgres]:
    """A server with an empty cluster."""
    server = Postgres(**settings)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgres(installed_tools: None) -> Iterator[Postgres]:
    """A server for tests that leave it as it is, each with databases of its own."""
    with running_postgres() as server:
        yield server


# For tests of features that only SQLite has.
only_sqlite = pytest.mark.parametrize("accounts_place", ["sqlite"], indirect=True)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.tools)])
def accounts_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of accounts for ``Database``: a folder (SQLite) or a URL (PostgreSQL)."""
    if request.param == "sqlite":
        return str(tmp_path / "var")
    return request.getfixturevalue("postgres").accounts()
