"""Renders and writes the files of one repo: its versions', then its own.

The unit of work of a build: read (``history``), then write the files that have changed. Needs only
the settings, the content and the state's row of this repo, so it runs in several processes at once.
"""

import bisect
from collections.abc import Callable
from functools import lru_cache, partial

from builder.emit import files, history
from builder.emit.history import ReadRecord, Remembered, Rendered, Task
from builder.model import envelopes
from builder.model.answers import Repo
from builder.model.answers import Version as VersionRecord
from builder.model.content_tree import TEXT
from builder.model.errors import ContentError
from builder.model.kinds import kind_of
from builder.model.langfuse_records import NO_REF, Findable, refs_of
from builder.model.links import Links
from builder.model.matching import version_file
from builder.model.names import LATEST, Version
from builder.model.objects import NO_REF_ID
from builder.model.records import time_of
from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.model.version_files import BYTES_MAX
from builder.model.withdrawn import WithdrawnParts
from builder.render import derive, prompt_pages, prompt_text, skills
from builder.render.changes_table import metadata_changes
from builder.render.derive import Entries, Stored
from builder.render.pages import pages_of
from builder.render.prompt_pages import Since
from builder.render.skills import Skill
from builder.search.telling_words import telling_words
from builder.store import content
from builder.store.site import Site
from builder.store.state.left import files_left
from builder.store.state.repos import RepoRow, digest_of
from builder.store.withdrawn_files import read_parts
from builder.text import abilities, line_diff
from builder.text.abilities import Findings
from builder.text.file_diff import FileChange, compare_files, unified
from builder.text.hunks import readable
from builder.text.interface import changes_for_callers, interface_of
from builder.text.prompts import body_of
from builder.text.summary import summarize

# The most versions cached while a repo is rendered.
TEXTS_KEPT = 32
# The bytes of the files of all cached skills, of which there are at least two. A skill has up to
# three times as many.
FILE_BYTES_KEPT = 8 * BYTES_MAX


def render_repo(task: Task, settings: Settings, site: Site) -> Rendered:
    """Write the files of a repo with readable versions. Raises ContentError."""
    try:
        return Prompt(task, settings, site).write()
    except ContentError:
        found = content.list_versions(settings.content, task.owner, task.name)
        if not found.versions or found.withdrawn == task.withdrawn:
            raise
    # A version was withdrawn after it was listed. The next build checks the repo again.
    versions, events, gone, _ = found
    task = task._replace(mark="", versions=versions, events=events, withdrawn=gone)
    return Prompt(task, settings, site).write()


def _read(read_record: ReadRecord, root: str, owner: str, name: str, version: Version) -> Stored:
    record = read_record(version)
    front = record.front_matter_bytes
    text = content.read_text(root, owner, name, version, record.sha256, front or 0)
    return Stored(owner, name, version, record, text, body_of(text, front))


def _skill(root: str, read: Callable[[Version], Stored], links: Links, version: Version) -> Skill:
    stored = read(version)
    data = content.read_files(root, stored.owner, stored.name, version, stored.record)
    return skills.skill_of(stored, data, links)


def _is_examined(stored: Stored) -> bool:
    front = stored.content[: len(stored.content) - len(stored.body)]
    return abilities.is_examined(front, stored.record.files or ())


def _find(
    read: Callable[[Version], Stored], skill: Callable[[Version], Skill], version: Version
) -> Findings:
    """The abilities of a version."""
    stored = read(version)
    files = skill(version).files if stored.record.files else ()
    return abilities.examine(stored.content, files)


