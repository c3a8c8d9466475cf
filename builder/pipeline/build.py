"""The build: read → derive → render → write, full or incremental by one path.

What to do follows from what the last build remembered. With nothing remembered everything is
stale, and that is a full build; there is no other difference. The order of writing is such
that a pointer is written after what it points to: versions, repos, owners, tags, lists, and
``hub.json`` last. What is no longer pointed to is removed one build later.

A build has two parts. First it makes visible what has changed: the repos' own files and the
first pages of lists, at a cost that does not grow with the catalogue. Then it settles the rest:
deep pages, the search index, the catalogue's own files. It may leave the second part to the
next build when somebody waits for the first.
"""

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import NamedTuple

import msgspec

import builder
from builder.model import records
from builder.model.errors import STATUS, ContentError, Fault, OperatorError, PullsError
from builder.model.progress import Progress
from builder.model.routes import BY_NAME
from builder.model.settings import Settings, check_folders
from builder.pipeline.changes import Changes, find_changes
from builder.pipeline.pool import render_repos
from builder.pipeline.recount import ShownPulls, newest
from builder.pipeline.settle import Settling
from builder.render import (
    api_page,
    connect,
    crawlers,
    envelopes,
    feeds,
    openapi,
    shell_client,
)
from builder.render.envelopes import json_bytes
from builder.render.pages import ASSETS, pages_of
from builder.search import index as search_index
from builder.stats.pulls import Pulls
from builder.store import content, database
from builder.store.site import Site
from builder.store.state import RepoRow, State, build_lock
from builder.write.home import write_home
from builder.write.lists import StalePage, find_stale_first, write_page
from builder.write.orphans import lost_files, new_files
from builder.write.owner import write_owner
from builder.write.repo import Task, remembered_versions

log = logging.getLogger("hub.build")


class Report(NamedTuple):
    """What a build did. ``rendered``: repos that were not as remembered, or have other pulls.
    ``is_settled``: nothing is left to the next build. ``behind_seconds``: the age of the oldest
    change that lists do not have.
    """

    repos: int
    versions: int
    rendered: int
    written: int
    unchanged: int
    removed: int
    indexed: int
    is_settled: bool
    behind_seconds: float
    seconds: float


class Visible(NamedTuple):
    """What readers can see now. ``serial``: how many publications there are, with the ones made
    visible. ``faulty``: ids of the repos that stay as they were, because of faults.
    """

    serial: int
    faulty: frozenset[str]


class Difference(NamedTuple):
    """How a site is not what the content says; files relative to the site, sorted."""

    missing: list[str]
    differing: list[str]
    orphaned: list[str]


