"""The build: read → derive → render → write, full or incremental by one path.

What to do follows from what the last build remembered. With nothing remembered everything is
stale, and that is a full build; there is no other difference. The order of writing is such
that a pointer is written after what it points to: versions, repos, owners, tags, lists, and
``hub.json`` last. What is no longer pointed to is removed one build later.
"""

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from markupsafe import Markup

from builder import content, database, derive, openapi, records, render, search
from builder.changes import Progress, find_changes
from builder.errors import ContentError, Fault
from builder.lists import StalePage, find_stale, write_page
from builder.orphans import Expected
from builder.pool import render_repos
from builder.render import json_bytes, single
from builder.repos import Task, remembered_versions
from builder.routes import BY_NAME, ROUTES, SORTS, Scope
from builder.settings import Settings, check_folders
from builder.site import Site
from builder.state import RepoRow, State, build_lock

HOME_ROWS = 10
HOME_TAGS = 40


class Report(NamedTuple):
    """What a build did. ``rendered``: repos that were not as remembered."""

    repos: int
    versions: int
    rendered: int
    written: int
    unchanged: int
    removed: int
    indexed: int
    seconds: float


class Difference(NamedTuple):
    """How a site is not what the content says; files relative to the site, sorted."""

    missing: list[str]
    differing: list[str]
    orphaned: list[str]


def build(
    settings: Settings,
    *,
    changed: Iterable[tuple[str, str]] | None = None,
    full: bool = False,
    index: bool = True,
    progress: Progress = lambda what, done, total: None,
    on_wait: Callable[[], None] = lambda: None,
    on_visible: Callable[[], None] = lambda: None,
) -> Report:
    """Make the site what the content says.

    ``changed``: the (owner, name) of the only repos that can differ from the last build; by
    default all of the content is looked at. ``full``: compare every file. ``index``: bring the
    search index up to date. ``progress(what, done, total)`` is called often. ``on_wait``: once,
    when another build has to end first. ``on_visible``: once, when the changed repos' own files
    and the first pages of lists are written.

    Raises ContentError, OperatorError; the next build then makes good what this one left.
    """
    started = time.perf_counter()
    check_folders(settings)
    with build_lock(settings.state, on_wait):
        try:
            run = _attempt(settings, changed, full, index, progress, on_visible)
        except sqlite3.DatabaseError as error:
            if not database.is_damaged(error):
                raise
            # The state is a cache: without it, the build looks at everything.
            database.remove(State.path_in(settings.state))
            run = _attempt(settings, None, full, index, progress, on_visible)
    return run.report()._replace(seconds=time.perf_counter() - started)


def _attempt(
    settings: Settings,
    changed: Iterable[tuple[str, str]] | None,
    full: bool,
    index: bool,
    progress: Progress,
    on_visible: Callable[[], None],
) -> "_Run":
    with State(settings.state) as state:
        run = _Run(settings, state, Site(settings.out), progress)
        run.run(changed, full, index, on_visible)
        return run


def compare(settings: Settings, progress: Progress = lambda what, done, total: None) -> Difference:
    """How the site differs from what a build would make of the content; writes nothing.

    Files that the last build left for one build more are no difference.
    Raises ContentError, OperatorError.
    """
    check_folders(settings)
    with State(None) as state:
        run = _Run(settings, state, Site(settings.out, dry=True), progress)
        run.run(None, True, False, lambda: None)
        orphaned = state.orphans()
    if orphaned and os.path.exists(State.path_in(settings.state)):
        with State(settings.state, read_only=True) as state:
            orphaned -= state.orphans()
    tally = run.site.tally
    return Difference(sorted(tally.missing), sorted(tally.differing), sorted(orphaned))


def stamp(settings: Settings) -> str:
    """Differs whenever the same content would give other files: code, templates, settings."""
    hasher = hashlib.sha256(repr(settings[3:]).encode())
    here = os.path.dirname(__file__)
    for folder in (here, render.TEMPLATES, render.ASSETS):
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    hasher.update(name.encode() + b"\0" + file.read())
    return hasher.hexdigest()