class Prompt:
    """A repo with readable versions, whose files are written."""

    def __init__(self, task: Task, settings: Settings, site: Site) -> None:
        self.settings = settings
        self.site = site
        self.task = task
        self.links = Links(settings.base_url)
        self.pages = pages_of(settings)
        self.at = {"owner": task.owner, "name": task.name}
        # The caches wrap functions, because cached methods would keep all texts until the next
        # garbage collection.
        place = settings.content, task.owner, task.name
        self.read_record = lru_cache(TEXTS_KEPT)(partial(content.read_record, *place))
        self.read = lru_cache(TEXTS_KEPT)(partial(_read, self.read_record, *place))
        read_skill = partial(_skill, settings.content, self.read, self.links)
        skills_kept = max(2, FILE_BYTES_KEPT // max(BYTES_MAX, settings.file_bytes))
        self.skill = lru_cache(skills_kept)(read_skill)
        self.find = lru_cache(skills_kept)(partial(_find, self.read, self.skill))
        self.latest_text: prompt_text.Shown | None = None

    def write(self) -> Rendered:
        """Write the files that are not up to date on the site: versions, labels, refs, the repo.
        Raises ContentError.
        """
        root, task = self.settings.content, self.task
        known = history.read_known(task.old)
        gone = read_parts(root, task.id, task.withdrawn)
        self._withdraw(gone, known)
        self.history = history.read_history(root, task, known, gone, self.read_record)
        rows, renewed = self._write_versions()
        latest = rows[-1].version
        if latest in renewed or [*known][-1:] != [latest]:
            made = files.of_archive({**self.at, "version": latest}, self.skill(task.versions[-1]))
            self.site.put({**self.at, "archive": latest}, made)
        self._write_labels(renewed)
        if self.settings.langfuse:
            self._write_refs(rows)
        row = self._write_repo(rows)
        objects = {
            "version": [*(row.version for row in rows), *gone.names],
            "archive": [latest],
            "label": self.history.labels.history,
            "ref": [ref or NO_REF_ID for row in rows for ref in row.refs],
        }
        ids = [f"{task.id} {what} {name}" for what, names in objects.items() for name in names]
        return Rendered(row, [task.id, *ids])

    def _withdraw(self, gone: WithdrawnParts, known: dict[str, Remembered]) -> None:
        """This comes before anything else, because the withdrawn text may be a secret."""
        before = history.remembered_withdrawn(self.task.old)
        new = {str(one.version): one for one in gone.versions if str(one.version) not in before}
        for version, one in new.items():
            made = files.of_withdrawn_version(self.settings, one, **self.at)
            self.site.put({**self.at, "version": version}, made)
        if new:
            refs = [str(known[version].ordinal) for version in new if version in known]
            # The first version has no diff, but may have had one from a withdrawn version.
            first = str(self.task.versions[0])
            self.site.remove(
                *(
                    file
                    for file, (route, at) in files_left(self.site, **self.at)
                    if (at.get("version") in new and route.scope != "withdrawn")
                    or at.get("ref") in (*new, *refs)
                    or (route.name == "diff" and at["version"] == first)
                )
            )

    def _previous(self, version: Version) -> Version | None:
        """The readable version below this one."""
        below = bisect.bisect_left(self.task.versions, version)
        return self.task.versions[below - 1] if below else None

    def _entries(self, rows: list[Remembered]) -> Entries:
        """All versions of the repo as they are listed."""
        found = {row.version: row.entry for row in rows}
        gone = self.history.gone.versions
        for one in gone:
            name, previous = str(one.version), self._previous(one.version)
            number = self.history.numbers[name]
            entry = derive.withdrawn_entry(*self.at.values(), one, previous, number, self.links)
            found[name] = envelopes.json_bytes(entry)
        if gone:
            found = {name: found[name] for name in sorted(found, key=Version.parse)}
        return derive.entries_of(found, len(gone), self.history.labels)

    def _write_versions(self) -> tuple[list[Remembered], set[str]]:
        """Write the versions that are stale, or show other labels or another number. Returns all
        of them, oldest first; and the names of those that were written for more than their labels.
        """
        rows, renewed, found = [], set(), self.history
        labelled = found.labels.by_version()
        for version, name in zip(self.task.versions, found.names, strict=True):
            old, mark = found.known.get(name), found.stale.get(name)
            shown, ordinal = labelled.get(name, []), found.numbers[name]
            is_same = mark is None and old.ordinal == ordinal
            if is_same and old.shown == shown:
                rows.append(old)
                continue
            row = self._write_version(version, old.mark if mark is None else mark, shown, ordinal)
            if is_same:
                row.refs = old.refs
            else:
                renewed.add(name)
            rows.append(row)
        return rows, renewed

    def _write_version(
        self, number: Version, mark: str, labels: list[str], ordinal: int
    ) -> Remembered:
        previous = self._previous(number)
        older = self.read(previous) if previous else None
        stored = self.read(number)
        version = derive.version_record(stored, previous, ordinal, self.links)
        since, diff = self._since(older, stored) if older else (None, None)
        text = prompt_text.shown(self.pages, version, version.version, self._found(stored))
        if number == self.task.versions[-1]:
            self.latest_text = text  # of the prompt's page, too
        page = prompt_pages.version_page(self.pages, version, labels, text, since)
        made = files.of_version(version, self.skill(number), page, text.files, diff)
        known = {}
        for one in (older.record.files or ()) if older else ():
            known[one.sha256] = version_file(**self.at, version=previous, path=one.path).file
        self.site.put({**self.at, "version": version.version}, made, known=known)
        entry = envelopes.json_bytes(derive.version_entry(version))
        published = derive.epoch_seconds(version.published_at)
        is_counted = bool(stored.record.ordinal)
        return Remembered(version.version, mark, entry, published, ordinal, is_counted, labels)

    def _since(self, older: Stored, stored: Stored) -> tuple[Since, bytes]:
        """The changes since the previous version, for its page and as a diff."""
        changes = line_diff.LineDiff(older.content, stored.content)
        names = (f"{self.task.id}/{TEXT.file(one.version)}" for one in (older, stored))
        changed = self._file_changes(older, stored)
        diff = (changes.unified(*names) + unified(changed)).encode()
        sides = (interface_of(one.record, one.content) for one in (older, stored))
        text = readable(changes)
        # Only the note on equal texts names it.
        metadata = "" if text.rows else metadata_changes(older.record, stored.record)
        since = Since(changes_for_callers(*sides), text, changed, None, metadata)
        if not _is_examined(older) and not _is_examined(stored):
            return since, diff
        found = abilities.compare(self.find(older.version), self.find(stored.version))
        return since._replace(found=[*found]), diff

    def _found(self, stored: Stored) -> Findings | None:
        """The abilities of a version; None if it is only a text."""
        return self.find(stored.version) if _is_examined(stored) else None

    def _file_changes(self, older: Stored, stored: Stored) -> list[FileChange]:
        """The changes of files from the previous version."""
        data = {path: raw for path, raw, _ in self.skill(stored.version).files}
        place = self.settings.content, self.task.owner, self.task.name, older.version
        read = partial(content.read_version_file, *place)
        listed = older.record.files or (), stored.record.files or ()
        return compare_files(*listed, read, lambda one: data[one.path])

    def _write_labels(self, renewed: set[str]) -> None:
        """Write the files of labels whose moves or whose version have changed."""
        for label, moves in self.history.labels.history.items():
            named = moves[0].version
            if label in self.history.moved or named in renewed:
                version = self._record(named, self.history.numbers[named]) if named else None
                skill = self.skill(Version.parse(named)) if named else None
                # A removed label that returns may have had files in this same second; the
                # history's time shows it.
                at = {**self.at, "label": label}
                first = BY_NAME["label_history"].file_for(**at)
                self.site.put(at, files.of_label(moves, version, skill), not_before=first)

    def _write_refs(self, rows: list[Remembered]) -> None:
        """Write the versions for Langfuse's SDKs under their new refs, and store these in
        ``rows``.
        """
        found = [Findable(row.version, row.ordinal, row.shown) for row in rows]
        for row, version, refs in zip(rows, self.task.versions, refs_of(found), strict=True):
            if row.refs == refs:
                continue
            row.refs, labels = refs, [*row.shown, *([LATEST] if LATEST in refs else [])]
            data = files.langfuse_prompt(self.read(version), row.ordinal, labels)
            for ref in refs:
                is_label = ref in row.shown  # As in ``_write_labels``.
                first = BY_NAME["label_history"].file_for(**self.at, label=ref) if is_label else ""
                route = "langfuse_prompt" if ref == NO_REF else "langfuse_ref"
                self.site.put(
                    {**self.at, "ref": ref or NO_REF_ID}, [(route, data)], not_before=first
                )

    def _record(self, name: str, ordinal: int) -> VersionRecord:
        version = Version.parse(name)
        stored, previous = self.read(version), self._previous(version)
        return derive.version_record(stored, previous, ordinal, self.links)

    def _write_repo(self, rows: list[Remembered]) -> RepoRow:
        """Write the repo's own files."""
        labels, counts = self.history.labels, self.task.pulls
        latest = self.read(self.task.versions[-1])
        entries = self._entries(rows)
        published = [row.published for row in rows]
        remains = [one.remains.published_at for one in self.history.gone.versions]
        published += map(derive.epoch_seconds, remains)
        pulls = counts[0] if counts else None
        created = time_of(min(published))
        repo = derive.repo_record(latest, entries.count, created, pulls, self.links, labels)
        about = summarize(repo.description, repo.body)
        text = self.latest_text or prompt_text.shown(
            self.pages, repo, repo.latest_version, self._found(latest)
        )
        by_day = counts.by_day if counts else ()
        page = prompt_pages.repo_page(self.pages, repo, about, entries, labels, text, by_day)
        skill = self.skill(latest.version)
        self.site.put(self.at, files.of_repo(self.settings, repo, skill, entries, labels, page))
        return self._row(rows, published, repo, about)

    def _row(self, rows: list[Remembered], published: list[int], repo: Repo, about: str) -> RepoRow:
        """The state's row of the repo, which also appears in lists; computed once its files are
        written.
        """
        task, labels, gone = self.task, self.history.labels, self.history.gone
        summary = envelopes.json_bytes(derive.repo_summary(repo))
        ordinals = [row.ordinal for row in rows]
        meta = files.langfuse_row(repo, ordinals, labels) if self.settings.langfuse else b""
        kind = kind_of(repo)
        card = self.pages.render("card.html", repo=repo, about=about, kind=kind)
        words = telling_words(repo) if self.settings.words else ""
        line = envelopes.json_bytes(derive.catalogue_line(repo, words))
        pulls = repo.pulls or 0
        updated = derive.epoch_seconds(repo.updated_at)
        created = min(published)
        trend = derive.trend(published, task.pulls[1] if task.pulls else ())
        return RepoRow(
            id=task.id,
            owner=task.owner,
            mark=task.mark,
            names=" ".join(row.version for row in rows),
            versions=history.encode_versions(rows),
            labels=history.encode_moves(self.history.moves),
            withdrawn=" ".join(sorted(gone.names)),
            gone=gone.lines(task.owner, task.name),
            versions_count=repo.versions_count,
            pulls=pulls,
            updated=updated,
            created=created,
            trend=trend,
            tags=" ".join(repo.tags),
            kind=kind.key,
            trial=prompt_text.trial_rank(repo),
            digest=digest_of(summary, card, meta),
            search_digest=digest_of(line, b"%d %d %d %d" % (pulls, updated, created, trend)),
            summary=summary,
            card=card,
            line=line,
            langfuse=meta,
            skill=skills.remembered(self.skill(task.versions[-1]), task.owner, self.links),
        )
