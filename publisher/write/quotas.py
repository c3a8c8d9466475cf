"""The most that an owner may have: repos, versions, and bytes of their texts and records.

The content is the only source of these counts. So they stay right after imports, crashes and any
other change of the tree. A repo's folder is listed again only when it has changed since. A check
costs three ``stat`` calls for each repo of the owner: its folder, and those of its label changes
and withdrawals, which count as bytes. Folders that have changed are listed, as a publication lists
its own repo anyway.

From the check until its file is written, a publication holds the lock of its owner's folder. So the
publications of one owner take turns, in all processes, and together stay below the quota.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterator

from builder.model.content_tree import LABELS, RECORD, WITHDRAWAL, WITHDRAWN, in_repo
from builder.model.errors import Detail, RequestError
from builder.model.metrics import LIMITS_HIT
from builder.store import content
from builder.store.plain_files import statuses_below
from publisher.limits import NO_QUOTAS, Quotas
from publisher.write import synced_files

# Beyond this many owners, all counts in memory are dropped and counted again.
OWNERS_KEPT = 1000


# Inodes and change times, which change with a folder, its ``labels`` and its ``withdrawn``; and the
# counts of its files.
_Counted = tuple[tuple[int, ...], Quotas]


class QuotaKeeper:
    """Holds the owners of a content folder to their quotas. For any number of threads."""

    def __init__(self, content_root: str, quotas: Quotas) -> None:
        self._root = content_root
        self._quotas = quotas
        self._counted: dict[str, dict[str, _Counted]] = {}

    @contextlib.contextmanager
    def room_for(self, owner: str, needs: Quotas) -> Iterator[None]:
        """Enter with the amount that is to be written, in bytes of texts and records; write it
        inside.

        Holds the right to add to what the owner has. Raises RequestError ``validation_failed``,
        whose details name each quota that is full; OSError.
        """
        if not any(self._quotas):
            yield
            return
        folder = f"{self._root}/{owner}"
        with contextlib.ExitStack() as held:
            descriptor = synced_files.lock_folder(folder, lambda: synced_files.make_folder(folder))
            held.callback(os.close, descriptor)
            self.check(owner, needs)
            yield

    def check(self, owner: str, needs: Quotas) -> None:
        """Raises as ``room_for``. Does not hold its lock, so the result may be outdated at once."""
        has = self._count(owner) if any(self._quotas) else NO_QUOTAS
        details = [
            Detail(f"quota_{what}", f"{max(0, limit - had):,} of {limit:,} left, {needed:,} needed")
            for what, limit, had, needed in zip(
                Quotas._fields, self._quotas, has, needs, strict=True
            )
            if limit and had + needed > limit
        ]
        if details:
            LIMITS_HIT.count("quota")
            counts = "; ".join(f"{field.removeprefix('quota_')}: {left}" for field, left in details)
            what = "version" if needs.versions else "change of labels"
            advice = "Publish less"
            if details[0].field == "quota_repos":
                advice = "Publish a new version of a prompt that exists"
            raise RequestError(
                "validation_failed",
                f"This {what} exceeds the quota of {owner}: {counts}. {advice}, or ask the "
                "operator of this hub for a larger quota.",
                details,
            )

    def _count(self, owner: str) -> Quotas:
        """Returns what the owner has. It stays so while the caller holds the owner's lock."""
        before = self._counted.get(owner, {})
        settled_ns = time.time_ns() - content.CLOCK_GRAIN_NS
        kept: dict[str, _Counted] = {}
        total = [0, 0, 0]
        with contextlib.suppress(FileNotFoundError), os.scandir(f"{self._root}/{owner}") as entries:
            for entry in entries:
                if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
                    continue
                mark = _mark(entry.path)
                for folder in (LABELS, WITHDRAWN):
                    mark += _mark(f"{entry.path}/{folder}")
                if not mark:
                    continue  # a first publication has failed, and removed its folder
                known_mark, has = before.get(entry.name, ((), NO_QUOTAS))
                if mark != known_mark:
                    has = _look(entry.path)
                # A folder that has just changed can change again within the clock's grain and keep
                # its mark.
                if max(mark[1::2]) < settled_ns:
                    kept[entry.name] = (mark, has)
                total = [sum(pair) for pair in zip(total, has, strict=True)]
        if len(self._counted) >= OWNERS_KEPT:
            self._counted.clear()
        self._counted[owner] = kept
        return Quotas(*total)


def _mark(path: str) -> tuple[int, ...]:
    """Returns a mark that changes with the folder; empty where the folder does not exist."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return ()
    return status.st_ino, status.st_ctime_ns


def _look(path: str) -> Quotas:
    """Returns what a repo's folder adds to its owner's counts; nothing before its first version.
    Withdrawn versions count: their numbers are taken.
    """
    kinds, size = [], 0
    for inside in ("", f"{LABELS}/", f"{WITHDRAWN}/"):
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(f"{path}/{inside}".rstrip("/")) as entries,
        ):
            for entry in entries:
                if found := in_repo(inside + entry.name):
                    kinds.append(found[0])
                    size += _size(entry)
    versions = sum(kind in (RECORD, WITHDRAWAL) for kind in kinds)
    return Quotas(min(versions, 1), versions, size)


def _size(entry: os.DirEntry[str]) -> int:
    """Returns the bytes of a file, or of all files in a folder."""
    is_folder = entry.is_dir(follow_symlinks=False)
    found = statuses_below(entry.path) if is_folder else [entry.stat(follow_symlinks=False)]
    return sum(one.st_size for one in found if stat.S_ISREG(one.st_mode))
