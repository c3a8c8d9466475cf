"""The glue of a deployment: list, keep, compare, upload in order, check.

The destination's own listing is the truth. What the manifest remembers only spares reading: a
file is current if the destination still has the mark that it gave then, and the file is the same.
"""

import time
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from builder.model.errors import OperatorError
from builder.model.plural import counted
from builder.model.progress import Progress
from builder.model.routes import match_file
from builder.store.site import read_hub
from operate.deploy import snapshot
from operate.deploy.compare import Plan, current_files, make_plan, plan_changes
from operate.deploy.destination import Destination
from operate.deploy.manifest import Manifest, path_for, row_for
from operate.deploy.options import Options
from operate.deploy.order import Delete, Put, keys_of
from operate.deploy.snapshot import Taken
from operate.folders import lock
from operate.parallel import in_parallel

SHOWN_KEYS = 10


class Report(NamedTuple):
    """What a deployment did, or would do: counts of objects.

    ``current``: nothing was to be done. ``kept``: the site has them no more, but they were not to
    be deleted. ``foreign``: not the site's, so left alone. ``unknown``: files in the site's folder
    that hub did not make, so left out. ``bytes``: uploaded. ``build``: the number of the last build
    that is in it.
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
    build: int = 0


def deploy(
    site: str,
    state: str,
    destination: Destination,
    options: Options,
    *,
    progress: Progress = lambda what, done, total: None,
    on_wait: Callable[[str], None] = lambda what: None,
    on_plan: Callable[[Plan], None] = lambda plan: None,
) -> Report:
    """Make a destination have what the site has now, in an order that readers do not notice.

    ``state`` is the folder of the site's builds, and of what is remembered of the destination.
    ``on_wait`` is called with what has to end first; ``on_plan`` with what is going to be done.
    Raises OperatorError. What was done before that stays, and the next deployment goes on there.
    """
    started = time.perf_counter()
    hub = read_hub(site)
    if hub and hub.private and not (options.guarded or options.dry):
        raise OperatorError(
            f"The site in {site} is private, and whoever can read the destination can read all of "
            "it. If the destination keeps strangers out itself, pass --guarded. Else serve the "
            "site with nginx or Caddy: `hubctl hosts nginx --private`."
        )
    path = path_for(state, destination.identity)
    kept = f"{path}.snapshot"
    if destination.has_rules:
        options = options._replace(files_only=True)
    with lock(path, lambda: on_wait("deployment")), Manifest(path) as manifest:
        remote = dict(_listed(destination, progress))
        try:
            known = current_files(manifest.rows(), remote, options)
            taken = snapshot.take(site, state, kept, known, lambda: on_wait("build"))
            plan = make_plan(taken, remote, manifest, destination, options, progress)
            on_plan(plan)
            if not options.dry:
                _carry_out(plan, taken.copies, remote, manifest, destination, options, progress)
        finally:
            manifest.commit()
            snapshot.remove(kept)
        if plan.groups and not options.dry:
            _check(plan, remote, destination, options, progress)
    return _report(plan, taken.build, time.perf_counter() - started)


def deploy_changes(
    taken: Taken,
    gone: Collection[str],
    state: str,
    destination: Destination,
    options: Options,
    *,
    on_plan: Callable[[Plan], None],
) -> Report:
    """Bring to a destination what builds have changed since a deployment, without listing it.

    ``taken``: the files that they wrote, as they were after the last of them; ``gone``: those that
    they removed. The order is that of ``deploy``, and so are the errors. What others have done to
    the destination, the next ``deploy`` finds.
    """
    started = time.perf_counter()
    if destination.has_rules:
        options = options._replace(files_only=True)
    path = path_for(state, destination.identity)
    with lock(path, lambda: None), Manifest(path, is_checked=False) as manifest:
        matches = filter(None, map(match_file, [*taken.copies, *gone]))
        keys = (key for match in matches for key in keys_of(match, files_only=options.files_only))
        rows = filter(None, map(manifest.row, keys))
        remote = {row.key: row.remote for row in rows}
        try:
            plan = plan_changes(taken, gone, remote, manifest, destination, options)
            on_plan(plan)
            _carry_out(
                plan, taken.copies, remote, manifest, destination, options, lambda *told: None
            )
        finally:
            manifest.commit()
    return _report(plan, taken.build, time.perf_counter() - started)


def _listed(destination: Destination, progress: Progress) -> Iterator[tuple[str, str]]:
    for count, found in enumerate(destination.list(), 1):
        progress("Listing the destination", count, count)
        yield found


def _carry_out(
    plan: Plan,
    copies: dict[str, str],
    remote: dict[str, str],
    manifest: Manifest,
    destination: Destination,
    options: Options,
    progress: Progress,
) -> None:
    """Do what is planned, and take note of it in ``remote`` and the manifest."""

    def do(step: Put | Delete) -> tuple[Put | Delete, str | None]:
        if isinstance(step, Put):
            return step, destination.put(step, copies[step.file])
        return step, destination.delete(step.key)

    total = sum(map(len, plan.groups))
    done = 0
    try:
        for group in plan.groups:
            for step, mark in in_parallel(do, group, options.jobs):
                if isinstance(step, Put):
                    remote[step.key] = mark
                    manifest.put(row_for(step, mark))
                else:
                    del remote[step.key]
                    manifest.forget(step.key)
                done += 1
                progress("Deploying", done, total)
            destination.end_group()
    except OperatorError as error:
        raise OperatorError(
            f"{error}\n{done:,} of {counted(total, 'object')} were updated before that. Readers "
            "see no broken links. Run `hubctl deploy` again to continue."
        ) from error


def _check(
    plan: Plan,
    remote: dict[str, str],
    destination: Destination,
    options: Options,
    progress: Progress,
) -> None:
    """Compare what the destination lists now with what it should. Raises OperatorError."""
    missing = set(plan.keys)
    gone = {step.key for step in plan.deletes()}
    wrong = []
    for key, mark in _listed(destination, progress):
        missing.discard(key)
        if key in gone:
            wrong.append(f"{key} is still there")
        elif key in plan.keys and remote[key] != mark:
            wrong.append(f"{key} has other content")
    wrong += [f"{key} is missing" for key in missing]
    if not wrong:
        return
    shown = "\n".join(f"  {line}" for line in sorted(wrong)[:SHOWN_KEYS])
    more = f"\n  … and {len(wrong) - SHOWN_KEYS:,} more" if len(wrong) > SHOWN_KEYS else ""
    hint = "Make sure that nothing else writes to the destination, and deploy again."
    if missing and not options.files_only:
        hint += (
            " If the service cannot store both `a` and `a/b` (MinIO, for example), deploy with "
            "--files-only."
        )
    raise OperatorError(
        f"The destination does not have what was uploaded ({counted(len(wrong), 'object')}):\n"
        f"{shown}{more}\n{hint}"
    )


def _report(plan: Plan, build: int, seconds: float) -> Report:
    puts = list(plan.puts())
    new = sum(put.old is None for put in puts)
    return Report(
        new=new,
        changed=len(puts) - new,
        deleted=sum(1 for _ in plan.deletes()),
        current=plan.current,
        kept=plan.kept,
        foreign=plan.foreign,
        unknown=plan.unknown,
        bytes=sum(put.size for put in puts),
        seconds=seconds,
        build=build,
    )
