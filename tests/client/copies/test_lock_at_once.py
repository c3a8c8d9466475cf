"""Commands that run at once, or are interrupted, and wrong uses of the commands."""

import os
import signal
from pathlib import Path

import pytest

from tests.client.copies.lock_files import (
    PINNED,
    STORY,
    TALE,
    files,
    write_lock,
)
from tests.client.fake import Fake, Request, answer
from tests.client.shells import Client, link_tools
from tests.client.site import Site
from tests.client.test_machine import put_tool
from tests.support.servers import DEADLINE_SECONDS


def test_two_at_once_lose_nothing(to: Client, site: Site) -> None:
    """Each run reports what it cannot add; the file has everything that was reported as added."""
    names = [f"p{number}" for number in range(5)]
    for name in names:
        site.publish(f"ann/{name}", "1.0.0", name.encode())
    lock = write_lock(to, TALE)
    left = names
    for _ in range(len(names)):
        started = {name: to.start("lock", f"ann/{name}") for name in left}
        left = []
        for name, process in started.items():
            with process:
                _, err = process.communicate(timeout=DEADLINE_SECONDS)
            if process.returncode:
                assert b"has changed meanwhile" in err or b"if no other hub writes" in err.lower()
                left.append(name)
        there = lock.read_text()
        assert all((f"ann/{name} " in there) == (name not in left) for name in names)
    assert not left and not (to.work / "prompts.lock.hub").exists()
    started = [to.start("sync") for _ in range(4)]
    for process in started:
        with process:
            _, err = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 0, err
    assert files(to) == {f"prompts/ann/{name}.md": name.encode() for name in names} | {
        "prompts/ann/story.md": STORY
    }


def test_a_lock_file_that_changes_meanwhile(either: Client, site: Site) -> None:
    lock = either.work / "prompts.lock"

    def meddle(request: Request) -> bytes:
        if request.path.endswith("review.json"):
            lock.write_text(PINNED)
        return site(request)

    with Fake(meddle) as fake:
        for first in (None, TALE):
            lock.unlink(missing_ok=True)
            if first:
                lock.write_text(first)
            done = either.to(fake.url).run("lock", "ann/review")
            assert (done.status, done.out) == (1, b"")
            assert "prompts.lock has changed meanwhile. Run `hub lock` again" in done.err
            assert lock.read_text() == PINNED
    assert sorted(path.name for path in either.work.iterdir()) == ["prompts.lock"]


def test_a_lock_file_that_another_writes(to: Client) -> None:
    lock = write_lock(to, TALE)
    (to.work / "prompts.lock.hub").mkdir()
    done = to.run("lock", "ann/review")
    assert done.status == 1 and "If no other hub writes prompts.lock, remove that" in done.err
    assert lock.read_text() == TALE and (to.work / "prompts.lock.hub").is_dir()
    (to.work / "prompts.lock.hub").rmdir()
    lock.rename(to.work / "real.lock")
    lock.symlink_to("real.lock")
    done = to.run("lock", "ann/review")
    assert done.status == 1 and "is a symbolic link" in done.err
    assert lock.is_symlink() and lock.read_text() == TALE
    assert to.run("sync").status == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(number: int, each: Client, site: Site, tmp_path: Path) -> None:
    """After a signal in the middle of a write, only the old file exists."""
    os.mkfifo(tmp_path / "reached")
    slow = put_tool(
        tmp_path / "slow", "mv", f'case $* in *prompts.lock) echo >{tmp_path}/reached; '
        'exec sleep 60 ;; esac; exec REAL "$@"',
    )  # fmt: skip
    link_tools(slow, "sleep")
    lock = write_lock(each, TALE)
    with Fake(site) as fake:
        process = each.having(slow).to(fake.url).start(
            "lock", "ann/review", start_new_session=True
        )  # fmt: skip
        (tmp_path / "reached").read_text()
        os.killpg(process.pid, number)
        process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 128 + number
    assert lock.read_text() == TALE
    assert [path.name for path in each.work.iterdir()] == ["prompts.lock"]


WRONG = {
    ("lock", "review"): "is not OWNER/NAME", ("lock", "ann/review@1.0", "a.md"): "not a version",
    ("lock", "ann/x@"): "'' is not a label", ("lock", "a/b", "c", "d"): "too many",
    ("lock", "ann/review@X"): "is not a label", ("lock", ""): "'' is not OWNER/NAME",
    ("lock", "ann/review", ""): "PATH is empty", ("lock", "--file"): "--file needs a value",
    ("lock", "--file", ""): "--file needs a value", ("lock", "--file", "a/"): "--file needs a file",
    ("lock", "--check"): "unknown option --check", ("sync", "ann/review"): "too many",
    ("sync", "--check", "--force"): "leave out --force", ("update", "a/b", "c/d"): "too many",
    ("update", "ann/review@x"): "'ann/review@x' is not OWNER/NAME",
    ("update", "--offline"): "unknown option",
}  # fmt: skip


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_uses(words: tuple[str, ...], client: Client) -> None:
    with Fake(lambda _: answer(status=500)) as fake:
        done = client.to(fake.url).run(*words)
        assert (done.status, done.out, fake.requests) == (2, b"", [])
        assert WRONG[words] in done.err and "Run `hub help" in done.err
