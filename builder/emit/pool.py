"""Renders repos, in several processes if there are enough repos to pay for their start.

Each worker process has a pipe of its own, so its death is an end of file at any moment.
``concurrent.futures.ProcessPoolExecutor`` shares one pipe. It hangs forever if a worker is
killed halfway through an answer larger than the pipe's buffer, and these answers are.
"""

import contextlib
import ctypes
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess

from builder import emit
from builder.emit.history import Rendered, Task
from builder.emit.repo import render_repo
from builder.model.errors import Fault, Faults, OperatorError
from builder.model.plural import counted
from builder.model.settings import Settings
from builder.render.pages import pages_of
from builder.store.locks import workers_lock
from builder.store.site import Site, Tally

# Starting a process costs as much as rendering some hundred repos. With fewer repos, one process
# less is started.
REPOS_PER_PROCESS_MIN = 250
REPOS_PER_BATCH = 50

_PR_SET_PDEATHSIG = 1

log = logging.getLogger("hub.build")

Batch = tuple[list[Rendered], list[Fault]]
Workers = dict[Connection, BaseProcess]


def render_repos(tasks: list[Task], settings: Settings, site: Site) -> Iterator[Rendered]:
    """Write the files of these repos and yield each as it is finished, in any order.

    Raises ContentError with all faults found, once the faultless repos are written.
    """
    faults = Faults()
    count = min(os.cpu_count() or 1, len(tasks) // REPOS_PER_PROCESS_MIN)
    if count < 2:
        results = (_render([task], settings, site) for task in tasks)
    else:
        results = _render_in_workers(tasks, settings, site, count)
    for rows, batch_faults in results:
        faults += batch_faults
        yield from rows
    faults.check()


def _render(tasks: list[Task], settings: Settings, site: Site) -> Batch:
    rows, faults = [], Faults()
    for task in tasks:
        with faults:
            rows.append(render_repo(task, settings, site))
    return rows, faults


def _render_in_workers(
    tasks: list[Task], settings: Settings, site: Site, count: int
) -> Iterator[Batch]:
    """Yield the results of batches. This process renders the batches that workers do not finish.

    A worker gets a batch once it has answered the last one. So memory holds at most one answer per
    worker, and no two processes block because each waits for the other to read.
    """
    batches = (
        tasks[start : start + REPOS_PER_BATCH] for start in range(0, len(tasks), REPOS_PER_BATCH)
    )
    under_way: dict[Connection, list[Task]] = {}

    def give(connection: Connection) -> None:
        if batch := next(batches, None):
            under_way[connection] = batch
            with contextlib.suppress(OSError):  # The worker has ended; `recv` reports that below.
                connection.send(batch)

    with _workers(settings, site, count) as workers:
        for connection in workers:
            give(connection)
        while under_way:
            for connection in wait([*under_way]):
                batch = under_way.pop(connection)
                try:
                    answer = connection.recv()
                except (EOFError, OSError):
                    _note_lost(workers[connection], batch)
                    yield _render(batch, settings, site)
                    continue
                if isinstance(answer, OperatorError):
                    raise answer
                give(connection)
                result, tally, noted = answer
                site.tally.add(tally)
                site.noted.update(noted)
                yield result
        for batch in batches:  # All workers have died.
            yield _render(batch, settings, site)


def _note_lost(worker: BaseProcess, batch: list[Task]) -> None:
    worker.kill()  # Even if it still runs, it must not write beside this process.
    worker.join()
    log.warning(
        "A worker process ended with exit code %s (-9 means killed, often for lack of memory). "
        "The main process renders its %s.",
        worker.exitcode,
        counted(len(batch), "prompt"),
    )


@contextlib.contextmanager
def _workers(settings: Settings, site: Site, count: int) -> Iterator[Workers]:
    """At most ``count`` processes, by the connection that sends them batches."""
    # A fork copies the warm interpreter, but only the calling thread.
    method = "fork" if threading.active_count() == 1 and hasattr(os, "fork") else "spawn"
    if method == "fork":
        pages_of(settings).load()
    context = multiprocessing.get_context(method)
    workers: Workers = {}
    with contextlib.ExitStack() as stack:
        lock = None
        if not site.dry:
            file = stack.enter_context(workers_lock(settings.state))
            # Spawned processes inherit a connection's descriptor, too.
            lock = stack.enter_context(Connection(os.dup(file.fileno())))
        try:
            for _ in range(count):
                try:
                    connection, worker = _start(context, lock, settings, site)
                except OSError as error:
                    log.warning(
                        "Cannot start more than %s: %s.",
                        counted(len(workers), "worker process", "worker processes"),
                        error,
                    )
                    break
                workers[connection] = worker
                if lock:
                    with contextlib.suppress(OSError):  # On a full disk, the build fails elsewhere.
                        os.write(lock.fileno(), b"%d\n" % worker.pid)
            yield workers
        finally:
            for connection, worker in workers.items():
                worker.kill()
                worker.join()
                connection.close()


def _start(context: BaseContext, *arguments: object) -> tuple[Connection, BaseProcess]:
    ours, theirs = context.Pipe()
    with theirs:
        worker = context.Process(target=_work, args=(theirs, *arguments), daemon=True)
        worker.start()
    return ours, worker


def _work(connection: Connection, lock: Connection | None, settings: Settings, site: Site) -> None:
    """Render batches until the parent process ends. ``lock`` is held open, not used."""
    _end_with_parent()
    # Ctrl-C reaches all processes of a terminal; the build ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Rendering creates few cycles, and collecting at the usual rate takes a tenth of its time.
    gc.freeze()
    gc.set_threshold(emit.GC_THRESHOLD)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            batch = connection.recv()
            site.tally, site.noted = Tally(), {}
            try:
                answer = _render(batch, settings, site), site.tally, site.noted
            except OperatorError as error:
                answer = error
            connection.send(answer)


def _end_with_parent() -> None:
    """End this process as soon as its parent ends, in whatever way.

    The site is safe without this: ``workers_lock`` delays the next build until the last worker
    has ended. This makes the wait short.
    """
    parent = multiprocessing.parent_process()
    if sys.platform == "linux":
        # SIGKILL also ends a stopped process. Linux sends it when the thread that started this
        # process ends (prctl(2)): the thread of ``render_repos``, which ends its workers itself
        # before that.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
    if os.getppid() != parent.pid:
        os._exit(1)  # The parent ended before prctl was called.
    threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: BaseProcess) -> None:
    parent.join()  # Uses a pipe, so it works on every system.
    os._exit(1)
