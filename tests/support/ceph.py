"""A Ceph of the tests' own, which keeps objects in memory: a monitor, a storage daemon, and two
gateways that speak S3.
"""

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests.support.object_stores import S3Server
from tests.support.servers import (
    DEADLINE_SECONDS,
    Process,
    clean_environment,
    free_port,
    lasting_port,
    wait_until,
)

_KEY, _SECRET = "hub", "s3cret-of-Ceph"

# Its programs do not authenticate to each other. Without `crc` a gateway asks the monitor for an
# encrypted connection, which needs a key, and fails with -13. Short intervals: the monitor collects
# changes for a second, and a killed gateway holds up new buckets for 30 s, until its watch ends.
_CONFIG = """\
[global]
fsid = {id}
mon host = v2:127.0.0.1:{port}
public network = 127.0.0.0/8
ms bind msgr1 = false
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
keyring = {folder}/keyring
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}
run dir = {folder}
crash dir = {folder}
admin socket =
log file =
mon cluster log file =
mon data avail crit = 1
paxos propose interval = 0.02
paxos min wait = 0.01
osd objectstore = memstore
osd client watch timeout = 2
osd class update on start = false
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default pg num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
"""


class Gateway:
    """A program that speaks S3 for the cluster: ``server``. It can be killed and started again."""

    def __init__(self, environment: dict[str, str]) -> None:
        port = lasting_port()
        self._endpoint = ("127.0.0.1", port)
        self._environment = environment
        self._process: Process | None = None
        url = f"http://127.0.0.1:{port}"
        self.server = S3Server(f"127.0.0.1:{port}", {
            "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": _KEY, "AWS_SECRET_ACCESS_KEY": _SECRET,
        })  # fmt: skip

    def start(self) -> None:
        # Without tcp_nodelay, an answer of 404 or 412 takes 40 ms.
        self._process = Process(
            "radosgw", "-n", "client.gateway", "-f",
            "--rgw-frontends", f"beast endpoint={self.server.address} tcp_nodelay=1",
            env=self._environment,
        )  # fmt: skip
        wait_until(self._answers, "a gateway of Ceph")

    def _answers(self) -> bool:
        assert self._process.is_alive, self._process.text
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(self._endpoint).close()
            return True
        return False

    def kill(self) -> None:
        if self._process:
            self._process.stop(signal.SIGKILL)


class Ceph:
    """A cluster, and two ``gateways`` to it."""

    def __init__(self) -> None:
        assert shutil.which("radosgw"), "Install radosgw with: sh tests/install-tools"
        self._folder = Path(tempfile.mkdtemp(prefix="hub-ceph-"))
        self._environment = clean_environment(CEPH_CONF=f"{self._folder}/ceph.conf")
        self._daemons: list[Process] = []
        self.gateways = [Gateway(self._environment) for _ in range(2)]

    def start(self) -> None:
        cluster, disk = str(uuid.uuid4()), str(uuid.uuid4())
        port = free_port()
        for name in ("mon", "osd"):
            (self._folder / name).mkdir()
        (self._folder / "keyring").touch()
        (self._folder / "ceph.conf").write_text(
            _CONFIG.format(id=cluster, port=port, folder=self._folder)
        )
        monitors = f"{self._folder}/monmap"
        self._run(
            "monmaptool", "--create", "--fsid", cluster, "--addv", "a", f"[v2:127.0.0.1:{port}]",
            monitors,
        )  # fmt: skip
        self._run("ceph-mon", "-i", "a", "--mkfs", "--monmap", monitors)
        self._start("ceph-mon", "-i", "a", "-f")
        self._run("ceph", "osd", "new", disk)
        self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", disk)
        self._start("ceph-osd", "-i", "0", "-f")
        self._run(
            "radosgw-admin", "user", "create", "--uid", "hub", "--display-name", "hub",
            "--access-key", _KEY, "--secret-key", _SECRET,
        )  # fmt: skip
        for gateway in self.gateways:
            gateway.start()

    def remove(self) -> None:
        for gateway in self.gateways:
            gateway.kill()
        for daemon in reversed(self._daemons):
            daemon.stop(signal.SIGKILL)
        shutil.rmtree(self._folder)

    def _start(self, *command: str) -> None:
        self._daemons.append(Process(*command, env=self._environment))

    def _run(self, *command: str) -> None:
        """Run a program to its end, which waits for the daemons that it needs."""
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True,
            timeout=DEADLINE_SECONDS,
        )  # fmt: skip
        told = "\n".join([done.stderr, *(daemon.text for daemon in self._daemons)])
        assert done.returncode == 0, f"{command[0]}: exit status {done.returncode}\n{told}"


@contextlib.contextmanager
def running_ceph() -> Iterator[Ceph]:
    """A new cluster without objects."""
    ceph = Ceph()
    try:
        ceph.start()
        yield ceph
    finally:
        ceph.remove()
