"""Renders and writes the files of one repo: its versions', then its own.

The unit of work of a build. Needs nothing but the settings, the content and what the last
build remembered of this repo, so it runs in several processes at once.
"""

import bisect
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from builder.model.errors import ContentError
from builder.model.labels import Labels, Move, fold, moves_with
from builder.model.langfuse import Findable, refs_of
from builder.model.names import LATEST, Version
from builder.model.ordinals import Counted, count_withdrawn, find_faults, number_versions
from builder.model.records import LabelMove, ListedVersion, Repo
from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.model.withdrawn import WithdrawnParts
from builder.render import derive, envelopes, feeds, prompt_pages
from builder.render.derive import Links, Stored
from builder.render.hunks import hunks
from builder.render.pages import pages_of
from builder.search.telling_words import telling_words
from builder.stats.pulls import PullCounts
from builder.store import content
from builder.store.site import Site
from builder.store.state.repos import RepoRow, digest_of
from builder.store.withdrawn_files import WithdrawnListing, read_parts
from builder.text import line_diff
from builder.text.prompts import body_of
from builder.text.summary import summarize
from builder.write import langfuse, mirrored
from builder.write.labels import (
    LabelFiles,
    Marked,
    Named,
    check_moves,
    decode_moves,
    encode_moves,
    read_events,
)
from builder.write.withdrawn import WithdrawnFiles, files_of, remove

# So many versions can be compared, and fill a list.
COMPARED_MIN = 2


class Task(NamedTuple):
    """A repo to render. ``mark`` is its folder's, ``events`` those of its changes of labels.
    Without ``versions``, all of it is ``withdrawn``. ``old`` is what the last build left on the
    site, None where that is not known; ``edited``: files that it saw may be others now. ``pulls``
    is None where nobody counts them.
    """

    owner: str
    name: str
    mark: str
    versions: list[Version]
    events: dict[int, str]
    withdrawn: WithdrawnListing
    old: RepoRow | None
    edited: bool
    pulls: PullCounts | None


class _Entry(ListedVersion, gc=False):
    """An entry that this program has made, so reading it back matches no patterns."""

    version: str
    previous: str | None
    publisher: str
    published_at: str
    sha256: str


class _Remembered(msgspec.Struct, array_like=True, gc=False):
    """A version whose files are on the site: its mark, its entry, the labels on its page, and
    whether its record stores its number of publication. ``refs``: under which Langfuse's SDKs find
    it. ``sha256``: of its record's file.
    """

    version: str
    mark: str
    entry: _Entry
    shown: list[str]
    is_counted: bool
    sha256: str
    refs: list[str] = []


class _Place(NamedTuple):
    """A version in the folder, and its mark. ``is_current``: its files are known to be on the site
    as they should be.
    """

    version: Version
    name: str
    mark: str
    is_current: bool


class _Written(NamedTuple):
    """What the versions of a repo that can be read have come to, oldest first. ``texts``: versions
    that were read anyway, and are wanted again. ``renewed``: those whose files were written for
    more than their labels.
    """

    rows: list[_Remembered]
    texts: dict[str, Stored]
    renewed: set[str]

    @property
    def entries(self) -> list[ListedVersion]:
        return [row.entry for row in self.rows]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Remembered]).decode


def remembered_versions(row: RepoRow) -> list[str]:
    """The versions that the last build put on the site."""
    return row.names.split()


def remembered_withdrawn(row: RepoRow) -> set[str]:
    """The versions that the last build took for withdrawn."""
    return {*row.withdrawn.split()}


def remembered_refs(row: RepoRow) -> set[str]:
    """The refs under which the last build left versions for Langfuse's SDKs."""
    return {ref for one in _decode(row.versions) for ref in one.refs} if row.langfuse else set()


def task_as_remembered(row: RepoRow, pulls: PullCounts | None) -> Task:
    """A repo with other pulls, and else what the last build left."""
    owner, name = row.id.split("/")
    versions = [*map(Version.parse, remembered_versions(row))]
    events = {
        move.number: mark for mark, move in decode_moves(row.labels) if move.has_own_file
    }  # fmt: skip
    withdrawn = WithdrawnListing(frozenset(remembered_withdrawn(row)), is_whole=False)
    return Task(owner, name, row.mark, versions, events, withdrawn, row, False, pulls)


def _find_places(root: str, task: Task, known: dict[str, _Remembered]) -> list[_Place]:
    """The versions of a repo. Their files depend on them and on the one below (diff, previous)."""
    found = []
    below_known = dict(zip(known, [None, *known], strict=False))
    below, is_below_same = None, True
    for version in task.versions:
        name = str(version)
        old = known.get(name)
        if old and not task.edited:
            mark, is_same = old.mark, True
        else:
            mark = content.version_mark(root, task.owner, task.name, version)
            is_same = bool(old and mark and mark == old.mark)
        is_current = is_same and is_below_same and below_known[name] == below
        found.append(_Place(version, name, mark, is_current))
        below, is_below_same = name, is_same
    return found


