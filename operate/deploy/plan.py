"""The plan of a deployment: the destination's listing and the site's files become steps.

A plan is tables of the manifest (see there).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from builder.model.errors import OperatorError
from builder.model.matching import Match, match_file
from builder.model.plural import counted
from builder.store.database import beginning_with
from operate.deploy.manifest import Manifest, rules_digest
from operate.deploy.options import Options
from operate.deploy.order import Step, is_certain, keys_of, match_key

SHOWN_KEYS = 10

_CURRENT = """SELECT 1 FROM object JOIN listed USING (key)
WHERE key = ? AND object.mark = ? AND rules = ? AND remote = listed.mark"""
# Objects that may not be current, with the data of the manifest and the destination.
_UNCERTAIN = """SELECT key, file, route, wanted.mark, copy, x'', 0, listed.mark, md5, rules, remote
FROM wanted LEFT JOIN listed USING (key) LEFT JOIN object USING (key) WHERE copy IS NOT NULL"""
_DELETE_UNSEEN = """DELETE FROM wanted
WHERE file IN (SELECT file FROM wanted WHERE key = file AND round <> ?)"""
_LOST = """SELECT key, listed.mark, remote FROM listed LEFT JOIN object USING (key)
WHERE NOT EXISTS (SELECT 1 FROM wanted WHERE wanted.key = listed.key)"""
_STEPS = "SELECT key, file, route, mark, copy, md5, size, old FROM step"
_COUNTS = """SELECT ifnull(sum(file IS NOT NULL AND old IS NULL), 0),
    ifnull(sum(file IS NOT NULL AND old IS NOT NULL), 0), ifnull(sum(file IS NULL), 0),
    (SELECT count(*) FROM wanted) - ifnull(sum(file IS NOT NULL), 0), ifnull(sum(size), 0)
FROM step"""
_WRONG = """SELECT key || ' is missing' AS line FROM wanted LEFT JOIN listed USING (key)
WHERE listed.key IS NULL
UNION ALL SELECT key || ' has other content' FROM wanted JOIN listed USING (key)
    JOIN object USING (key) WHERE listed.mark <> remote
