"""The readiness of a hub, for /readyz and the metrics.

Only reads, at most once a second, however many requests there are.
"""

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

from builder.model.errors import OperatorError, RequestError
from builder.model.metrics import Gauge, Parts, Reading
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from builder.store.shortage import ROOM_FILES, is_read_only, lacks_inodes
from builder.store.site import is_built
from publisher.accounts.database import Database

# The reasons why a hub is not ready.
UNREADY_REASONS = (
    "no_site",
    "builds_failing",
    "content_not_writable",
    "state_not_writable",
    "site_not_writable",
    "disk_full",
    "accounts_unusable",
    "store_unavailable",
    "other_history",
)
READY = Gauge("hub_ready", "1 if `/readyz` answers 200, else 0.")
UNREADY = Gauge("hub_unready", "1 for each reason in `/readyz`, else 0.", reason=UNREADY_REASONS)

ANSWER_KEPT_SECONDS = 1.0
# The room that each disk needs: more than a publication, its pages and differences, and what SQLite
# and the search index write meanwhile. Below it, the hub is unready.
ROOM_BYTES = 32 * 1024 * 1024

Reason = tuple[str, str]

_BUILDS_FAIL = (
    "Builds fail, so publications are saved but do not reach readers. `last_error` in /healthz and "
    "the log have the cause."
)
_ACCOUNTS_UNUSABLE = (
    "The accounts database cannot be used, so publishing and sign-in fail. The log has the "
    "cause. Start PostgreSQL if the accounts are there. Otherwise restore the database or fix its "
    "folder, then restart the service."
)

_STORE_UNAVAILABLE = (
    "The database cannot be read or written, so publishing fails; reads still work. The log has "
    "the cause. Restore the connection or its rights; this node tries again by itself."
)
_OTHER_HISTORY = (
    "The database has another history than this node: it was restored, or its standby took over "
    "without the last changes. Publishing fails here. Stop this node, move its content "
    "folder away, and start it."
)


class Readiness:
    """The readiness of a hub. For any number of threads. ``parts`` are shown, but do not make a hub
    unready.
    """

    def __init__(
        self, settings: Settings, rebuilder: Rebuilder, database: Database, parts: Parts
    ) -> None:
        self.parts = parts
        self._settings = settings
        self._rebuilder = rebuilder
        self._database = database
        self._turn = threading.Lock()
        self._reasons: list[Reason] = []
        self._kept_until = 0.0

    def reasons(self) -> list[Reason]:
        """Returns why reads or publications fail: each a code of UNREADY_REASONS and what to do,
        without a path. Empty: all is well. At most ANSWER_KEPT_SECONDS old.
        """
        with self._turn:
            if self._kept_until <= time.monotonic():
                self._reasons = list(self._look())
                self._kept_until = time.monotonic() + ANSWER_KEPT_SECONDS
            return self._reasons

    def answer(self) -> dict[str, Any]:
        """Returns the answer of /readyz, for JSON."""
        reasons = self.reasons()
        return {
            "status": "unready" if reasons else "ready",
            "reasons": [{"code": code, "message": message} for code, message in reasons],
            "parts": {name: status() for name, status in self.parts.items()},
        }

    def readings(self) -> Iterator[Reading]:
        """Yields the gauges of readiness."""
        codes = {code for code, _ in self.reasons()}
        yield Reading(READY, not codes)
        for code in UNREADY_REASONS:
            yield Reading(UNREADY, code in codes, (code,))

    def _look(self) -> Iterator[Reason]:
        if not is_built(self._settings.out):
            yield "no_site", "There is no site yet. Wait until the first build ends."
        if self._rebuilder.fails_publications():
            yield "builds_failing", _BUILDS_FAIL
        disks = {}
        for name, path in self._settings.folders.items():
            # The first build creates the folder of the site.
            if name != "site" or os.path.isdir(path):
                disks[name] = _disk_of(path)
                yield from _not_writable(name, path, disks[name])
        for lacks, what in (
            (_lacks_space, f"Disk full. Free at least {ROOM_BYTES // 1024**2} MiB."),
            (_lacks_inodes, f"No inodes for {ROOM_FILES} more files. Remove files (df -i)."),
        ):
            if names := [name for name, disk in disks.items() if disk and lacks(disk)]:
                yield "disk_full", f"{what} Folders: {', '.join(names)}."
        try:
            self._database.execute("SELECT count(*) FROM (SELECT 1 FROM owner LIMIT 1) AS one")
        except RequestError as error:
            yield "accounts_unusable", str(error)
        except OperatorError:
            yield "accounts_unusable", _ACCOUNTS_UNUSABLE
        store = self.parts["store"]() if "store" in self.parts else {}
        if store.get("other_history"):
            yield "other_history", _OTHER_HISTORY
        elif store.get("failures"):
            yield "store_unavailable", _STORE_UNAVAILABLE


def _not_writable(name: str, path: str, disk: os.statvfs_result | None) -> Iterator[Reason]:
    if disk is None:
        what = f"The {name} folder is gone. Restore it, and check its disk."
    elif is_read_only(disk):
        what = f"The disk of the {name} folder is read-only. Make it writable."
    elif not os.access(path, os.W_OK | os.X_OK):
        what = f"The {name} folder is not writable. Give this service write access to it."
    else:
        return
    yield f"{name}_not_writable", what


def _lacks_space(disk: os.statvfs_result) -> bool:
    return disk.f_bavail * disk.f_frsize < ROOM_BYTES


def _lacks_inodes(disk: os.statvfs_result) -> bool:
    return lacks_inodes(disk, ROOM_FILES)


def _disk_of(path: str) -> os.statvfs_result | None:
    """The disk of a folder; None if it cannot be reached."""
    try:
        return os.statvfs(path)
    except OSError:
        return None
