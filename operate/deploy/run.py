"""A deployment: list, take a snapshot, compare, upload in order, check.

The destination's own listing decides. The manifest only saves reading: an object is current if the
destination still has the mark that it gave then, and the site's file is unchanged.

All waiting for the destination happens in an event loop, and ends at once when its task is
canceled. Completed steps stay, and the next deployment continues.
"""

import asyncio
import contextlib
import functools
import hashlib
import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from builder.model.errors import OperatorError, explained
from builder.model.matching import match_file
from builder.model.plural import counted
from builder.model.progress import Progress
from builder.store.site import read_hub
from operate.deploy import loop, snapshot
from operate.deploy.destination import Destination
from operate.deploy.loop import Start, each
from operate.deploy.manifest import Manifest, path_for, rules_digest
from operate.deploy.options import Options
from operate.deploy.order import Step, match_key
from operate.deploy.plan import Plan, Report
from operate.deploy.snapshot import Files
from operate.folders import lock


class Hooks(NamedTuple):
    """Functions that a deployment calls.

    ``progress`` may raise, which ends the deployment. ``on_wait`` gets the name of the work that
    has to end first; ``on_plan`` gets the plan before anything changes. ``check`` is called before
    each change, and prevents it by raising. ``run`` runs a coroutine to its end in this thread.
    """

    progress: Progress = lambda what, done, total: None
    on_wait: Callable[[str], None] = lambda what: None
    on_plan: Callable[[Plan], None] = lambda plan: None
    check: Callable[[], None] = lambda: None
    run: Callable[[Start], None] = loop.run


class _Work(NamedTuple):
    """A deployment under way, while it has the lock of its destination."""

    manifest: Manifest
    plan: Plan
    destination: Destination
    options: Options
    hooks: Hooks

    def look(self) -> None:
        """Give the plan the destination's listing."""
        self._run(self._look)

    def change(self) -> None:
        """Find out the necessary changes, and make them."""
        self._run(self._compare)
        # If URLs are no keys, an object with such a name is not the site's.
        self.plan.add_deletions(match_file if self.destination.has_rules else match_key)
        self.hooks.on_plan(self.plan)
        if not self.options.dry_run:
            self._run(self._carry_out)

    def _run(self, start: Start) -> None:
        async def run() -> None:
            # A folder runs each step in a thread.
            executor = ThreadPoolExecutor(self.options.jobs)
            asyncio.get_running_loop().set_default_executor(executor)
            await start()

        self.hooks.run(run)

    async def _look(self) -> None:
        count = 0
        async for page in self.destination.pages():
            self.plan.add_listed(page)
            count += len(page)
            self.hooks.progress("Listing the destination", count, count)
            await asyncio.sleep(0)

    async def _compare(self) -> None:
        total, numbers = self.plan.count_uncertain(), itertools.count()
        # The two keys of a file are neighbors, or nearly so.
        hashed = functools.lru_cache(256)(_hashed)

        async def examine(found: tuple[Step, tuple]) -> tuple[Step, bool]:
            step, (md5, rules, remote) = found
            step = step._replace(**hashed(step.copy, step.file))
            if step.old is None or self.options.everything:
                return step, False
            if remote == step.old and rules == rules_digest(step.route):
                return step, md5 == step.md5
            return step, await self.destination.holds(step)

        def note(result: tuple[Step, bool]) -> None:
            self.hooks.progress("Comparing files", next(numbers), total)
            step, is_current = result
            if is_current:
                self.manifest.note(step, step.old)
            else:
                self.plan.add(step)

        await each(examine, self.plan.uncertain(), self.options.jobs, note)

    async def _carry_out(self) -> None:
        total, done = self.plan.count_steps(), 0

        async def do(step: Step) -> tuple[Step, str | None]:
            self.hooks.check()
            if step.file is None:
                return step, await self.destination.delete(step.key)
            return step, await self.destination.put(step)

        def note(result: tuple[Step, str | None]) -> None:
            nonlocal done
            done += 1
            self.manifest.note(*result)
            self.hooks.progress("Deploying", done, total)

        try:
            for group in self.plan.groups():
                await each(do, group, self.options.jobs, note)
                await self.destination.end_group()
        except OperatorError as error:
            raise OperatorError(
                f"{error}\n{done:,} of {counted(total, 'object')} were updated before that. "
                "Readers see no broken links. Run `hubctl deploy` again to continue."
            ) from error


def deploy(
    site: str, state: str, destination: Destination, options: Options, hooks: Hooks
) -> Report:
    """Bring a destination to the present site, in an order without broken links.

    ``state``: the folder of the site's builds and of the manifest. Raises OperatorError. Completed
    steps stay, and the next deployment continues.
    """
    started = time.perf_counter()
    hub = read_hub(site)  # read before the files: its serial must not be newer than their lists
    if hub and hub.private and not (options.guarded or options.dry_run):
        raise OperatorError(
            f"The site in {site} is private, and everyone who can read the destination can read "
            "it. If the destination keeps strangers out itself, pass --guarded. Else serve the "
            "site with nginx or Caddy: `hubctl hosts nginx --private`."
        )
    kept = f"{path_for(state, destination.identity)}.snapshot"
    with _begun(state, destination, options, hooks, is_checked=True) as work:
        work.look()
        try:
            build = snapshot.take(
                site, state, kept, work.plan, lambda: hooks.on_wait("build"), hooks.progress
            )
            work.change()
        finally:
            snapshot.remove(kept)
        if not options.dry_run and work.plan.count_steps():
            work.plan.forget_listed()
            work.look()
            work.plan.check()
        seconds = time.perf_counter() - started
        return work.plan.report(seconds, build, hub.serial if hub else None)


def deploy_changes(
    files: Files, state: str, destination: Destination, options: Options, hooks: Hooks
) -> Report:
    """Upload the files that builds have changed since the destination's last deployment, without a
    listing. The next ``deploy`` notices changes that others made there.

    Order and errors are those of ``deploy``.
    """
    started = time.perf_counter()
    with _begun(state, destination, options, hooks, is_checked=False) as work:
        for file, kept in files.items():
            work.plan.add_remembered(file)
            if kept:
                work.plan.want(file, kept.mark, lambda file: files[file].path)
        work.change()
        return work.plan.report(time.perf_counter() - started, 0, None)


@contextlib.contextmanager
def _begun(
    state: str, destination: Destination, options: Options, hooks: Hooks, *, is_checked: bool
) -> Iterator[_Work]:
    if destination.has_rules:
        options = options._replace(files_only=True)
    path = path_for(state, destination.identity)
    with (
        lock(path, lambda: hooks.on_wait("deployment")),
        Manifest(path, is_checked=is_checked) as manifest,
    ):
        try:
            yield _Work(manifest, Plan(manifest, options), destination, options, hooks)
        finally:
            manifest.commit()


def _hashed(path: str, file: str) -> dict[str, Any]:
    """MD5 and size of the site's file, read from its kept copy at ``path``."""
    then = "Deploy as the user who builds the site."
    with explained("read the site's file", file, then), open(path, "rb") as opened:
        return {"md5": hashlib.file_digest(opened, "md5").digest(), "size": opened.tell()}