def build(
    settings: Settings,
    *,
    changed: Iterable[tuple[str, str | None]] | None = None,
    full: bool = False,
    index: bool = True,
    progress: Progress = lambda what, done, total: None,
    on_wait: Callable[[], None] = lambda: None,
    on_visible: Callable[[Visible], None] = lambda visible: None,
    is_wanted: Callable[[], bool] | None = None,
) -> Report:
    """Make the site what the content says.

    ``changed``: the (owner, name) of the only repos that can differ from the last build, with None
    for the name where it is the owner's profile; by default all of the content is looked at.
    ``full``: compare every file. ``index``: bring the search index up to date.
    ``progress(what, done, total)`` is called often. ``on_wait``: once, when another build has to
    end first. ``on_visible``: once, when the changed repos' own files and the first pages of lists
    are written. ``is_wanted``: whether another build should begin soon; then, or when another
    process waits to build, this one leaves what is not urgent to it. By default a build leaves
    nothing.

    Raises OperatorError; PullsError, but with ``changed`` pulls stay as they are shown instead;
    ContentError: before anything has changed in lists; but with ``changed``, after everything
    that has no fault is built. The next build makes good what this one left.
    """
    started = time.perf_counter()
    check_folders(settings)
    content.check_folder(settings.content)  # before the state folder is made
    with build_lock(settings.state, on_wait) as is_lock_wanted:

        def attempt(named: list[tuple[str, str | None]] | None) -> Report:
            with State(settings.state) as state:
                try:
                    with Pulls(settings.state) as pulls:
                        return attempt_with(state, pulls, named)
                except PullsError as error:
                    if named is None:
                        raise
                    # Publishers do not wait until the counts are mended.
                    log.error("The site goes on showing the pulls that it shows. %s", error)
                    return attempt_with(state, ShownPulls(state, error), named)

        def attempt_with(
            state: State, pulls: Pulls | ShownPulls, named: list[tuple[str, str | None]] | None
        ) -> Report:
            run = _Run(settings, state, pulls, Site(settings.out), progress)
            if is_wanted:
                run.is_wanted = lambda: is_wanted() or is_lock_wanted()
            try:
                run.run(named, full, index, on_visible)
            except Exception:
                state.abandon()
                raise
            return run.report()

        named = None if changed is None else [*changed]
        if named is None:
            _drop_damaged(settings)
        try:
            try:
                report = attempt(named)
            except OperatorError:
                raise
            except Exception:
                # What damage makes of a build is an error of any kind.
                if not _drop_damaged(settings):
                    raise
                report = attempt(None)
        except sqlite3.Error as error:
            raise OperatorError(
                f"Cannot use the state {State.path_in(settings.state)}: {error}. Check that the "
                "disk has space, that you may write there and that no other program has the file "
                "open. Then build again."
            ) from error
    return report._replace(seconds=time.perf_counter() - started)


def _drop_damaged(settings: Settings) -> bool:
    """Throw away the state and the search index if they are damaged; whether one was.

    Both are caches: the next build makes them anew. Reads them whole. Raises OperatorError.
    """
    path = State.path_in(settings.state)
    state_damage = database.find_damage(path, database.SCHEMA_VERSION)
    if state_damage:
        log.warning("The build state %s is damaged (%s). Building it anew.", path, state_damage)
        database.remove(path)
    index_damage = search_index.find_damage(settings)
    if index_damage:
        log.warning("The search index is damaged (%s). Building it anew.", index_damage)
        search_index.forget(settings)
    return bool(state_damage or index_damage)


def compare(settings: Settings, progress: Progress = lambda what, done, total: None) -> Difference:
    """How the site differs from what a build would make of the content; writes nothing.

    Files that the last build left for one build more are no difference.
    Raises ContentError, OperatorError.
    """
    check_folders(settings)
    with State(None) as state, Pulls(settings.state) as pulls:
        run = _Run(settings, state, pulls, Site(settings.out, dry=True), progress)
        run.run(None, True, False, lambda visible: None)
        orphaned = set(state.orphans())
    path = State.path_in(settings.state)
    if orphaned and os.path.exists(path):
        try:
            with State(settings.state, read_only=True) as state:
                orphaned -= state.orphans().keys()
        except sqlite3.Error as error:
            log.warning("Cannot read which files the last build left in %s: %s.", path, error)
    tally = run.site.tally
    return Difference(sorted(tally.missing), sorted(tally.differing), sorted(orphaned))


def stamp(settings: Settings) -> str:
    """Differs whenever the same content would give other files: code, templates, settings."""
    return hashlib.sha256(repr(settings[3:]).encode() + _code_digest()).hexdigest()


@cache
def _code_digest() -> bytes:
    # Once a process: what it runs is what it has loaded.
    hasher = hashlib.sha256(shell_client.read_source())
    for folder, folders, files in os.walk(os.path.dirname(builder.__file__)):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            with open(os.path.join(folder, name), "rb") as file:
                hasher.update(name.encode() + b"\0" + file.read())
    return hasher.digest()


