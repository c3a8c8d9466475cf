"""Makes the content folder and the branch the same, once.

Neither side loses anything. Files of versions, label changes and withdrawals never change, so both
sides get all of them. If both have a file of one name with different bytes, the one here stays,
because readers may have it; the history of the branch keeps the other. For profiles and the home
page, the side that changed since both were the same wins; if both changed, the side here wins.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from builder.model.errors import ContentError, Fault, bounded
from builder.model.settings import Settings
from builder.pipeline.context import Named
from builder.store.content import FORMAT_FILE
from operate.git import files
from operate.git.branch import Branch, Entries, Importing
from operate.git.commits import (
    COMMITS_MAX,
    Commit,
    ContentChanged,
    commits_of,
    together,
    write_commits,
)
from operate.git.files import HOME, Blob, Place, file_in, is_gone, place_of, withdrawn_in
from operate.git.incoming import take_in
from publisher.write.durable import FORMAT_TEXT
from publisher.write.store_protocol import Store

# Places that are compared, committed and pushed together.
PLACES_MAX = 500
_ATTRIBUTES = ".gitattributes"


@dataclass
class Done:
    """The result. ``commits``: pushed. ``taken``: places with new files in the content folder.
    ``problems``: why a place differs between the sides. ``conflicts``: files with different bytes
    on the branch, and the commit that has these.
    """

    commits: int = 0
    taken: list[Place] = field(default_factory=list)
    problems: dict[Place, str] = field(default_factory=dict)
    conflicts: dict[str, str] = field(default_factory=dict)


class Sync:
    """One-time exchanges, for one thread. ``rebuild`` requests a build of files that came in."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        branch: Branch,
        rebuild: Callable[[Iterable[Named] | None], None],
    ) -> None:
        self._root = settings.content
        self._store = store
        self._host = urlsplit(settings.base_url).hostname or "localhost"
        self._branch = branch
        self._staging = f"{settings.state}/git.incoming"
        self._rebuild = rebuild
        # During a run: the commit that both sides had, and the last commit of the branch as it
        # should be.
        self._base: str | None = None
        self._parent: str | None = None
        self._done = Done()

    def run(self, places: Collection[Place] | None) -> Done:
        """Compare these places (None: all) and those that changed on the branch, and make them the
        same. Raises GitError, Moved, ContentChanged, OperatorError, OSError; completed steps stay.
        """
        branch, self._done = self._branch, Done()
        head, base = branch.fetch(), branch.base()
        # A remote that lost its branch gets it again, with its history.
        self._base, self._parent = base, head or base
        is_everything = places is None or bool(self._parent and not base)
        todo = self._differing() if is_everything else {*(places or ())}
        if base and base != self._parent:
            changed = branch.changed_paths(base, self._parent)
            todo.update(place for place in map(place_of, changed) if place)
        ordered = sorted(todo)
        for start in range(0, len(ordered), PLACES_MAX):
            self._take(ordered[start : start + PLACES_MAX])
        if self._parent and self._parent != base:
            branch.note_base(self._parent)
        return self._done

    def _differing(self) -> set[Place]:
        """The places that may differ: their file names differ, their files may change, or the
        common state is unknown. Raises OSError, OperatorError, GitError.
        """
        there: dict[Place, int] = defaultdict(int)
        # Sums of hashes do not depend on the order, and those of a whole catalogue fit into memory.
        for path in self._branch.paths(self._parent) if self._parent else ():
            if place := place_of(path):
                there[place] += hash(path)
        found: set[Place] = set()
        for place in files.places_in(self._root):
            hashed = there.pop(place, 0)
            try:
                paths = files.modes_in(self._root, place)
            except ContentError as error:
                self._note(place, "not pushed", error.faults)
                continue
            if not place.name or not self._base or sum(map(hash, paths)) != hashed:
                found.add(place)
        return found | there.keys()

    def _take(self, places: Iterable[Place]) -> None:
        """Make these places the same on both sides."""
        theirs = self._branch.entries(self._parent, places)
        before = self._branch.entries(self._base, places) if self._base != self._parent else theirs
        ours: dict[Place, dict[str, Blob]] = {}
        strays: dict[Place, frozenset[str]] = {}
        for place in places:
            try:
                blobs = self._blobs(place)
                strays[place] = files.strays_in(self._root, place, blobs, theirs[place])
                ours[place] = blobs
            except ContentError as error:
                self._note(place, "not pushed", error.faults)
        self._take_in(ours, theirs, before, strays)
        commits: list[Commit] = []
        for place, blobs in ours.items():
            try:
                there = theirs[place], before[place], strays[place]
                commits += commits_of(self._root, place, blobs, *there)
            except ContentError as error:
                self._note(place, "not pushed", error.faults)
                continue
            except FileNotFoundError:
                raise ContentChanged from None
            for path, entry in theirs[place].items():
                differs = path in blobs and blobs[path].id != entry.blob.id
                if (differs or path in strays[place]) and entry != before[place].get(path):
                    self._done.conflicts[path] = self._parent or ""
        if commits:
            self._push(commits)

    def _note(self, place: Place, what: str, faults: Iterable[Fault]) -> None:
        shown = "; ".join(bounded([str(fault) for fault in faults])[:3])
        self._done.problems[place] = f"{what}: {shown}"

    def _blobs(self, place: Place) -> dict[str, Blob]:
        try:
            return files.blobs_in(self._root, place)
        except FileNotFoundError:
            raise ContentChanged from None
        except OSError as error:
            raise ContentError([Fault(place.path, error.strerror or "unreadable")]) from None

    def _take_in(
        self,
        ours: dict[Place, dict[str, Blob]],
        theirs: Mapping[Place, Entries],
        before: Mapping[Place, Entries],
        strays: Mapping[Place, frozenset[str]],
    ) -> None:
        """Take in the new files of these places, and compare the places again."""
        taken: list[Place] = []
        try:
            with self._branch.reading() as read:
                for place, blobs in ours.items():
                    entries = _coming(place, blobs, theirs[place], before[place])
                    entries = {one: entries[one] for one in entries if one not in strays[place]}
                    if not entries:
                        continue
                    if faults := take_in(self._store, self._staging, place, blobs, entries, read):
                        self._note(place, "not taken in", faults)
                    else:
                        taken.append(place)
        except FileNotFoundError:
            raise ContentChanged from None
        finally:
            # Also counts what came before a failure: the next attempt finds it the same on both
            # sides.
            self._done.taken += taken
            if HOME in taken:
                self._rebuild(None)
            elif taken:
                self._rebuild([(place.owner, place.name or None) for place in taken])
        for place in taken:
            ours[place] = self._blobs(place)

    def _push(self, commits: list[Commit]) -> None:
        """Commit and push these."""
        commits.sort(key=lambda one: (one.at or "~", one.rank, one.subject))
        count = len(commits)
        if count > COMMITS_MAX:
            commits = [together(commits)]
        branch, parent = self._branch, self._parent
        is_first = not self._base and not (parent and any(branch.paths(parent)))

        def write(importing: Importing) -> None:
            importing.begin(parent)
            write_commits(importing, commits, self._root, branch.prefix, self._host)
            if is_first:
                # git must not change line ends, which are part of the published text.
                importing.write(f"{branch.prefix}{_ATTRIBUTES}", b"* -text\n")
            if any(file_in(path) for one in commits for path in one.writes):
                # Older releases misread files, and a clone is a content folder.
                importing.write(f"{branch.prefix}{FORMAT_FILE}", FORMAT_TEXT)

        commit = branch.commit(write)
        branch.push(commit, parent)
        self._parent = commit
        self._done.commits += count


def _coming(place: Place, ours: Mapping[str, Blob], theirs: Entries, before: Entries) -> Entries:
    """The files of the branch that the content lacks, or that changed only there."""
    if not place.name:
        return {
            path: entry
            for path, entry in theirs.items()
            if path not in ours
            or (ours[path] != entry.blob and path in before and before[path].blob == ours[path])
        }
    withdrawn = withdrawn_in([*ours, *theirs])
    return {
        path: entry
        for path, entry in theirs.items()
        if path not in ours and not is_gone(withdrawn, path)
    }