def _counted(version: Version, row: _Remembered) -> Counted:
    stored = row.entry.ordinal if row.is_counted else None
    return Counted(row.entry.published_at, version, stored, f"{row.version}.json")


def _number(task: Task, counted: list[Counted]) -> dict[Version, int]:
    """The number of each version of a repo. Raises ContentError where two store the same."""
    faults = [*find_faults(counted, f"{task.owner}/{task.name}/")]
    if faults:
        raise ContentError(faults)
    return number_versions(counted)


class RepoRenderer:
    """Renders repos of one site."""

    def __init__(self, settings: Settings, site: Site) -> None:
        self.settings = settings
        self.site = site
        self.links = Links(settings.base_url)
        self.pages = pages_of(settings)

    def render(self, task: Task) -> RepoRow:
        """Write the files of a repo of which something can be read. Raises ContentError."""
        try:
            return self._render(task)
        except ContentError:
            found = content.list_versions(self.settings.content, task.owner, task.name)
            if not found.versions or found.withdrawn == task.withdrawn:
                raise
        # Something was withdrawn after it was listed. The next build looks at the repo again.
        return self._render(task._replace(
            mark="", versions=found.versions, events=found.events, withdrawn=found.withdrawn,
        ))  # fmt: skip

    def _render(self, task: Task) -> RepoRow:
        repo = f"{task.owner}/{task.name}"
        known = {one.version: one for one in _decode(task.old.versions)} if task.old else {}
        remembered = decode_moves(task.old.labels) if task.old else []
        gone = read_parts(self.settings.content, repo, task.withdrawn)
        self._withdraw(task, gone, known)
        events = read_events(self.settings.content, repo, task.events, remembered)
        places = _find_places(self.settings.content, task, known)
        carried, counted = self._read_ahead(task, places, known, remembered)
        counted += [count_withdrawn(one, task.withdrawn.versions) for one in gone.versions]
        numbers = _number(task, counted)
        moves = [*events, *(("", move) for move in (*carried, *gone.moves))]
        withdrawn = {str(one.version) for one in gone.versions}
        of_labels = [move for _, move in moves]
        check_moves(repo, of_labels, {place.name for place in places}, withdrawn)
        labels = fold(of_labels)
        written = self._write_versions(task, places, known, labels.by_version(), numbers)
        entries = self._with_withdrawn(task, written.entries, gone, numbers)
        if labels.history:
            is_same = not written.renewed and [*known] == [row.version for row in written.rows]
            is_same = is_same and remembered_withdrawn(task.old) == withdrawn
            latest = derive.moves_of_latest(entries, gone.versions)
            same = {*labels.history} - {move.label for _, move in {*remembered} ^ {*moves}}
            if remembered and is_same:
                same.add(LATEST)
            self._write_labels(task, written, labels, latest, same)
        if self.settings.langfuse:
            self._write_langfuse(task, written, known, gone)
        row = self._write_repo(task, written, labels, entries)
        return row._replace(
            labels=encode_moves(labels, moves), withdrawn=" ".join(sorted(withdrawn))
        )

    def _withdraw(
        self, task: Task, gone: WithdrawnParts, remembered: dict[str, _Remembered]
    ) -> None:
        """Before anything else: it may be a secret that is withdrawn."""
        if not gone.versions:
            return
        files = WithdrawnFiles(self.site, self.pages, task.owner, task.name)
        known = remembered_withdrawn(task.old) if task.old else set()
        for one in gone.versions:
            if str(one.version) not in known:
                files.write_version(one)
                old = remembered.get(str(one.version))
                # Its version and its number; the other refs are written again, or removed then.
                refs = old.refs[:2] if old else ()
                remove(self.site, [langfuse.file_of(task.owner, task.name, ref) for ref in refs])
        at = {"owner": task.owner, "name": task.name}
        if gone.versions[0].version < task.versions[0]:
            # The first version has no diff, and may have had one from what is withdrawn.
            first = BY_NAME["diff"].file_for(**at, version=task.versions[0])
            remove(self.site, [first])
        if not task.old:
            remove(self.site, files_of("withdrawn", **at))

    def _with_withdrawn(
        self,
        task: Task,
        entries: list[ListedVersion],
        gone: WithdrawnParts,
        numbers: dict[Version, int],
    ) -> list[ListedVersion]:
        """All versions of the repo as they are listed, oldest first."""
        found = dict(zip(task.versions, entries, strict=True))
        for one in gone.versions:
            below = bisect.bisect(task.versions, one.version)
            previous = task.versions[below - 1] if below else None
            found[one.version] = derive.withdrawn_entry(
                task.owner, task.name, one, previous, numbers[one.version], self.links
            )
        return [found[version] for version in sorted(found)]

    def _read_ahead(
        self, task: Task, places: list[_Place], known: dict[str, _Remembered],
        remembered: list[Marked],
    ) -> tuple[list[Move], list[Counted]]:  # fmt: skip
        """What the records of all versions say of labels and of numbers, so that no file shows
        others for a moment. Reads those of the versions that are not current; the moves with the
        others are ``remembered``.
        """
        current = {name for _, name, _, is_current in places if is_current}
        moves = [move for _, move in remembered if move.is_carried and move.version in current]
        counted: list[Counted] = []
        for version, name, _, is_current in places:
            if is_current:
                counted.append(_counted(version, known[name]))
                continue
            record = content.read_record(self.settings.content, task.owner, task.name, version)
            moves += moves_with(name, record)
            counted.append(
                Counted(record.published_at, version, record.ordinal or None, f"{name}.json")
            )
        return moves, counted

    def _write_versions(
        self, task: Task, places: list[_Place], known: dict[str, _Remembered],
        labelled: dict[str, list[str]], numbers: dict[Version, int],
    ) -> _Written:  # fmt: skip
        """Write what is not as ``known``, or shows other labels or another number."""
        written = _Written([], {}, set())
        stored = None
        for index, (version, name, mark, is_current) in enumerate(places):
            shown, ordinal = labelled.get(name, []), numbers[version]
            is_same = is_current and known[name].entry.ordinal == ordinal
            if is_same and known[name].shown == shown:
                written.rows.append(known[name])
                stored = None
                continue
            if stored is None and index:
                stored = self._read(task, task.versions[index - 1])
            older, stored = stored, self._read(task, version)
            entry, sha256 = self._write_version(stored, older, shown, ordinal)
            row = _Remembered(name, mark, entry, shown, bool(stored.record.ordinal), sha256)
            if is_same:
                row.refs = known[name].refs
            else:
                written.renewed.add(name)
            written.rows.append(row)
            if shown or version == task.versions[-1]:
                written.texts[name] = stored
        return written

    def _write_labels(
        self, task: Task, written: _Written, labels: Labels, latest: list[LabelMove],
        same: set[str],
    ) -> None:  # fmt: skip
        """Write the files of labels, and of ``latest``, which has these moves. ``same``: those with
        the moves that they had.
        """

        def is_current(label: str) -> bool:
            moves = labels.history.get(label, latest)
            return label in same and moves[0].version not in written.renewed

        def named(name: str) -> Named:
            version = Version.parse(name)
            index = task.versions.index(version)
            stored = written.texts.get(name) or self._read(task, version)
            previous = task.versions[index - 1] if index else None
            ordinal = written.rows[index].entry.ordinal
            record = derive.version_record(stored, previous, ordinal, self.links)
            return Named(record, stored.content.encode(), stored.body.encode())

        files = LabelFiles(self.site, task.owner, task.name, named)
        files.write(labels, latest, is_current)

    def _write_langfuse(
        self, task: Task, written: _Written, known: dict[str, _Remembered], gone: WithdrawnParts
    ) -> None:
        """Write what Langfuse's SDKs read, where a version has other refs than it had, and remove
        what no version has any more.
        """
        # Before the rows change, which are the written ones, too.
        before = {ref for row in known.values() for ref in row.refs}
        found = [Findable(row.version, row.entry.ordinal, row.shown) for row in written.rows]
        wanted: set[str] = set()
        for index, (one, refs) in enumerate(zip(found, refs_of(found), strict=True)):
            row = written.rows[index]
            if row.refs != refs:
                stored = written.texts.get(row.version) or self._read(task, task.versions[index])
                langfuse.write_version(self.site, stored, one.ordinal, one.labels, refs)
                row.refs = refs
            wanted.update(refs)
        at = task.owner, task.name
        files = [langfuse.file_of(*at, ref) for ref in before - wanted]
        if gone.versions and not task.old:
            expected = {langfuse.file_of(*at, ref) for ref in wanted}
            files = [*{*langfuse.files_left(self.site, *at)} - expected]
        remove(self.site, files)

    def _read(self, task: Task, version: Version) -> Stored:
        owner, name = task.owner, task.name
        record, text = content.read_version(self.settings.content, owner, name, version)
        body = body_of(text, record.front_matter_bytes)
        return Stored(owner, name, version, record, text, body)

    def _write_version(
        self, stored: Stored, older: Stored | None, labels: list[str], ordinal: int
    ) -> tuple[ListedVersion, str]:
        at = {"owner": stored.owner, "name": stored.name, "version": str(stored.version)}
        previous = older.version if older else None
        version = derive.version_record(stored, previous, ordinal, self.links)
        self._write("version_raw", at, stored.content.encode())
        self._write("version_body", at, stored.body.encode())
        rows = []
        if older:
            where = f"{stored.owner}/{stored.name}"
            changes = line_diff.LineDiff(older.content, stored.content)
            text = changes.unified(f"{where}/{older.version}.md", f"{where}/{stored.version}.md")
            self._write("diff", at, text.encode())
            rows = hunks(changes)
        page = prompt_pages.version_page(self.pages, version, labels, rows)
        self._write("version_page", at, page)
        # Last: it says where the others are.
        data = envelopes.single(envelopes.json_bytes(version))
        self._write("version", at, data)
        return derive.version_entry(version), mirrored.sha256_of(data)

    def _write_repo(
        self, task: Task, written: _Written, labels: Labels, entries: list[ListedVersion]
    ) -> RepoRow:
        """Write the repo's own files; ``entries`` are all its versions, oldest first."""
        at = {"owner": task.owner, "name": task.name}
        rows = written.rows
        latest = written.texts.get(rows[-1].version) or self._read(task, task.versions[-1])
        pulls = task.pulls[0] if task.pulls else None
        repo = derive.repo_record(latest, entries, pulls, self.links, labels)
        repo_json = envelopes.json_bytes(repo)
        shown = {row.version: row.shown for row in rows}
        for one in entries:
            one.labels = shown.get(one.version, []) if labels.history else UNSET
        self._write("raw", at, latest.content.encode())
        self._write("body", at, latest.body.encode())
        versions = envelopes.whole_list(entries[::-1])
        self._write("versions", at, versions)
        self._write("repo", at, envelopes.single(repo_json))
        self._write(
            "repo_feed", at, feeds.repo_feed(self.settings, repo, written.entries[::-1], labels)
        )
        about = summarize(repo.description, repo.body)
        if len(entries) >= COMPARED_MIN:
            self._write("compare_page", at, prompt_pages.compare_page(self.pages, **at))
            page = prompt_pages.versions_page(self.pages, repo, entries, labels)
            self._write("versions_page", at, page)
        page = prompt_pages.repo_page(self.pages, repo, about, entries, labels)
        self._write("repo_page", at, page)
        digest = mirrored.digest_of(
            task.owner, task.name, versions, {row.version: row.sha256 for row in rows}, labels
        )
        return self._row_of(task, written, labels, entries, repo, about, digest)

    def _row_of(
        self,
        task: Task,
        written: _Written,
        labels: Labels,
        entries: list[ListedVersion],
        repo: Repo,
        about: str,
        digest: str,
    ) -> RepoRow:
        """The repo as the state remembers it and lists show it, once its files are written."""
        rows = written.rows
        summary = envelopes.json_bytes(derive.repo_summary(repo))
        meta = b""
        if self.settings.langfuse:
            numbers = [one.ordinal for one in written.entries]
            meta = envelopes.json_bytes(langfuse.meta_of(repo, numbers, [*labels.current]))
        card = self.pages.render("card.html", repo=repo, about=about)
        words = telling_words(repo)
        searched = envelopes.json_bytes(derive.catalogue_line(repo, "", words))
        published = [derive.epoch_seconds(one.published_at) for one in entries]
        pulls = repo.pulls or 0
        updated = derive.epoch_seconds(repo.updated_at)
        created = derive.epoch_seconds(repo.created_at)
        trend = derive.trend(published, task.pulls[1] if task.pulls else ())
        return RepoRow(
            id=f"{task.owner}/{task.name}",
            owner=task.owner,
            mark=task.mark,
            names=" ".join(row.version for row in rows),
            versions=_encode(rows),
            labels=b"",
            withdrawn="",
            versions_count=len(entries),
            pulls=pulls,
            updated=updated,
            created=created,
            trend=trend,
            tags=" ".join(repo.tags),
            digest=digest_of(summary, card, meta),
            search_digest=digest_of(searched, b"%d %d %d %d" % (pulls, updated, created, trend)),
            summary=summary,
            card=card,
            line=envelopes.json_bytes(derive.catalogue_line(repo, digest, words)),
            langfuse=meta,
        )

    def _write(self, route: str, at: dict[str, str], data: bytes) -> None:
        self.site.write(BY_NAME[route].file_for(**at), data)