class _Run:
    """One build: its inputs, and what it has found out so far."""

    def __init__(
        self, settings: Settings, state: State, pulls: Pulls | ShownPulls, site: Site,
        progress: Progress,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.state = state
        self.pulls = pulls
        self.site = site
        self.progress = progress
        self.is_wanted: Callable[[], bool] | None = None
        self.pages = pages_of(settings)
        self.is_fresh = self.is_strict = False
        self.is_settled = True
        self.faults: list[Fault] = []
        self.rendered = self.indexed = self.removed = 0

    def run(
        self,
        changed: Collection[tuple[str, str | None]] | None,
        full: bool,
        index: bool,
        on_visible: Callable[[Visible], None],
    ) -> None:
        started = time.monotonic()
        state, site = self.state, self.site
        current = stamp(self.settings)
        self.is_fresh = full or not state.vouches_for(current, site.mark())
        if (self.is_fresh or state.was_killed()) and not site.dry:
            site.remove_temporary_files()
        if self.is_fresh:
            if isinstance(self.pulls, ShownPulls):
                raise self.pulls.error  # nothing would know any more what the site shows
            changed = None
            state.begin(forget=True)
        # Who names repos has others to serve than their faults; who asks for all gets all.
        self.is_strict = changed is None
        found = find_changes(self.settings.content, state, self.pulls, changed, self.progress)
        self._note_faults(found.faults)
        if self.is_fresh:
            state.show_pulls(*newest(self.pulls))
        else:
            state.begin(forget=False)
        self._make_visible(found)
        faulty = frozenset("/".join(fault.path.split("/")[:2]) for fault in self.faults)
        on_visible(Visible(state.totals()[1], faulty))
        rest = Settling(
            self.settings, state, self.pulls, site, self.progress, self.is_wanted,
            is_fresh=self.is_fresh, busy_seconds=time.monotonic() - started,
        )  # fmt: skip
        self.is_settled = rest.go_on(index)
        self.removed, self.indexed = rest.removed, rest.indexed
        self.rendered += rest.recount.rendered
        self.faults += rest.recount.faults
        state.end(current, site.mark())
        if self.faults:
            raise ContentError(sorted(self.faults))

    def report(self) -> Report:
        repos, versions = self.state.totals()
        tally = self.site.tally
        return Report(
            repos, versions, self.rendered, tally.written, tally.unchanged, self.removed,
            self.indexed, self.is_settled, self.state.behind_seconds(), 0.0,
        )  # fmt: skip

    def _note_faults(self, faults: list[Fault]) -> None:
        self.faults += faults
        if faults and self.is_strict:
            raise ContentError(sorted(faults))

    def _make_visible(self, found: Changes) -> None:
        state = self.state
        repos = {f"{task.owner}/{task.name}" for task in found.tasks} | {*found.removed}
        owners = found.owners | {repo_id.split("/")[0] for repo_id in repos}
        state.add_todo("owner", owners)
        if not self.is_fresh:
            state.add_todo("repo", repos)
            for task in found.tasks:
                state.add_orphans(new_files(task, state.repo(f"{task.owner}/{task.name}")))
        state.checkpoint()
        self._write_repos(found.tasks)
        self._forget_repos(found.removed)
        if self.is_fresh:
            self._note_lists([tag for tag, _ in state.tags()])
            state.add_todo("site", ["tags", "index"])
        tags = state.todo("first page")
        pages = [page for tag in sorted(tags) for page in find_stale_first(state, tag or None)]
        state.checkpoint()
        self._write_owners(sorted(state.todo("owner")))
        if self.is_fresh:
            self._write_fixed_files()
        if tags:
            self._write_first_pages(pages)
        state.done("first page", tags)
        state.checkpoint()

    def _write_repos(self, tasks: list[Task]) -> None:
        try:
            for done, row in enumerate(render_repos(tasks, self.settings, self.site)):
                self.progress("Writing repos", done, len(tasks))
                self.rendered += 1
                old = None if self.is_fresh else self.state.repo(row.id)
                self.state.put_repo(row, old)
                if self.is_fresh:
                    continue  # all lists are to be written
                if not old or old.text_digest != row.text_digest:
                    self.state.add_todo("index", [row.id])
                if not old or _place(old) != _place(row):
                    self._note_change(old, row)
                self.state.done("repo", [row.id])
        except ContentError as error:
            self._note_faults(error.faults)

    def _forget_repos(self, removed: list[str]) -> None:
        for repo_id in removed:
            old = self.state.repo(repo_id)
            if old:
                self.state.remove_repo(old)
                self.state.add_todo("index", [repo_id])
                self._note_change(old, None)
        self.state.done("repo", removed)

    def _note_change(self, old: RepoRow | None, new: RepoRow | None) -> None:
        old_tags = old.tags.split() if old else []
        new_tags = new.tags.split() if new else []
        self._note_lists([*old_tags, *new_tags])
        if old_tags != new_tags:
            self.state.add_todo("site", ["tags"])
        self.state.note_behind()
        if old:
            self.state.add_orphans(lost_files(old, new))

    def _note_lists(self, tags: list[str]) -> None:
        """Take note that the lists of these tags and of all repos have changed."""
        for kind in ("first page", "list"):
            self.state.add_todo(kind, ["", *tags])
        self.state.add_todo("site", ["catalogue"])

    def _write_owners(self, owners: list[str]) -> None:
        faults: list[Fault] = []
        for owner in owners:
            try:
                self._write_owner(owner)
            except ContentError as error:
                faults += error.faults
            else:
                self.state.done("owner", [owner])
        self._note_faults(faults)

    def _write_owner(self, owner: str) -> None:
        write_owner(owner, self.settings, self.state, self.site)

    def _write_first_pages(self, pages: list[StalePage]) -> None:
        if "tags" in self.state.todo("site"):
            tags = [records.Tag(name, count) for name, count in self.state.tags()]
            self.site.write_fixed("tags", envelopes.whole_list([json_bytes(tag) for tag in tags]))
            self.site.write_fixed("tags_page", self.pages.render("tags.html", tags=tags))
            self.state.done("site", ["tags"])
        for page in pages:
            write_page(page, self.state, self.site, self.pages)
        write_home(self.state, self.site, self.pages)
        newest = self.state.order(None, "new", feeds.ENTRIES_MAX)
        summaries = [summary for summary, _ in self.state.rows([key for key, _ in newest])]
        self.site.write_fixed("feed", feeds.catalogue_feed(self.settings, summaries))

    def _write_fixed_files(self) -> None:
        """What depends on code and settings alone."""
        document = openapi.document(self.settings)
        self.site.write_fixed("openapi", document)
        api = api_page.describe(msgspec.json.decode(document), STATUS)
        self.site.write_fixed("api_page", self.pages.render("docs.html", api=api))
        self.site.write_fixed("server_json", connect.server_json(self.settings))
        self.site.write_fixed("robots", crawlers.robots(self.settings))
        page = self.pages.render(
            "connect.html",
            mcp_url=connect.mcp_url(self.settings),
            snippets=connect.snippets(self.settings),
        )
        self.site.write_fixed("connect", page)
        self.site.write_fixed("search_page", self.pages.render("search.html"))
        self.site.write_fixed("not_found_page", self.pages.render("404.html"))
        for route in (
            "stylesheet",
            "site_script",
            "search_script",
            "prompt_script",
            "account_script",
            "icon",
        ):
            name = os.path.basename(BY_NAME[route].file)
            with open(os.path.join(ASSETS, name), "rb") as file:
                self.site.write_fixed(route, file.read())
        script, checksum = shell_client.release(self.settings.base_url)
        self.site.write_fixed("client", script)
        self.site.write_fixed("client_release", script)
        self.site.write_fixed("client_checksum", checksum)


def _place(row: RepoRow) -> tuple[object, ...]:
    """What a repo shows in lists and where, and which files it has."""
    return row.digest, row.line, row.trend, remembered_versions(row.versions)
