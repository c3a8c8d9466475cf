"""What has to go to a destination: the site's files against its listing and the manifest."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from builder.model.errors import OperatorError
from builder.model.progress import Progress
from builder.model.routes import BY_NAME, Match, match_file
from operate.deploy.destination import Destination
from operate.deploy.manifest import Manifest, Row, row_for, rules_digest
from operate.deploy.options import Options
from operate.deploy.order import (
    Delete,
    Group,
    Put,
    groups,
    is_certain,
    key_count,
    keys_of,
    match_key,
)
from operate.deploy.snapshot import Taken
from operate.parallel import in_parallel


class Plan(NamedTuple):
    """What is to be done, in groups, and the keys that the destination has after that.

    Counts: ``current`` objects need nothing; ``kept`` ones the site has no more, but they are not
    to be deleted; ``foreign`` ones are not the site's; ``unknown`` files are not hub's.
    """

    groups: list[Group]
    keys: set[str]
    current: int
    kept: int
    foreign: int
    unknown: int

    def puts(self) -> Iterator[Put]:
        return (step for group in self.groups for step in group if isinstance(step, Put))

    def deletes(self) -> Iterator[Delete]:
        return (step for group in self.groups for step in group if isinstance(step, Delete))


def current_files(
    rows: Iterable[Row], remote: Mapping[str, str], options: Options
) -> dict[str, str]:
    """The files whose objects the destination has as they were put, each with its mark then.

    ``remote`` is the destination's listing: mark by key.
    """
    if options.everything:
        return {}
    counts: dict[tuple[str, str, str], int] = {}
    for row in rows:
        if _is_wanted(row, options) and remote.get(row.key) == row.remote and _has_rules(row):
            of_file = row.route, row.file, row.mark
            counts[of_file] = counts.get(of_file, 0) + 1
    return {
        file: mark
        for (route, file, mark), count in counts.items()
        if count == key_count(BY_NAME[route], files_only=options.files_only)
    }


def _is_wanted(row: Row, options: Options) -> bool:
    return row.key == row.file or not options.files_only


def _has_rules(row: Row) -> bool:
    route = BY_NAME.get(row.route)
    return route is not None and row.rules == rules_digest(route)


def make_plan(
    taken: Taken,
    remote: Mapping[str, str],
    manifest: Manifest,
    destination: Destination,
    options: Options,
    progress: Progress,
) -> Plan:
    """Find out what has to be done, reading the files that are not known to be current.

    The destination is asked about objects of which nothing is remembered. What turns out to be
    current is remembered.
    """
    current_keys = _keys_of_current(manifest, taken, options)
    puts, current, unknown = _compare(taken, remote, manifest, destination, options, progress)
    current_keys |= current
    keys = current_keys | {put.key for put in puts}
    # Where no URL is a key, what has such a name is somebody else's.
    find = match_file if destination.has_rules else match_key
    deletes, foreign = _find_lost(remote, keys, manifest, find)
    return Plan(
        list(groups(puts, deletes if options.delete else [])),
        keys,
        current=len(current_keys),
        kept=0 if options.delete else len(deletes),
        foreign=foreign,
        unknown=unknown,
    )


def plan_changes(
    taken: Taken,
    gone: Iterable[str],
    remote: Mapping[str, str],
    manifest: Manifest,
    destination: Destination,
    options: Options,
) -> Plan:
    """Find out what has to be done where all else is known to be current: ``taken`` has the files
    that were written, ``gone`` those that were removed, and ``remote`` the marks of their objects.
    """
    puts, current, unknown = _compare(taken, remote, manifest, destination, options)
    keys = current | {put.key for put in puts}
    lost = [
        Delete(key, match.route)
        for match in filter(None, map(match_file, gone))
        for key in keys_of(match, files_only=options.files_only)
        if key in remote and key not in keys
    ]
    return Plan(
        list(groups(puts, lost if options.delete else [])),
        keys,
        current=len(current),
        kept=0 if options.delete else len(lost),
        foreign=0,
        unknown=unknown,
    )


def _compare(
    taken: Taken,
    remote: Mapping[str, str],
    manifest: Manifest,
    destination: Destination,
    options: Options,
    progress: Progress = lambda what, done, total: None,
) -> tuple[list[Put], set[str], int]:
    """What has to be uploaded of the files that were kept, the keys of what turns out to be
    current, and how many files are not hub's.
    """
    tasks = []
    unknown = 0
    for file, copy in taken.copies.items():
        found = match_file(file)
        if found:
            tasks.append(_task(found, copy, taken.marks[file], remote, manifest, options))
        else:
            unknown += 1
    puts: list[Put] = []
    current_keys: set[str] = set()
    examined = in_parallel(lambda task: _examine(task, destination, options), tasks, options.jobs)
    for done, results in enumerate(examined):
        progress("Comparing files", done, len(tasks))
        for put, is_current in results:
            if is_current:
                current_keys.add(put.key)
                manifest.put(row_for(put, put.old))
            else:
                puts.append(put)
    return puts, current_keys, unknown


def _keys_of_current(manifest: Manifest, taken: Taken, options: Options) -> set[str]:
    return {
        row.key
        for row in manifest.rows()
        if row.file in taken.marks and row.file not in taken.copies and _is_wanted(row, options)
    }


class _Task(NamedTuple):
    """A file to look at: ``objects`` are its keys, with what is remembered and what is there."""

    match: Match
    copy: str
    mark: str
    objects: list[tuple[str, Row | None, str | None]]


def _task(
    match: Match, copy: str, mark: str, remote: Mapping[str, str], manifest: Manifest,
    options: Options,
) -> _Task:  # fmt: skip
    keys = keys_of(match, files_only=options.files_only)
    return _Task(match, copy, mark, [(key, manifest.row(key), remote.get(key)) for key in keys])


def _examine(task: _Task, destination: Destination, options: Options) -> list[tuple[Put, bool]]:
    try:
        with open(task.copy, "rb") as file:
            md5 = hashlib.file_digest(file, "md5").digest()
            size = file.tell()
    except OSError as error:
        raise OperatorError(
            f"Cannot read the site's file {task.match.file}: {error.strerror}. Deploy as the user "
            "who builds the site."
        ) from error
    results = []
    for key, row, old in task.objects:
        put = Put(key, task.match.file, task.match.route, task.mark, md5, size, old)
        if old is None or options.everything:
            is_current = False
        elif row and row.remote == old and _has_rules(row):
            is_current = row.md5 == md5
        else:
            is_current = destination.holds(put)
        results.append((put, is_current))
    return results


def _find_lost(
    remote: Mapping[str, str],
    keys: set[str],
    manifest: Manifest,
    find: Callable[[str], Match | None],
) -> tuple[list[Delete], int]:
    """The objects that were the site's and are no more, and how many never were.

    ``find``: the row of the table that a key can be of.
    """
    deletes = []
    foreign = 0
    sorted_keys = sorted(remote)
    for key, mark in remote.items():
        if key in keys:
            continue
        row, found = manifest.row(key), find(key)
        if row and row.remote == mark:
            deletes.append(Delete(key, BY_NAME.get(row.route)))
        elif found and is_certain(found, sorted_keys):
            deletes.append(Delete(key, found.route))
        else:
            foreign += 1
    return deletes, foreign