class _Run:
    """One build: its inputs, and what it has found out so far."""

    def __init__(self, settings: Settings, state: State, site: Site, progress: Progress) -> None:
        self.settings = settings
        self.state = state
        self.site = site
        self.progress = progress
        self.pages = render.pages_of(settings)
        self.tags: set[str] = set()  # whose lists may have changed
        self.is_catalogue_changed = False
        self.orphan_candidates: list[str] = []
        self.rendered = self.indexed = self.removed = 0
        self.totals = (0, 0)

    def run(
        self,
        changed: Iterable[tuple[str, str]] | None,
        full: bool,
        index: bool,
        on_visible: Callable[[], None],
    ) -> None:
        state, site = self.state, self.site
        current = stamp(self.settings)
        is_fresh = full or not state.vouches_for(current, site.mark())
        if is_fresh:
            changed = None
            state.begin(forget=True)
            if not site.dry:
                site.remove_temporary_files()
        found = find_changes(self.settings.content, state, changed, self.progress)
        if not is_fresh:
            # Only now: a fault found so far has changed nothing.
            state.begin(forget=False)
        owners = self._write_repos(found.tasks) | self._forget_repos(found.removed)
        self.rendered = len(found.tasks)
        self._write_owners(sorted(owners | found.owners))
        if is_fresh:
            self.is_catalogue_changed = True
            self._write_fixed_files()
        deep_pages = self._write_first_pages() if self.is_catalogue_changed else []
        on_visible()
        for done, page in enumerate(deep_pages):
            self.progress("Writing list pages", done, len(deep_pages))
            write_page(page, state, site, self.pages)
        self._remove_orphans(is_fresh)
        if index:
            self.indexed = search.update(self.settings, state, self.progress)
        self.totals = state.totals()
        if self.is_catalogue_changed:
            self._write_catalogue_files()
        state.end(current, site.mark())

    def report(self) -> Report:
        repos, versions = self.totals
        tally = self.site.tally
        return Report(
            repos, versions, self.rendered, tally.written, tally.unchanged, self.removed,
            self.indexed, 0.0,
        )  # fmt: skip

    def _write_repos(self, tasks: list[Task]) -> set[str]:
        """Write these repos' files; returns the owners that this concerns."""
        owners = set()
        rows = render_repos(tasks, self.settings, self.site)
        for done, row in enumerate(rows):
            self.progress("Writing repos", done, len(tasks))
            old = self.state.repo(row.id)
            self.state.put_repo(row, old.tags.split() if old else ())
            if old and _place(old) == _place(row):
                continue
            owners.add(row.owner)
            self._note_change(old, row)
        return owners

    def _forget_repos(self, removed: list[str]) -> set[str]:
        """Forget these repos; returns the owners that this concerns."""
        owners = set()
        for repo_id in removed:
            old = self.state.repo(repo_id)
            if old:
                self.state.remove_repo(repo_id)
                owners.add(old.owner)
                self._note_change(old, None)
        return owners

    def _note_change(self, old: RepoRow | None, new: RepoRow | None) -> None:
        self.is_catalogue_changed = True
        for row in (old, new):
            if row:
                self.tags.update(row.tags.split())
        if old:
            self.orphan_candidates += _repo_files(old)

    def _write_owners(self, owners: list[str]) -> None:
        faults: list[Fault] = []
        for owner in owners:
            mark = content.owner_mark(self.settings.content, owner)
            try:
                profile = content.read_owner(self.settings.content, owner)
            except ContentError as error:
                faults += error.faults
                continue
            rows = self.state.owner_rows(owner)
            if not profile and not rows:
                self.state.remove_owner(owner)
                self.orphan_candidates += _files_of("owner", owner=owner)
                continue
            joined_at = self.state.joined_at(owner)
            user = derive.user_record(owner, profile, joined_at, len(rows))
            data = single(render.user_bytes(user, [summary for summary, _ in rows]))
            self.site.write(BY_NAME["user"].file_for(owner=owner), data)
            page = self.pages.render_list("owner.html", [card for _, card in rows], user=user)
            self.site.write(BY_NAME["owner_page"].file_for(owner=owner), page)
            self.state.put_owner(owner, mark)
        if faults:
            raise ContentError(faults)

    def _write_first_pages(self) -> list[StalePage]:
        """Write what a reader sees first of the lists; returns the pages that are still to do."""
        tags = [records.Tag(name, count) for name, count in self.state.tags()]
        self._write("tags", render.whole_list([json_bytes(tag) for tag in tags]))
        self._write("tags_page", self.pages.render("tags.html", tags=tags))
        deep = []
        for tag in (None, *sorted(self.tags)):
            stale = find_stale(self.state, tag)
            self.orphan_candidates += stale.gone
            for page in stale.pages:
                if page.number == 1:
                    write_page(page, self.state, self.site, self.pages)
                else:
                    deep.append(page)
        rows = {
            sort: self.state.rows([key for key, _ in self.state.order(None, sort, HOME_ROWS)])
            for sort in SORTS
        }
        cards = {sort: Markup(b"".join(card for _, card in rows[sort]).decode()) for sort in SORTS}
        repos_count, _ = self.state.totals()
        page = self.pages.render(
            "home.html", cards=cards, tags=tags[:HOME_TAGS], repos_count=repos_count
        )
        self._write("home", page)
        return deep

    def _write_fixed_files(self) -> None:
        """What depends on code and settings alone."""
        self._write("openapi", openapi.document(self.settings))
        self._write("not_found_page", self.pages.render("404.html"))
        with open(os.path.join(render.ASSETS, "style.css"), "rb") as file:
            self._write("stylesheet", file.read())

    def _write_catalogue_files(self) -> None:
        lines = self.state.catalogue_lines()
        self._write("catalogue", b"".join(line + b"\n" for line in lines))
        hub = derive.hub_record(self.settings, *self.totals)
        self._write("hub", single(json_bytes(hub)))

    def _write(self, route: str, data: bytes) -> None:
        self.site.write(BY_NAME[route].file, data)

    def _remove_orphans(self, is_fresh: bool) -> None:
        """Remove what the last build left without an object; note what this one does."""
        expected = Expected(self.state)
        candidates = self.orphan_candidates
        if is_fresh:
            # Nothing is remembered of what a site that was there before may hold.
            candidates = () if self.site.is_new else self.site.files()
        orphans = {file for file in candidates if file not in expected}
        before = self.state.orphans()
        for file in before:
            if file not in expected and not self.site.dry:
                self.removed += self.site.remove(file)
        self.state.put_orphans(orphans - before)


def _place(row: RepoRow) -> tuple[object, ...]:
    """What a repo shows in lists and where, and which files it has."""
    return row.digest, row.line, row.trend, remembered_versions(row.versions)


def _repo_files(row: RepoRow) -> list[str]:
    """Every file that a repo may have had on the site."""
    owner, name = row.id.split("/")
    files = _files_of("repo", owner=owner, name=name)
    for version in remembered_versions(row.versions):
        files += _files_of("version", owner=owner, name=name, version=version)
    return files


def _files_of(scope: Scope, **params: str) -> list[str]:
    return [route.file_for(**params) for route in ROUTES if route.scope == scope]
