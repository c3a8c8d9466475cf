"""The disk space that a hub has and takes, for the metrics."""

import contextlib
import os
import shutil
from collections.abc import Iterator

from builder.model.metrics import Gauge, Reading
from builder.model.settings import Settings
from builder.search.index import index_folder
from builder.stats.database import PULLS_FILE
from builder.store.state import State
from publisher.accounts.sqlite_engine import ACCOUNTS_FILE

# Names in `Settings.folders`.
FOLDERS = ("content", "state", "site")
DISK_FREE = Gauge(
    "hub_disk_free_bytes", "Free space of a folder's disk for this service.", folder=FOLDERS
)
DISK_SIZE = Gauge("hub_disk_size_bytes", "Size of a folder's disk.", folder=FOLDERS)
DATABASE_SIZE = Gauge(
    "hub_database_size_bytes",
    "Size of a database with its log.",
    database=("accounts", "pulls", "build"),
)
LAST_BACKUP = Gauge(
    "hub_last_backup_timestamp_seconds",
    "Time at which `hubctl backup` last succeeded, in seconds since 1970. 0: never.",
)
INDEX_SIZE = Gauge("hub_search_index_size_bytes", "Size of the search index.")


def size_readings(settings: Settings) -> Iterator[Reading]:
    """Yields the gauges of disks, databases, the search index and the last backup; none of files
    that do not exist.
    """
    for name, path in settings.folders.items():
        with contextlib.suppress(OSError):
            disk = shutil.disk_usage(path)
            yield Reading(DISK_FREE, disk.free, (name,))
            yield Reading(DISK_SIZE, disk.total, (name,))
    databases = {
        "accounts": f"{settings.state}/{ACCOUNTS_FILE}",
        "pulls": f"{settings.state}/{PULLS_FILE}",
        "build": State.path_in(settings.state),
    }
    for name, path in databases.items():
        # The write-ahead log counts too: most of the data may still be in it.
        sizes = [_size(file) for file in (path, f"{path}-wal")]
        if sizes[0]:
            yield Reading(DATABASE_SIZE, sum(sizes), (name,))
    yield Reading(LAST_BACKUP, last_backup_time(settings.state))
    with contextlib.suppress(FileNotFoundError), os.scandir(index_folder(settings)) as files:
        yield Reading(INDEX_SIZE, sum(_size(file.path) for file in files))


def last_backup_file(state: str) -> str:
    """The file of a state folder whose time is that of the last backup."""
    return f"{state}/backup.json"


def last_backup_time(state: str) -> float:
    """The time of the last backup, in seconds since 1970; 0 if there was none."""
    with contextlib.suppress(OSError):
        return os.stat(last_backup_file(state)).st_mtime
    return 0.0


def _size(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(path).st_size
    return 0
