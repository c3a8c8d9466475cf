"""The upload plan of a site: what `hubctl deploy` would do, for people with tools of their own.

There is no destination to ask, so what has changed is told by the plan before: what it said to put
is taken for put. Whoever has carried a plan out removes it, or moves it away. One that is still
there counts for nothing, and the new plan has all that it had.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from builder.deploy import snapshot
from builder.deploy.compare import Options, current_files, make_plan
from builder.deploy.manifest import Manifest, lock, path_for, row_for
from builder.deploy.order import Group, Put, cache_control, match_key
from builder.model.errors import OperatorError
from builder.model.progress import Progress
from builder.render.envelopes import json_bytes

PLAN_FILE = "upload-plan.jsonl"


class HasSite(Protocol):
    """Settings that name the site's folder and the state's."""

    out: str
    state: str


class Summary(NamedTuple):
    """A plan that was written: its path, and how many objects are to be put and deleted."""

    path: str
    puts: int
    deletes: int


def write(
    settings: HasSite,
    target: str,
    *,
    files_only: bool = False,
    progress: Progress = lambda what, done, total: None,
    on_wait: Callable[[str], None] = lambda what: None,
) -> Summary:
    """Write the plan into the folder ``target``, which is made if it is not there.

    ``files_only``: no keys for URLs. ``on_wait`` is called with what has to end first. Raises
    OperatorError.
    """
    options = Options(files_only=files_only)
    where = f"plan {os.path.realpath(target)}"
    done, planned, draft = (
        path_for(settings.state, f"{stage}{where}") for stage in ("", "next ", "draft of ")
    )
    path = os.path.join(target, PLAN_FILE)
    kept = f"{done}.snapshot"
    with lock(done, lambda: on_wait("plan")), _explained(target):
        os.makedirs(target, exist_ok=True)
        if not os.path.exists(path) and os.path.exists(f"{planned}.sqlite3"):
            os.replace(f"{planned}.sqlite3", f"{done}.sqlite3")
        with Manifest(done) as manifest:
            remote = {row.key: row.remote for row in manifest.rows()}
            try:
                known = current_files(manifest.rows(), remote, options)
                taken = snapshot.take(
                    settings.out, settings.state, kept, known, lambda: on_wait("build")
                )
                plan = make_plan(
                    taken, remote, manifest, options, lambda put: False, match_key, progress
                )
            finally:
                snapshot.remove(kept)
            with Manifest(draft) as following:
                following.copy(manifest)
                for put in plan.puts():
                    following.put(row_for(put, put.md5.hex()))
                for step in plan.deletes():
                    following.forget(step.key)
                following.commit()
        with open(f"{path}.tmp", "wb") as file:
            file.writelines(plan_lines(plan.groups))
        os.replace(f"{path}.tmp", path)
        # Not before: a plan that nobody has seen must not be taken for carried out.
        os.replace(f"{draft}.sqlite3", f"{planned}.sqlite3")
    return Summary(path, sum(1 for _ in plan.puts()), sum(1 for _ in plan.deletes()))


def plan_lines(groups: Iterable[Group]) -> Iterator[bytes]:
    """A line of JSON for each object. All of a ``group`` has to be done before the next begins."""
    for number, group in enumerate(groups, 1):
        for step in group:
            if isinstance(step, Put):
                line = {
                    "action": "put", "key": step.key, "file": step.file,
                    "content_type": step.route.media,
                    "cache_control": cache_control(step.route), "size": step.size,
                    "md5": step.md5.hex(), "group": number,
                }  # fmt: skip
            else:
                line = {"action": "delete", "key": step.key, "group": number}
            yield json_bytes(line) + b"\n"


@contextlib.contextmanager
def _explained(target: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OperatorError(
            f"Cannot write the plan to {target}: {error.strerror}. Give another folder."
        ) from error
