"""Writes to order, one forked child for each connection, so that Python starts once.

A child sends its process id, waits for ``go``, works, and sends its answer: ``ACK version``,
``REFUSED code`` or ``CRASHED exception``. All system calls between are the work's. A work is a text
to publish, which has ``@`` at its end if the label moves with it, and ``+`` if it has FILES; ``@``
and the version to which the label moves; or ``-`` and the version to withdraw, or without one all
of them.

Run as ``python -m tests.faults.writers DESCRIPTOR`` with a listening socket; it ends when its
standard input does.
"""

import contextlib
import ctypes
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from builder.model.content_tree import LABEL as LABEL_KIND
from builder.model.content_tree import OWNER_FILE, WITHDRAWAL
from builder.model.errors import HubError, RequestError
from builder.model.request_bodies import LabelDraft, WithdrawalDraft
from builder.store import content, plain_files
from builder.store.content import repo_path
from publisher.write.decision import Terms
from publisher.write.drafts import make_draft
from publisher.write.durable import FolderStore, NewVersion
from publisher.write.labels import LabelChange, change_label
from publisher.write.publish import Published, publish
from publisher.write.withdraw import Withdrawn, withdraw

REPO = ("ann", "story")
LABEL = "production"
FILES = (
    {"path": "run.sh", "content": "echo hi\n", "executable": True},
    {"path": "docs/more/a.md", "content": "# A\n"},
)
# The same time always, so that equal outcomes are equal trees.
NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)

_PR_SET_PTRACER = 0x59616D61
_ANYBODY = ctypes.c_ulong(-1)
_libc = ctypes.CDLL(None)


def put(
    root: str, work: str, kind: type[FolderStore] = FolderStore, *, sync: bool = True
) -> Published | LabelChange | Withdrawn:
    """Publish, move the label, or withdraw, as the hub does."""
    if work.startswith("-"):
        why = WithdrawalDraft(reason="secret")
        return withdraw(
            kind(root),
            *REPO,
            work[1:] or None,
            why,
            by=REPO[0],
            terms=Terms(now=NOW, sync=sync),
        )
    text, _, version = work.partition("@")
    if not text:
        draft = LabelDraft(version=version)
        return change_label(
            kind(root), *REPO, LABEL, draft, by=REPO[0], terms=Terms(now=NOW, sync=sync)
        )
    labels = {"labels": [LABEL]} if "@" in work else {}
    files = {"files": [*FILES] if "+" in text else []}
    draft = make_draft({"content": text} | labels | files)
    return publish(kind(root), *REPO, draft, publisher=REPO[0], terms=Terms(now=NOW, sync=sync))


def put_unsynced(root: str, work: str) -> Published | LabelChange | Withdrawn:
    """Write as the hub does, without fsync."""
    return put(root, work, sync=False)


class Careless(FolderStore):
    """Writes naively, in place."""

    def write_version(
        self, owner: str, name: str, version: str, new: NewVersion, *,
        profile: bytes | None = None, sync: bool = True,
    ) -> None:  # fmt: skip
        folder = repo_path(self.root, owner, name)
        with contextlib.suppress(OSError):
            if profile is not None:
                Path(self.root, owner, OWNER_FILE).write_bytes(profile)
            Path(folder, f"{version}.json").write_bytes(new.record)
            Path(folder, f"{version}.md").write_bytes(new.text)
            for path, data in new.files.items():
                _write_in_two_calls(Path(folder, f"{version}.files", path), data)

    def write_events(
        self, owner: str, name: str, events: Sequence[tuple[int, bytes]], *, sync: bool = True
    ) -> None:
        folder = repo_path(self.root, owner, name)
        with contextlib.suppress(OSError):
            for number, data in events:
                _write_in_two_calls(Path(folder, LABEL_KIND.file(number)), data)

    def write_withdrawal(
        self, owner: str, name: str, withdrawn: Sequence[tuple[str, bytes]], *, sync: bool = True
    ) -> None:
        folder = repo_path(self.root, owner, name)
        for what, data in withdrawn:
            with contextlib.suppress(OSError):
                _write_in_two_calls(Path(folder, WITHDRAWAL.file(what)), data)
        for file in content.list_versions(self.root, owner, name).left:
            with contextlib.suppress(OSError):
                plain_files.remove(f"{folder}/{file}")


def put_carelessly(root: str, work: str) -> Published | LabelChange | Withdrawn:
    """Write naively, in place."""
    return put(root, work, Careless)


def _write_in_two_calls(path: Path, data: bytes) -> None:
    """Write in two calls, as for a larger file."""
    path.parent.mkdir(exist_ok=True, parents=True)
    with path.open("wb", buffering=0) as file:
        file.write(data[:20])
        file.write(data[20:])


WRITERS = {"hub": put, "unsynced": put_unsynced, "careless": put_carelessly}


def _serve(connection: socket.socket) -> None:
    job = json.loads(connection.recv(65536))
    write = WRITERS[job["writer"]]
    # Some systems let a process be traced by its ancestors alone unless it says so.
    _libc.prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)
    connection.send(b"%d" % os.getpid())
    if not connection.recv(16):
        return
    try:
        answer = f"ACK {write(job['root'], job['text']).version}"
    except RequestError as error:
        answer = f"REFUSED {error.code}"
    except HubError as error:
        answer = f"REFUSED {type(error).__name__}"
    except BaseException as error:
        answer = f"CRASHED {error!r}"
    connection.send(answer.encode())


def main(listener: socket.socket) -> None:
    # Otherwise, the calls would depend on the age of files.
    content.CLOCK_GRAIN_NS = 0
    with tempfile.TemporaryDirectory() as root:
        put(root, "Whatever Python loads at first use is loaded before a child is watched. +")
        put(root, "@1.0.0")
        put(root, "-1.0.0")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(sys.stdin, selectors.EVENT_READ)
    while all(key.fileobj is listener for key, _ in selector.select()):
        connection, _ = listener.accept()
        with connection:
            if os.fork() == 0:
                _serve(connection)
                os._exit(0)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