UNION ALL SELECT key || ' is still there' FROM step JOIN listed USING (key) WHERE file IS NULL
ORDER BY line"""


class Report(NamedTuple):
    """The objects of a deployment or a dry run. ``current``: unchanged. ``kept``: no longer on the
    site, but not to be deleted. ``foreign``: not the site's, so left alone. ``unknown``: files in
    the site's folder that hub did not create. ``bytes``: uploaded. ``build``: the number of the
    last build in it; ``serial``: that of its lists, None if unknown.
    """

    new: int
    changed: int
    deleted: int
    current: int
    kept: int
    foreign: int
    unknown: int
    bytes: int
    seconds: float
    build: int
    serial: int | None


class Plan:
    """An empty plan, which replaces the manifest's last one. Methods raise OperatorError."""

    def __init__(self, manifest: Manifest, options: Options) -> None:
        self._manifest = manifest
        self._options = options
        self._round = 1
        self._kept = self._foreign = self._unknown = 0
        for table in ("listed", "wanted", "step"):
            manifest.write(f"DELETE FROM {table}", [()])

    def add_listed(self, page: Iterable[tuple[str, str]]) -> None:
        """Note key and mark of objects that the destination has."""
        self._manifest.write("INSERT OR REPLACE INTO listed VALUES (?, ?)", page)

    def forget_listed(self) -> None:
        """Drop the listing, before another one."""
        self._manifest.write("DELETE FROM listed", [()])

    def add_remembered(self, file: str) -> None:
        """Take the destination's objects of a file from the manifest instead of a listing."""
        if match := match_file(file):
            self._manifest.write(
                "INSERT OR IGNORE INTO listed SELECT key, remote FROM object WHERE key = ?",
                ((key,) for key in keys_of(match, files_only=self._options.files_only)),
            )

    def want(self, file: str, mark: str, keep: Callable[[str], str]) -> None:
        """Note a file of the site. If its objects may not be current and the last round did not
        keep it, calls ``keep``, which returns the path of the kept file.
        """
        if self._round > 1 and self._is_kept(file, mark):
            return
        match = match_file(file)
        if not match:
            self._unknown += 1
            return
        route = match.route.name
        keys = keys_of(match, files_only=self._options.files_only)
        is_current = not self._options.everything and all(
            self._is_current(key, mark, rules_digest(route)) for key in keys
        )
        copy = None if is_current else keep(file)
        self._manifest.write(
            "INSERT OR REPLACE INTO wanted VALUES (?, ?, ?, ?, ?, ?)",
            ((key, file, route, mark, copy, self._round) for key in keys),
        )

    def begin_round(self) -> None:
        """Begin another look at the site. ``end_round`` drops files that are not noted again."""
        self._round += 1
        self._unknown = 0

    def end_round(self) -> None:
        self._manifest.write(_DELETE_UNSEEN, [(self._round,)])

    def uncertain(self) -> Iterator[tuple[Step, tuple]]:
        """The upload of each object that may not be current, with the manifest's MD5, digest of the
        rules, and mark of the destination.
        """
        return ((Step(*row[:8]), row[8:]) for row in self._manifest.read(_UNCERTAIN))

    def count_uncertain(self) -> int:
        return self._count("wanted WHERE copy IS NOT NULL")

    def add(self, step: Step) -> None:
        self._manifest.write(
            "INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [(step.place, *step)]
        )

    def add_deletions(self, find: Callable[[str], Match | None]) -> None:
        """Add the deletion of objects that the site no longer has. ``find``: the route of a key."""
        for key, mark, remote in self._manifest.read(_LOST):
            match = find(key)
            if remote != mark and not (match and is_certain(match, self._has_prefix)):
                self._foreign += 1
            elif self._options.no_delete:
                self._kept += 1
            else:
                route = match.route.name if match else ""
                self.add(Step(key, None, route, "", "", b"", 0, mark))

    def groups(self) -> Iterator[Iterator[Step]]:
        """The steps in order. All steps of a group have to end before the next group begins."""
        for (place,) in self._manifest.read("SELECT DISTINCT place FROM step ORDER BY place"):
            rows = self._manifest.read(f"{_STEPS} WHERE place = ? ORDER BY key", place)
            yield (Step(*row) for row in rows)

    def count_steps(self) -> int:
        return self._count("step")

    def files(self, count_max: int) -> dict[str, bool] | None:
        """The site's files that change: True for an upload. None if more than ``count_max``."""
        files: dict[str, bool] = {}
        for step in (step for group in self.groups() for step in group):
            if step.file:
                files[step.file] = True
            elif found := match_key(step.key):
                files.setdefault(found.file, False)  # a file that stays can lose a key
            if len(files) > count_max:
                return None
        return files

    def report(self, seconds: float, build: int, serial: int | None) -> Report:
        ((new, changed, deleted, current, size),) = self._manifest.read(_COUNTS)
        others = self._kept, self._foreign, self._unknown
        return Report(new, changed, deleted, current, *others, size, seconds, build, serial)

    def check(self) -> None:
        """Compare the listing after the steps with the objects that the site needs."""
        count, is_missing = 0, False
        shown = ""
        for (line,) in self._manifest.read(_WRONG):
            count += 1
            is_missing |= line.endswith(" is missing")
            if count <= SHOWN_KEYS:
                shown += f"  {line}\n"
        if not count:
            return
        if count > SHOWN_KEYS:
            shown += f"  … and {count - SHOWN_KEYS:,} more\n"
        hint = "Make sure that nothing else writes to the destination, and deploy again."
        if is_missing and not self._options.files_only:
            hint += (
                " If the service cannot store both `a` and `a/b` (MinIO, for example), deploy with "
                "--files-only."
            )
        raise OperatorError(
            f"The destination does not have what was uploaded ({counted(count, 'object')}):\n"
            f"{shown}{hint}"
        )

    def _is_kept(self, file: str, mark: str) -> bool:
        """True if the last round kept the file in its present state; then this round keeps
        it, too.
        """
        row = self._round, file, mark
        return self._manifest.write("UPDATE wanted SET round = ? WHERE key = ? AND mark = ?", [row])

    def _is_current(self, key: str, mark: str, rules: bytes) -> bool:
        found = self._manifest.read(_CURRENT, key, mark, rules)
        return next(found, None) is not None

    def _has_prefix(self, prefix: str) -> bool:
        found = self._manifest.read(
            "SELECT 1 FROM listed WHERE key >= ? AND key < ? LIMIT 1", *beginning_with(prefix)
        )
        return next(found, None) is not None

    def _count(self, rows: str) -> int:
        ((count,),) = self._manifest.read(f"SELECT count(*) FROM {rows}")
        return count
