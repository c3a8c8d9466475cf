"""The disk space that a hub has, and its last backup, for the metrics."""

import contextlib
import os
import shutil
from collections.abc import Iterator

from builder.model.metrics import Gauge, Reading
from builder.model.settings import Settings

# Names in `Settings.folders`.
FOLDERS = ("content", "state", "site")
DISK_FREE = Gauge(
    "hub_disk_free_bytes", "Free space of a folder's disk for this service.", folder=FOLDERS
)
DISK_SIZE = Gauge("hub_disk_size_bytes", "Size of a folder's disk.", folder=FOLDERS)
LAST_BACKUP = Gauge(
    "hub_last_backup_timestamp_seconds",
    "Time at which `hubctl backup` last succeeded, in seconds since 1970. 0: never.",
)


def size_readings(settings: Settings) -> Iterator[Reading]:
    """Yields the gauges of the disks of folders that exist, and of the last backup."""
    for name, path in settings.folders.items():
        with contextlib.suppress(OSError):
            disk = shutil.disk_usage(path)
            yield Reading(DISK_FREE, disk.free, (name,))
            yield Reading(DISK_SIZE, disk.total, (name,))
    yield Reading(LAST_BACKUP, last_backup_time(settings.state))


def last_backup_file(state: str) -> str:
    """The file of a state folder whose time is that of the last backup."""
    return f"{state}/backup.json"


def last_backup_time(state: str) -> float:
    """The time of the last backup, in seconds since 1970; 0 if there was none."""
    with contextlib.suppress(OSError):
        return os.stat(last_backup_file(state)).st_mtime
    return 0.0
