"""The build: read → derive → render → write, full or incremental by one path.

A build opens the state and the counts of pulls, compares the content with what the last build
remembered (``changes``), makes visible what has changed (``visible``), and settles the rest
(``settle``). If nothing is remembered, everything is stale: that is a full build, and there is no
other difference. A pointer is written after the file that it points to: versions, repos, owners,
tags, lists, and ``hub.json`` last. Files that nothing points to any more are removed one build
later. A build may leave work to settle to the next one if another one is waiting. If the
state or the search index is damaged, the build deletes both and begins again.
"""

import contextlib
import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import builder
from builder import installed_version
from builder.model.errors import ContentError, OperatorError, PullsError
from builder.model.plural import counted
from builder.model.progress import Progress
from builder.model.settings import Settings, check_folders
from builder.pipeline.changes import Changes, find_changes
from builder.pipeline.context import Context, Request, ShownPulls, Visible, newest
from builder.pipeline.heal import check_site
from builder.pipeline.settle import Settling
from builder.pipeline.visible import make_visible
from builder.search import index as search_index
from builder.stats.pulls import Pulls
from builder.store import content, database, privacy
from builder.store.locks import build_lock, count_build
from builder.store.shortage import disk_remedy
from builder.store.site import Site
from builder.store.state import State

log = logging.getLogger("hub.build")


class Built(NamedTuple):
    """The result of a build. ``rendered``: repos that differ from the remembered state, or have
    other pulls. ``is_settled``: nothing is left to the next build. ``behind_seconds``: the age of
    the oldest change that lists do not have. ``touched``: the files of the site that were written
    or removed; None if they are many. ``number``: the build's (``count_build``). ``is_checked``:
    all files were looked for that the site should have, or none had to be; ``lost``: the number of
    objects that lacked some.
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
    touched: frozenset[str] | None = None
    number: int = 0
    is_checked: bool = True
    lost: int = 0


class Difference(NamedTuple):
    """The differences of a site from its content; files relative to the site, sorted. ``leaving``:
    files that the last build left for one more build, which count as no difference.
    """

    missing: list[str]
    differing: list[str]
    orphaned: list[str]
    leaving: list[str]


def build(
    settings: Settings, *, on_wait: Callable[[], None] = lambda: None, **options: Any
) -> Built:
    """Update the site from the content. ``on_wait`` is called once if another build has to end
    first; ``options`` as in Request.

    Raises OperatorError. Raises PullsError, except with ``changed``: then the site keeps the old
    counts. Raises ContentError before lists have changed; with ``changed``, after all repos without
    a fault are built. The next build completes what this one left.
    """
    started = time.perf_counter()
    check_folders(settings)
    content.check_folder(settings.content)  # Before the state folder is created.
    privacy.check(settings)
    with build_lock(settings.state, on_wait) as is_lock_wanted:
        number = count_build(settings.state)
        request = Request(settings, **options)
        if settings.private and request.changed is None:
            privacy.close_to_others(settings)
        if request.changed is not None:
            request = request._replace(changed=[*request.changed])
        if is_wanted := request.is_wanted:
            request = request._replace(is_wanted=lambda: is_wanted() or is_lock_wanted())
        with _explained_state_errors(settings):
            report = _build_despite_damage(request)
            if report.lost and request.is_wanted is None:
                log.warning(
                    "The site had lost files of %s. Writing them again.",
                    counted(report.lost, "object"),
                )
                again = _build_despite_damage(request._replace(changed=[], check_seconds=0.0))
                report = report._replace(
                    written=report.written + again.written,
                    removed=report.removed + again.removed,
                    is_settled=again.is_settled,
                    touched=None,
                )
    return report._replace(seconds=time.perf_counter() - started, number=number)


@contextlib.contextmanager
def _explained_state_errors(settings: Settings) -> Iterator[None]:
    """Raises OperatorError, with the remedy, for an error of the build state's database."""
    try:
        yield
    except sqlite3.Error as error:
        remedy = disk_remedy(settings.state) or (
            "Check that you may write the file and that no other program has it open"
        )
        path = State.path_in(settings.state)
        raise OperatorError(
            f"Cannot use the build state {path}: {error}. {remedy}. Then build again."
        ) from error


def _build_despite_damage(request: Request) -> Built:
    """Build. If a cache is damaged, delete it and build everything."""
    if request.changed is None:
        _drop_damaged(request.settings)
    try:
        return _build_with_caches(request)
    except (OperatorError, OSError):
        raise
    except Exception as error:
        # Damage can make a build fail with an error of any kind.
        if isinstance(error, sqlite3.Error) and not database.is_damaged(error):
            raise
        _drop_damaged(request.settings, error)
    return _build_with_caches(request._replace(changed=None))


