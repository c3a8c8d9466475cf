"""`hubctl mirror`: a copy of a hub that is whole after each run, and right after each kill."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from queue import Queue
from typing import Any

import pytest

from builder.model.errors import OperatorError
from operate.mirror import mirror as mirrors
from operate.mirror import site_files
from tests.client.fake import Answer, Fake, Request, answer, closed_port, error
from tests.client.shells import TOKEN
from tests.operate.mirror.conftest import CATALOGUE, FILES, REPOS, Change, Copy, Origin
from tests.support.catalogues import (
    write_label,
    write_version,
    write_withdrawn,
)
from tests.support.servers import DEADLINE_SECONDS


def asked(fake: Fake) -> set[str]:
    """The paths since the last call."""
    paths = {request.path.removeprefix("/") for request in fake.requests}
    fake.requests.clear()
    return paths


def test_a_copy_of_a_hub(copy: Copy, origin: Origin) -> None:
    with Fake(origin) as fake:
        done = copy.run(fake.url)
        as_hub = f"{copy.folder} is as {fake.url}: 3 prompts"
        assert (done.exit_code, done.stdout) == (0, f"{as_hub}, 3 fetched, 0 removed\n")
        assert copy.tree == origin.mirrored() and "old" not in str([*copy.tree])
        asked(fake)
        assert copy.run(fake.url).stdout == f"{as_hub}, 0 fetched, 0 removed\n"
        assert asked(fake) == {"api/v1/hub.json", CATALOGUE}
        assert copy.run(fake.url, "--check").stdout == f"{as_hub}\n"
        assert not (copy.folder / ".hub-mirror/run").exists()


def test_a_later_run_fetches_only_what_changed(copy: Copy, origin: Origin) -> None:
    with Fake(origin) as fake:
        copy.run(fake.url)
        write_version(origin.content, "bob", "sql", "1.1.0", "Write {{dialect}}.\n")
        write_label(origin.content, "ann/review", 4, "production", "1.1.0")
        origin.build()
        asked(fake)
        assert "2 fetched, 0 removed" in copy.run(fake.url).stdout
        assert copy.tree == origin.mirrored()
        review, sql = f"{REPOS}/ann/review", f"{REPOS}/bob/sql"
        assert asked(fake) == {
            "api/v1/hub.json", CATALOGUE, f"{sql}.json", f"{sql}/versions.json",
            f"{sql}/versions/1.1.0.json", f"{sql}/versions/1.1.0.txt", f"{review}.json",
            f"{review}/versions.json", f"{review}/labels.json", f"{review}/labels/production.json",
            f"{review}/labels/production/history.json",
        }  # fmt: skip


def test_a_copy_by_a_release_before_files_gets_them(copy: Copy, origin: Origin) -> None:
    with Fake(origin) as fake:
        copy.run(fake.url)
        noted = copy.folder / ".hub-mirror/noted"
        noted.write_text(noted.read_text().replace("+files", ""))
        files = [path for path in copy.tree if ".files/" in path]
        for path in files:
            (copy.folder / path).unlink()
        asked(fake)
        assert "3 fetched, 0 removed" in copy.run(fake.url).stdout
        assert copy.tree == origin.mirrored() and files
        assert {path for path in asked(fake) if ".files/" in path} == {*files}


def test_what_is_gone_is_removed(copy: Copy, origin: Origin) -> None:
    with Fake(origin) as fake:
        copy.run(fake.url)
        write_withdrawn(origin.content, "ann/review", "1.1.0")
        write_withdrawn(origin.content, "bob/sql")
        write_label(origin.content, "ann/review", 4, "production", None)
        origin.build()
        assert "bob/sql is gone from" in copy.run(fake.url, "--check").stderr
        assert "1 fetched, 1 removed" in copy.run(fake.url).stdout
        assert copy.tree == origin.mirrored() and not (copy.folder / REPOS / "bob").exists()


def check_notes(copy: Copy, origin: Origin) -> None:
    """Prompts that are noted with the hub's present digest have the hub's present files."""
    noted = copy.folder / ".hub-mirror/noted"
    lines = noted.read_text().splitlines() if noted.exists() else []
    known = dict(line.split() for line in lines)
    found, wanted = copy.tree, origin.mirrored()
    for line in map(json.loads, wanted[CATALOGUE].splitlines()):
        repo = "{owner}/{name}".format_map(line)
        if known.get(repo) == f"{line['digest']}+files":
            mine, theirs = (
                {path: data for path, data in one.items() if path.startswith(f"{REPOS}/{repo}")}
                for one in (found, wanted)
            )
            assert mine == theirs


def test_a_run_that_is_killed_at_any_request(copy: Copy, origin: Origin) -> None:
    command = [sys.executable, "-m", "cli.hubctl", "mirror"]
    with Fake(origin) as fake:
        for number in (1, 3, 6, 9):
            started: Queue[subprocess.Popen[bytes]] = Queue()

            def kill_at(request: Request, at: int = number, started: Any = started) -> Answer:
                if len(fake.requests) == at:
                    started.get(timeout=DEADLINE_SECONDS).kill()
                return origin(request)

            fake.requests.clear()
            fake.answers = kill_at
            process = subprocess.Popen([*command, fake.url, str(copy.folder)])
            started.put(process)
            assert process.wait(DEADLINE_SECONDS) == -signal.SIGKILL
            check_notes(copy, origin)
        fake.answers = origin
        assert copy.run(fake.url).exit_code == 0 and copy.tree == origin.mirrored()


class _Killed(BaseException):
    pass


def test_a_run_that_ends_while_it_replaces(
    copy: Copy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace
    with Fake(origin) as fake:
        copy.run(fake.url)
        for number in range(1, 60):
            left = iter([None] * (5 * number))

            def fatal(*words: str, left: Any = left) -> None:
                if next(left, 0) == 0:
                    raise _Killed
                replace(*words)

            version = f"1.{number + 1}.0"
            write_version(origin.content, "ann", "review", version, f"{number}.\n")
            write_label(origin.content, "ann/review", number + 3, "production", version)
            origin.build()
            with monkeypatch.context() as patch:
                patch.setattr(os, "replace", fatal)
                try:
                    done = copy.run(fake.url)
                except _Killed:
                    done = None
            check_notes(copy, origin)
            if done:
                break
        assert done and number > 3 and copy.tree == origin.mirrored()


def test_a_text_that_is_another_is_never_shown(copy: Copy, origin: Origin) -> None:
    with Fake(origin) as fake:
        origin.edit(f"{REPOS}/bob/sql/versions/1.0.0.txt", lambda data: data.upper())
        done = copy.run(fake.url)
        assert done.exit_code == 1 and "1 prompt of" in done.stderr and "bob/sql" in done.stderr
        assert not [path for path in copy.tree if "bob" in path]
        assert CATALOGUE not in copy.tree and f"{REPOS}/ann/story.json" in copy.tree
        assert [seconds for seconds in copy.slept if seconds > 1] == [2, 4]
        origin.changed.clear()
        assert copy.run(fake.url).exit_code == 0 and copy.tree == origin.mirrored()


CHANGES: list[tuple[str, Change]] = [
    ("versions/1.0.0.json", lambda data: data.replace(b"The n", b"A n")),
    ("versions.json", lambda data: data.replace(b"With care.", b"Without.")),
    ("labels.json", lambda data: data.replace(b"Go.", b"No.")),
    ("labels/production/history.json", lambda data: data.replace(b"Go.", b"No.")),
    ("labels/production.json", lambda data: data.replace(b'"production"', b'"staging"')),
    ("versions/1.1.0.txt", lambda data: data[:-1]),
    ("versions.json", lambda _: b"<!doctype html>"),
    ("versions.json", lambda data: data[:-40]),
    ("versions.json", lambda _: b""),
    (".json", lambda data: data.replace(b'"1.1.0"', b'"1.0.1"', 1)),
    ("versions/1.0.0.files/empty.bin", lambda data: data + b"x"),
    ("versions/1.0.0.files/scripts/a/run.sh.txt", bytes.upper),
    ("versions/1.0.0.json", lambda data: data.replace(b'"path":"empty"', b'"path":"other"')),
]


NO_NAMES = ("../../../../x", "..", "1.0", "1.0.0/../../x", "", "a b", "$(x)", "1.0.0\n", None)


def naming(old: bytes, name: str | None) -> Change:
    new = old.rpartition(b":")[0] + b":" + json.dumps(name).encode()
    return lambda data: data.replace(old, new)


LISTS = {
    "versions.json": b'"version":"1.0.0"', "labels.json": b'"label":"production"',
    "versions/1.0.0.json": b'"path":"empty"',
}  # fmt: skip
EVIL_NAMES = [(path, naming(old, name)) for path, old in LISTS.items() for name in NO_NAMES]


def test_files_of_another_time_or_of_no_hub(copy: Copy, origin: Origin) -> None:
    """A prompt for each change: before each is one whose files are as they are."""
    changes = CHANGES + EVIL_NAMES
    for number in range(len(changes)):
        for name in (f"n{number:02}-whole", f"n{number:02}-wrong"):
            write_version(origin.content, "ann", name, "1.0.0", f"{name}.\n", FILES)
            write_version(
                origin.content, "ann", name, "1.1.0", f"{name}!\n", changelog="With care."
            )
            write_label(origin.content, f"ann/{name}", 1, "production", "1.0.0", note="Go.")
    origin.build()
    for number, (path, change) in enumerate(changes):
        repo = f"{REPOS}/ann/n{number:02}-wrong"
        origin.edit(repo + path if path.startswith(".") else f"{repo}/{path}", change)
    with Fake(origin) as fake:
        done = copy.run(fake.url)
        assert done.exit_code == 1 and "such as ann/n00-wrong" in done.stderr
        assert f"{len(changes)} prompts of" in done.stderr
        unfit = {CATALOGUE, "api/v1/hub.json"}
        unfit |= {path for path in origin.mirrored() if "-wrong" in path}
        assert copy.tree == {k: v for k, v in origin.mirrored().items() if k not in unfit}
        assert not [path for path in asked(fake) if ".." in path or "/x" in path]
        origin.changed.clear()
        assert copy.run(fake.url).exit_code == 0 and copy.tree == origin.mirrored()


def test_lists_that_do_not_fit_remove_nothing(copy: Copy, origin: Origin) -> None:
    with Fake(origin) as fake:
        copy.run(fake.url)
        before = copy.tree
        for change in (lambda data: data[: data.index(b"\n") + 1], lambda _: b""):
            origin.edit(CATALOGUE, change)
            done = copy.run(fake.url)
            assert done.exit_code == 1 and "so nothing was removed" in done.stderr
            assert copy.tree == before


EVIL_LINES: list[dict[str, Any]] = [
    {"owner": ".."}, {"name": ".."}, {"name": "../../../x"}, {"owner": "a/b"}, {"owner": "A"},
    {"owner": "-a"}, {"name": "a--b"}, {"name": ""}, {"owner": None}, {"name": "a" * 65},
    {"latest_version": "../1"}, {"latest_version": "1.0"}, {"latest_version": "01.0.0"},
    {"sha256": "0"}, {"sha256": "../" * 21 + "a"}, {"digest": "x"}, {"digest": "../" * 10 + "aa"},
    {"name": "x\n"}, {"name": 'a"b'}, {"name": "$(touch x)"}, {"name": "a b"},
]  # fmt: skip


def test_lists_with_names_that_no_hub_has(copy: Copy, origin: Origin) -> None:
    first, *_ = origin.files[CATALOGUE].splitlines()
    lines = [json.loads(first) | {"name": "another"} | fields for fields in EVIL_LINES]
    with Fake(origin) as fake:
        for line in [*lines, json.loads(first)]:  # the last stands there twice
            added = json.dumps(line).encode() + b"\n"
            origin.edit(CATALOGUE, lambda data, added=added: data + added)
            done = copy.run(fake.url)
            assert done.exit_code == 1 and copy.tree == {}, line
            assert "no hub has" in done.stderr or "is not from a hub" in done.stderr
            assert asked(fake) == {"api/v1/hub.json", CATALOGUE}


@pytest.mark.parametrize("has_length", [True, False])
def test_files_that_are_too_large(has_length: bool, copy: Copy, origin: Origin) -> None:
    body = b"x" * (site_files.FILE_BYTES_MAX + 1)
    origin.changed[f"{REPOS}/bob/sql/versions.json"] = answer(body, length=has_length)
    with Fake(origin) as fake:
        done = copy.run(fake.url)
    assert done.exit_code == 1 and "more than 16,777,216 bytes" in done.stderr
    assert not [path for path in copy.tree if "bob" in path]


def test_a_limit_of_reads_is_waited_for(copy: Copy, origin: Origin) -> None:
    numbers = itertools.count()

    def limited(request: Request) -> Answer:
        is_over = next(numbers) % 5 == 3
        return error(429, "Slowly.", Retry_After="7") if is_over else origin(request)

    with Fake(limited) as fake:
        assert copy.run(fake.url).exit_code == 0 and copy.tree == origin.mirrored()
    assert 7 in copy.slept


def test_errors_in_the_middle(copy: Copy, origin: Origin) -> None:
    """One after the other: none leaves anything that disturbs the next run."""
    with Fake(origin) as fake:
        for status in (401, 403, 500, 503, 302, 418):
            # The server closes each connection, and a used one could end before it says the status.
            origin.changed[f"{REPOS}/bob/sql.json"] = error(
                status, Location="http://x.example/", Connection="close"
            )
            done = copy.run(fake.url)
            assert done.exit_code == 1 and f"bob/sql.json: HTTP {status}" in done.stderr
            assert ("a redirect to http://x.example/" in done.stderr) == (status in (302, 403, 418))
            assert CATALOGUE not in copy.tree
        origin.changed.clear()
        assert copy.run(fake.url).exit_code == 0 and copy.tree == origin.mirrored()


def test_what_is_no_hub(copy: Copy) -> None:
    with Fake(lambda _: answer("<!doctype html>")) as fake:
        assert "is not from a hub" in copy.run(fake.url).stderr
        fake.answers = lambda _: error(404)
        assert f"No hub at {fake.url}" in copy.run(fake.url).stderr
    with closed_port() as url:
        done = copy.run(url)
        assert done.exit_code == 1 and "Connection refused" in done.stderr
    assert copy.run("ftp://x").exit_code == 2 and copy.run("http://u@x").exit_code == 2


def test_check(copy: Copy, origin: Origin) -> None:
    with Fake(origin) as fake:
        assert "is no mirror" in copy.run(fake.url, "--check").stderr
        copy.run(fake.url)
        (copy.folder / REPOS / "ann/review/versions/1.0.0.txt").write_bytes(b"Other.\n")
        (copy.folder / REPOS / "bob/sql.json").unlink()
        before = copy.tree
        asked(fake)
        done = copy.run(fake.url, "--check")
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == (
            "ann/review is missing or differs\nbob/sql is missing or differs\nError: "
            f"{copy.folder} is not as {fake.url}. Run `hubctl mirror {fake.url} {copy.folder}`.\n"
        )
        assert copy.tree == before and asked(fake) == {"api/v1/hub.json", CATALOGUE}
        assert "2 fetched" in copy.run(fake.url).stdout and copy.tree == origin.mirrored()


def test_a_private_hub(copy: Copy, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    def private(request: Request) -> Answer:
        is_member = request.headers.get("authorization") == f"Bearer {TOKEN}"
        return origin(request) if is_member else error(401, "For members.")

    with (
        Fake(private) as fake,
        Fake(lambda _: error(500)) as proxy,
        pytest.MonkeyPatch.context() as m,
    ):
        m.setenv("http_proxy", proxy.url)
        assert "Set HUB_TOKEN" in copy.run(fake.url).stderr
        fake.requests.clear()
        assert copy.run(fake.url, token=TOKEN).exit_code == 0 and copy.tree == origin.mirrored()
        has_token = ["authorization" in request.headers for request in fake.requests]
        assert has_token == [False] + [True] * (len(has_token) - 1) and not proxy.requests


def test_folders_of_others(copy: Copy, origin: Origin) -> None:
    with Fake(origin) as fake, Fake(origin) as other:
        copy.folder.mkdir()
        (copy.folder / "mine").write_text("Mine.")
        assert "is not empty, and no mirror" in copy.run(fake.url).stderr
        shutil.rmtree(copy.folder)
        assert copy.run(fake.url).exit_code == 0
        done = copy.run(other.url)
        assert f"mirrors {fake.url}. Name another folder" in done.stderr
        with mirrors._opened(fake.url, str(copy.folder), ""):
            done = copy.run(fake.url)
            assert done.exit_code == 1 and "Another process writes to" in done.stderr


def test_a_disk_that_takes_no_more(copy: Copy, origin: Origin) -> None:
    with Fake(origin) as fake:
        copy.run(fake.url)
        (copy.folder / ".hub-mirror/noted").unlink()
        (copy.folder / ".hub-mirror/noted").mkdir()
        with pytest.raises(OperatorError, match=r"noted: Is a directory|not a plain file"):
            mirrors.mirror(fake.url, str(copy.folder), "", mirrors.Work())
