"""Renders and writes the files of one repo: its versions', then its own.

The unit of work of a build. Needs nothing but the settings, the content and what the last
build remembered of this repo, so it runs in several processes at once.
"""

from typing import NamedTuple

import msgspec

from builder.model.names import Version
from builder.model.records import VersionEntry
from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.render import derive, envelopes, feeds
from builder.render.derive import Links, Stored
from builder.render.hunks import hunks
from builder.render.pages import pages_of
from builder.stats.pulls import PullCounts
from builder.store import content
from builder.store.site import Site
from builder.store.state.repos import RepoRow, digest_of
from builder.text import line_diff
from builder.text.prompts import body_of
from builder.text.summary import summarize


class Task(NamedTuple):
    """A repo to render. ``mark`` is its folder's, ``marks`` are its versions', ``events`` those of
    its changes of labels; ``remembered`` is ``RepoRow.versions`` of the last build, or None;
    ``pulls`` is None where nobody counts them.
    """

    owner: str
    name: str
    mark: str
    versions: list[Version]
    marks: list[str]
    events: dict[int, str]
    remembered: bytes | None
    pulls: PullCounts | None


class _Remembered(msgspec.Struct, array_like=True):
    """A version whose files are on the site: its mark and its predecessor's, and its entry."""

    version: str
    marks: str
    entry: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Remembered]).decode
_decode_entry = msgspec.json.Decoder(VersionEntry).decode


def remembered_versions(blob: bytes) -> list[str]:
    """The versions that the last build put on the site."""
    return [one.version for one in _decode(blob)]


def task_as_remembered(row: RepoRow, pulls: PullCounts | None) -> Task:
    """A repo with other pulls, and else what the last build left."""
    owner, name = row.id.split("/")
    known = _decode(row.versions)
    versions = [Version.parse(one.version) for one in known]
    marks = [one.marks.partition(" ")[0] for one in known]
    return Task(owner, name, row.mark, versions, marks, {}, row.versions, pulls)


class RepoRenderer:
    """Renders repos of one site."""

    def __init__(self, settings: Settings, site: Site) -> None:
        self.settings = settings
        self.site = site
        self.links = Links(settings.base_url)
        self.pages = pages_of(settings)

    def render(self, task: Task) -> RepoRow:
        """Write the files of a repo with at least one version. Raises ContentError."""
        owner, name = task.owner, task.name
        known = {one.version: one for one in _decode(task.remembered)} if task.remembered else {}
        rows: list[_Remembered] = []
        entries: list[VersionEntry] = []
        stored = None
        for index, version in enumerate(task.versions):
            # A version's files depend on it and on the one below it (diff, previous).
            marks = f"{task.marks[index]} {task.marks[index - 1]}" if index else task.marks[0]
            is_settled = all(task.marks[max(0, index - 1) : index + 1])
            old = known.get(str(version))
            if old and is_settled and old.marks == marks:
                rows.append(old)
                entries.append(_decode_entry(old.entry))
                stored = None
            else:
                if stored is None and index:
                    stored = self._read(owner, name, task.versions[index - 1])
                older, stored = stored, self._read(owner, name, version)
                entry = self._write_version(stored, older)
                rows.append(_Remembered(str(version), marks, envelopes.json_bytes(entry)))
                entries.append(entry)
        latest = stored or self._read(owner, name, task.versions[-1])
        return self._write_repo(task, latest, rows, entries)

    def _read(self, owner: str, name: str, version: Version) -> Stored:
        record, text = content.read_version(self.settings.content, owner, name, version)
        body = body_of(text, record.front_matter_bytes)
        return Stored(owner, name, version, record, text, body)

    def _write_version(self, stored: Stored, older: Stored | None) -> VersionEntry:
        at = {"owner": stored.owner, "name": stored.name, "version": str(stored.version)}
        version = derive.version_record(stored, older.version if older else None, self.links)
        self._write("version_raw", at, stored.content.encode())
        rows = []
        if older:
            where = f"{stored.owner}/{stored.name}"
            changes = line_diff.LineDiff(older.content, stored.content)
            text = changes.unified(f"{where}/{older.version}.md", f"{where}/{stored.version}.md")
            self._write("diff", at, text.encode())
            rows = hunks(changes)
        page = self.pages.render(
            "version.html", version=version, title=stored.record.title, hunks=rows
        )
        self._write("version_page", at, page)
        # Last: it says where the others are.
        self._write("version", at, envelopes.single(envelopes.json_bytes(version)))
        return derive.version_entry(version)

    def _write_repo(
        self, task: Task, latest: Stored, rows: list[_Remembered], entries: list[VersionEntry]
    ) -> RepoRow:
        at = {"owner": task.owner, "name": task.name}
        total, by_day = task.pulls or (None, ())
        repo = derive.repo_record(latest, entries, total, self.links)
        repo_json = envelopes.json_bytes(repo)
        newest_first = entries[::-1]
        self._write("raw", at, latest.content.encode())
        self._write("versions", at, envelopes.whole_list([row.entry for row in reversed(rows)]))
        self._write("repo", at, envelopes.single(repo_json))
        self._write("repo_feed", at, feeds.repo_feed(self.settings, repo, newest_first))
        about = summarize(repo.description, repo.body)
        page = self.pages.render("repo.html", repo=repo, about=about, versions=newest_first)
        self._write("repo_page", at, page)
        summary = envelopes.json_bytes(derive.repo_summary(repo))
        card = self.pages.render("card.html", repo=repo, about=about)
        line = envelopes.json_bytes(derive.catalogue_line(repo))
        published = [derive.epoch_seconds(one.published_at) for one in entries]
        return RepoRow(
            id=f"{task.owner}/{task.name}",
            owner=task.owner,
            mark=task.mark,
            versions=_encode(rows),
            versions_count=len(entries),
            pulls=repo.pulls or 0,
            updated=derive.epoch_seconds(repo.updated_at),
            created=derive.epoch_seconds(repo.created_at),
            trend=derive.trend(published, by_day),
            tags=" ".join(repo.tags),
            digest=digest_of(summary, card),
            text_digest=digest_of(line),
            summary=summary,
            card=card,
            line=line,
        )

    def _write(self, route: str, at: dict[str, str], data: bytes) -> None:
        self.site.write(BY_NAME[route].file_for(**at), data)