def _drop_damaged(settings: Settings, error: Exception | None = None) -> None:
    """Remove the state and the search index if they are damaged, the state also if another release
    made it, and after an ``error`` of a build. Both are caches, which the next build rebuilds.
    Reads both whole. Raises OperatorError.
    """
    path = State.path_in(settings.state)
    if State.is_of_another_release(settings.state):
        log.info("Another release of hub made the build state %s. Rebuilding it.", path)
        database.remove(path)
    elif state_damage := State.find_damage(settings.state) or (error and repr(error)):
        message = "The build state %s is damaged (%s). Rebuilding it."
        log.warning(message, path, state_damage, exc_info=error)
        database.remove(path)
    index_damage = search_index.find_damage(settings)
    if index_damage:
        log.warning("The search index is damaged (%s). Rebuilding it.", index_damage)
        search_index.forget(settings)


def _build_with_caches(request: Request) -> Built:
    """Build with the state as it is, and with the counts of pulls if they can be read."""
    settings = request.settings
    with State(settings.state) as state:
        try:
            with Pulls(settings.state) as pulls:
                return _run(Context(request, state, pulls, Site(settings.out)))
        except PullsError as error:
            if request.changed is None:
                raise
            # Publishers do not wait for a repair of the counts.
            log.error("Cannot update the pull counts; the site keeps the old ones. %s", error)
            shown = ShownPulls(state, error)
            return _run(Context(request, state, shown, Site(settings.out)))


def _run(context: Context) -> Built:
    """Find what is stale, make it visible, settle the rest. Raises as ``build``."""
    started = time.monotonic()
    state, site = context.state, context.site
    current = stamp(context.settings)
    try:
        found = _begin(context, current)
        make_visible(context, found)
        faulty = frozenset("/".join(fault.path.split("/")[:2]) for fault in context.faults)
        context.request.on_visible(Visible(context.serial, faulty))
        is_settled = Settling(context, busy_seconds=time.monotonic() - started).run()
        seconds = context.request.check_seconds
        is_checked = not seconds or context.is_fresh or check_site(context, seconds)
        if context.is_fresh:
            state.put_looked(site.changed_ns())
        state.note_settings(context.settings)
        state.end(current, site.mark())
        if context.faults:
            raise ContentError(sorted(context.faults))
    except Exception:
        state.abandon()
        raise
    repos, versions = state.repos.totals()
    return Built(
        repos,
        versions,
        context.rendered,
        site.tally.written,
        site.tally.unchanged,
        context.removed,
        context.indexed,
        is_settled and not context.lost,
        state.passes.behind_seconds(),
        0.0,
        touched=None if site.tally.touched is None else frozenset(site.tally.touched),
        is_checked=is_checked,
        lost=len(context.lost),
    )


def _begin(context: Context, current: str) -> Changes:
    """Begin with the remembered state, or with an empty one; find what has changed since."""
    state, site, pulls = context.state, context.site, context.pulls
    context.is_fresh = context.request.full or not state.vouches_for(current, site.mark())
    if (context.is_fresh or state.was_killed()) and not site.dry:
        site.remove_temporary_files()
    if context.is_fresh:
        if isinstance(pulls, ShownPulls):
            raise pulls.error  # Then no record would remain of the counts that the site shows.
        state.begin(forget=True)
    found = find_changes(context)
    context.note_faults(found.faults)
    if context.is_fresh:
        state.pulls.show(*newest(pulls))
    else:
        state.begin(forget=False)
        if isinstance(pulls, ShownPulls):
            pulls.note()
    return found


def compare(settings: Settings, progress: Progress = lambda what, done, total: None) -> Difference:
    """The difference between the site and a build of the content; writes nothing.

    Raises ContentError, OperatorError.
    """
    check_folders(settings)
    with State(None) as state, Pulls(settings.state) as pulls:
        site = Site(settings.out, dry=True)
        request = Request(settings, full=True, index=False, progress=progress)
        _run(Context(request, state, pulls, site))
        # A build also notes files that may never have existed.
        orphaned = {
            file for file in state.orphans.files() if os.path.lexists(f"{settings.out}/{file}")
        }
    leaving: set[str] = set()
    path = State.path_in(settings.state)
    if orphaned and os.path.exists(path):
        try:
            with State(settings.state, read_only=True) as state:
                if state.has_tables():
                    leaving = orphaned & state.orphans.files().keys()
        except sqlite3.Error as error:
            log.warning(
                "Cannot read from %s which files the next build removes: %s. They count as "
                "differences.",
                path,
                error,
            )
    tally = site.tally
    return Difference(*map(sorted, (tally.missing, tally.differing, orphaned - leaving, leaving)))


def stamp(settings: Settings) -> str:
    """A hash that changes whenever the same content would give other files: of code, templates,
    settings.
    """
    anywhere = settings._replace(content="", out="", state="")
    made_with = f"{anywhere!r}{installed_version()}"
    return hashlib.sha256(made_with.encode() + _code_digest()).hexdigest()


@cache
def _code_digest() -> bytes:
    # Computed once, because the process runs the code that it loaded.
    hasher = hashlib.sha256()
    for folder, folders, files in os.walk(os.path.dirname(builder.__file__)):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            with open(os.path.join(folder, name), "rb") as file:
                hasher.update(name.encode() + b"\0" + file.read())
    return hasher.digest()
