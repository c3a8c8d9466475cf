"""Makes the content folder and the branch the same, once.

Nothing that either side has is lost. Files of versions, changes of labels and withdrawals never
change, so both sides get all of them. Where both have a file of the same name with other bytes,
the one here stays, because readers may have it; the branch keeps the other one in its history, and
under a name of its own. Of profiles and the home page, the side that has changed since they were
the same gives the bytes; if both have, this one.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from builder.model.errors import ContentError, Fault, bounded
from builder.model.settings import Settings
from builder.pipeline.context import Named
from operate.git import files
from operate.git.branch import Branch, Entries, Moved
from operate.git.commits import COMMITS_MAX, Commit, commits_of, together, write_commits
from operate.git.files import HOME, Place, is_gone, place_of, withdrawn_in
from operate.git.incoming import ContentChanged, take_in
from publisher.outside.git_program import GitError
from publisher.write.store import Store

# So many places are compared, committed and pushed together.
PLACES_MAX = 500
# From so many files on that come in together, the disk is waited for once.
SYNCED_MAX = 200
# A file may look older than it is by so much.
_CLOCK_NS = 2_000_000_000
_ATTRIBUTES = ".gitattributes"


@dataclass
class Done:
    """What became of the places that were looked at. ``commits``: pushed; ``taken``: places that
    the content folder has got files of; ``problems``: why a place is not the same on both sides;
    ``conflicts``: files of which the branch had other bytes, with the branch that has these.
    """

    commits: int = 0
    taken: list[Place] = field(default_factory=list)
    problems: dict[Place, str] = field(default_factory=dict)
    conflicts: dict[str, str] = field(default_factory=dict)


class Sync:
    """``rebuild`` asks for a build of what has come in."""

    def __init__(
        self, settings: Settings, store: Store, branch: Branch,
        rebuild: Callable[[Iterable[Named] | None], None],
    ) -> None:  # fmt: skip
        self.root = settings.content
        self.store = store
        self.host = urlsplit(settings.base_url).hostname or "localhost"
        self.branch = branch
        self.staging = f"{settings.state}/git.incoming"
        self.rebuild = rebuild
        # Its time is that of the last look at everything.
        self._looked = f"{settings.state}/git.looked"
        # Of profiles and the home page that could not be taken in: what was there and here.
        self.faulty: dict[str, tuple[str, str | None]] = {}

    def run(self, places: Collection[Place] | None) -> Done:
        """Compare these places (None: all) and what has changed on the branch, and make them the
        same. Raises GitError, Moved, ContentChanged, OperatorError, OSError; what was done until
        then stays done.
        """
        run = _Run(self)
        done, base = run.done, run.base
        is_everything = places is None or bool(run.parent and not base)
        todo = self._differing(run.parent, done.problems) if is_everything else {*(places or ())}
        if base and base != run.parent:
            changed = self.branch.changed_paths(base, run.parent)
            todo.update(place for place in map(place_of, changed) if place)
        ordered = sorted(todo)
        for start in range(0, len(ordered), PLACES_MAX):
            run.take(ordered[start : start + PLACES_MAX])
        if run.parent and run.parent != base:
            self.branch.note_base(run.parent)
        if is_everything:
            os.rename(f"{self._looked}.new", self._looked)
        return done

    def _differing(self, commit: str | None, problems: dict[Place, str]) -> set[Place]:
        """The places that may differ from a commit: their files have other names, or were touched
        since ``looked`` was. Raises OSError, OperatorError, GitError.
        """
        with open(f"{self._looked}.new", "w", encoding="utf-8"):
            pass  # its time is that of this look, by the clock of the disk
        try:
            since = os.stat(self._looked).st_mtime_ns - _CLOCK_NS
        except FileNotFoundError:
            since = 0
        there: dict[Place, int] = defaultdict(int)
        # Sums of hashes do not depend on the order, and a catalogue of them fits into memory.
        for path in self.branch.paths(commit) if commit else ():
            if place := place_of(path):
                there[place] += hash(path)
        found: set[Place] = set()
        for place in files.places_in(self.root):
            hashed = there.pop(place, 0)
            try:
                paths = files.names_in(self.root, place)
                newest = max(
                    (os.stat(f"{self.root}/{path}").st_ctime_ns for path in paths), default=0
                )
            except ContentError as error:
                problems[place] = _told("not pushed", error.faults)
                continue
            except FileNotFoundError:
                found.add(place)
                continue
            if sum(map(hash, paths)) != hashed or newest >= since:
                found.add(place)
        return found | there.keys()


class _Run:
    """One comparison. ``head``: what the remote has; ``base``: what both sides had; ``parent``: the
    branch's last commit as it is to be.
    """

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._root = sync.root
        self._branch = sync.branch
        self._head = sync.branch.fetch()
        self.base = sync.branch.base()
        # If the remote has lost its branch, it gets it again, with its past.
        self.parent = self._head or self.base
        self.done = Done()

    def take(self, places: Iterable[Place]) -> None:
        """Make these places the same on both sides."""
        theirs = self._branch.entries(self.parent, places)
        before = self._branch.entries(self.base, places) if self.base != self.parent else theirs
        ours = {}
        for place in places:
            try:
                ours[place] = self._ids(place)
            except ContentError as error:
                self.done.problems[place] = _told("not pushed", error.faults)
        self._take_in(ours, theirs, before)
        commits: list[Commit] = []
        differing: list[str] = []
        for place, ids in ours.items():
            if place in self.done.problems and not place.name:
                continue  # a profile on the branch that is faulty stays until it is corrected
            try:
                commits += commits_of(self._root, place, ids, theirs[place], before[place])
            except ContentError as error:
                self.done.problems[place] = _told("not pushed", error.faults)
                continue
            except FileNotFoundError:
                raise ContentChanged from None
            differing += [
                path for path, entry in theirs[place].items()
                if ids.get(path, entry.id) != entry.id and entry != before[place].get(path)
            ]  # fmt: skip
        if differing:
            self._keep_other(differing)
        if commits:
            self.done.commits += len(commits)
            self._push(commits)

    def _ids(self, place: Place) -> dict[str, str]:
        try:
            return files.ids_in(self._root, place)
        except FileNotFoundError:
            raise ContentChanged from None
        except OSError as error:
            raise ContentError([Fault(place.path, error.strerror or "unreadable")]) from None

    def _take_in(
        self, ours: dict[Place, dict[str, str]], theirs: Mapping[Place, Entries],
        before: Mapping[Place, Entries],
    ) -> None:  # fmt: skip
        """Take in what there is for these places, and look at them again."""
        coming = {
            place: found for place, ids in ours.items()
            if (found := self._coming(place, ids, theirs[place], before[place]))
        }  # fmt: skip
        if not coming:
            return
        is_small = sum(map(len, coming.values())) <= SYNCED_MAX
        taken: list[Place] = []
        try:
            with self._branch.reading() as read:
                for place, entries in coming.items():
                    faults = take_in(
                        self._sync.store,
                        self._sync.staging,
                        place,
                        ours[place],
                        entries,
                        read,
                        is_small,
                    )
                    if not faults:
                        taken.append(place)
                        continue
                    self.done.problems[place] = _told("not taken in", faults)
                    if not place.name:
                        for path, entry in entries.items():
                            self._sync.faulty[path] = entry.id, ours[place].get(path)
        except FileNotFoundError:
            raise ContentChanged from None
        finally:
            # Also what came before a failure: the next attempt finds it the same on both sides.
            if not is_small:
                os.sync()
            self.done.taken.extend(taken)
            if HOME in taken:
                self._sync.rebuild(None)
            elif taken:
                self._sync.rebuild([(place.owner, place.name or None) for place in taken])
        for place in taken:
            ours[place] = self._ids(place)

    def _coming(
        self, place: Place, ours: Mapping[str, str], theirs: Entries, before: Entries
    ) -> Entries:
        """The files of the branch that are to be here."""
        if not place.name:
            return {
                path: entry for path, entry in theirs.items()
                if ours.get(path) != entry.id and self._is_newer(path, ours, entry.id, before)
            }  # fmt: skip
        withdrawn = withdrawn_in([*ours, *theirs])
        return {
            path: entry for path, entry in theirs.items()
            if path not in ours and not is_gone(withdrawn, path)
        }  # fmt: skip

    def _is_newer(self, path: str, ours: Mapping[str, str], blob: str, before: Entries) -> bool:
        """Whether a file that may change has changed there and not here."""
        if path not in ours or self._sync.faulty.get(path) == (blob, ours[path]):
            return True
        if self.base:
            return path in before and before[path].id == ours[path]
        # Nobody knows what both had: perhaps the one here is an older one of those there.
        return bool(self.parent) and self._branch.was_once(self.parent, path, ours[path])

    def _keep_other(self, paths: list[str]) -> None:
        """Note files that both sides have changed; keep those of the branch under another name."""
        commit = self._head or self.parent
        try:
            kept = self._branch.keep(commit)
        except (GitError, Moved) as error:
            kept = f"the commit {commit[:12]} ({error})"
        self.done.conflicts.update(dict.fromkeys(paths, kept))

    def _push(self, commits: list[Commit]) -> None:
        """Commit and push."""
        commits.sort(key=lambda one: (one.at or "~", one.rank, one.subject))
        if len(commits) > COMMITS_MAX:
            commits = [together(commits)]
        branch = self._branch
        is_first = not self.base and not (self.parent and any(branch.paths(self.parent)))
        with branch.importing() as importing:
            importing.begin(self.parent)
            whole = write_commits(importing, commits, self._root, branch.prefix, self._sync.host)
            if whole and is_first:
                # git must not change the ends of lines, which are part of what was published.
                importing.write(f"{branch.prefix}{_ATTRIBUTES}", b"* -text\n")
        commit = branch.next()
        if not whole or not commit:
            raise ContentChanged
        branch.push(commit)
        self.parent = commit


def _told(what: str, faults: Iterable[Fault]) -> str:
    return f"{what}: " + "; ".join(bounded([str(fault) for fault in faults])[:3])
