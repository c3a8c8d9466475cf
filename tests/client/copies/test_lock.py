"""The lock file: written by lock and update, followed by sync."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.client.copies.lock_files import (
    PINNED,
    REVIEW,
    RUN_SYNC,
    STORY,
    TALE,
    files,
    write_lock,
)
from tests.client.fake import Fake
from tests.client.shells import Client
from tests.client.site import MOVED, ONE, THREE, TWO, Site, sha256
from tests.client.test_machine import put_tool, without

WITHDRAWN = "/api/v1/withdrawn.jsonl"
SYNCED = {"prompts/review.md": TWO, "old.md": ONE, "prompts/ann/story.md": STORY}


def test_from_nothing_to_files(either: Client, host: Fake) -> None:
    to = either.to(host.url)
    lock = to.work / "prompts.lock"
    done = to.run("lock", "ann/review@production", "prompts/review.md")
    assert done == (0, b"ann/review@production: 1.1.0\n", RUN_SYNC)
    assert to.run("lock", "ann/story").out == b"ann/story@latest: 1.0.0\n"
    assert to.run("lock", "ann/review@1.0.0", "old.md").out == b"ann/review@1.0.0: 1.0.0\n"
    comment, *lines = lock.read_text().splitlines(keepends=True)
    assert comment.startswith("# ") and lines == [PINNED, REVIEW, TALE]
    done = to.run("sync")
    assert (done.status, done.out) == (0, b"") and files(to) == SYNCED
    assert "saved ann/review 1.1.0 as prompts/review.md\n" in done.err
    assert to.run("sync") == (0, b"", "every file is as prompts.lock says\n")
    assert to.run("sync", "--check") == (0, b"", "every file is as prompts.lock says\n")


def test_a_label_that_moves(each: Client, site: Site, host: Fake) -> None:
    to = each.to(host.url)
    lock = write_lock(to, "# Ours.\n", PINNED, REVIEW, TALE)
    to.run("sync")
    assert to.run("update") == (0, b"", "prompts.lock is up to date\n")
    site.move("ann/review", "production", "2.0.0")
    done = to.run("sync", "--check")
    assert (done.status, done.out) == (1, b"") and files(to) == SYNCED
    assert done.err == "ann/review@production is now 2.0.0, not 1.1.0. Run `hub update`\n"
    # A sync follows the file, not the label.
    assert to.run("sync").status == 0 and files(to) == SYNCED
    assert to.run("update", "ann/story").out == b""
    assert to.run("update") == (0, "ann/review@production: 1.1.0 → 2.0.0\n".encode(), RUN_SYNC)
    assert lock.read_text() == "# Ours.\n" + PINNED + (
        f"ann/review production 2.0.0 {sha256(THREE)} prompts/review.md\n" + TALE
    )
    done = to.run("sync", "--check")
    assert done.err == "prompts/review.md is not ann/review 2.0.0. Run `hub sync`\n"
    # An older version is no change of one's own.
    assert to.run("sync").status == 0
    assert files(to) == SYNCED | {"prompts/review.md": THREE}
    assert to.run("sync", "--check").status == 0


def test_an_update_of_one_prompt(to: Client, site: Site) -> None:
    lock = write_lock(to, REVIEW, TALE)
    site.move("ann/review", "production", "1.0.0")
    site.publish("ann/story", "1.0.1", b"Tell two.\n")
    assert to.run("update", "ann/story").text == "ann/story@latest: 1.0.0 → 1.0.1\n"
    assert lock.read_text().startswith(REVIEW)
    done = to.run("update", "ann/nothing")
    assert (done.status, done.out) == (3, b"") and "has no ann/nothing. Add it with" in done.err
    # Back as well: the label decides.
    assert to.run("update", "ann/review").text == "ann/review@production: 1.1.0 → 1.0.0\n"


def test_lines_that_a_person_wrote(awk: Client, host: Fake) -> None:
    to = awk.to(host.url)
    lock = write_lock(
        to, "  ann/story   latest\r\n", "\n", "# Why.\n",
        "ann/review production prompts/review.md\r\n",
        # Pinned to another version than it was.
        f"ann/review 1.0.0 1.1.0 {sha256(TWO)} old.md",
    )  # fmt: skip
    done = to.run("lock")
    assert done.text.splitlines() == [
        "ann/story@latest: 1.0.0", "ann/review@production: 1.1.0", "ann/review@1.0.0: 1.0.0",
    ]  # fmt: skip
    assert lock.read_text() == "# Why.\n" + PINNED + REVIEW + TALE
    before = lock.stat()
    assert to.run("lock") == (0, b"", "prompts.lock is up to date\n")
    assert (lock.stat().st_ino, lock.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_what_is_locked_stays(to: Client, site: Site, host: Fake) -> None:
    lock = write_lock(to, REVIEW)
    site.move("ann/review", "production", "2.0.0")
    host.requests.clear()
    assert to.run("lock").status == 0 and lock.read_text() == REVIEW
    assert paths(host) == [WITHDRAWN]
    assert to.run("lock", "ann/review@production", "prompts/review.md").out == b""
    assert lock.read_text() == REVIEW
    # Another ref for the same file.
    done = to.run("lock", "ann/review@1.0.0", "prompts/review.md")
    assert done.out == b"ann/review@1.0.0: 1.0.0\n"
    assert lock.read_text() == f"ann/review 1.0.0 1.0.0 {sha256(ONE)} prompts/review.md\n"
    done = to.run("lock", "ann/story", "prompts/review.md")
    assert (done.status, done.out) == (1, b"") and "path of another prompt: prompts/" in done.err


def test_a_lock_file_elsewhere(each: Client, host: Fake) -> None:
    to = each.to(host.url)
    (to.work / "-a b").mkdir()
    for command in (["lock", "ann/story", "x y  z.md"], ["sync"], ["sync", "--check"], ["update"]):
        assert to.run(*command, "--file", "-a b/*.lock").status == 0
    assert (to.work / "-a b" / "x y  z.md").read_bytes() == STORY
    whole = str(to.work / "-a b" / "*.lock")
    assert to.run("sync", "--check", "--file", whole).status == 0
    assert to.run("lock", "--file", "none/x.lock", "ann/story").status == 1


SKILL_FILE = ".agents/skills/review/SKILL.md"


def skill_line(site: Site, ref: str, version: str, text: bytes, path: str = SKILL_FILE) -> str:
    skill = site.files[f"ann/review/versions/{version}.skill.md"]
    return f"ann/review {ref} {version} {sha256(text)} {sha256(skill)} {path}\n"


def test_a_file_called_skill_is_a_skill(each: Client, site: Site, host: Fake) -> None:
    to = each.to(host.url)
    lock = write_lock(to, f"ann/review production {SKILL_FILE}\n")
    assert to.run("lock").status == 0
    assert lock.read_text() == skill_line(site, "production", "1.1.0", TWO)
    assert to.run("sync").status == to.run("sync", "--check").status == 0
    assert files(to) == {SKILL_FILE: site.files["ann/review/versions/1.1.0.skill.md"]}
    assert to.run("lock").err == "prompts.lock is up to date\n"
    # An older version is no change of one's own, also where no copy of it is kept.
    site.move("ann/review", "production", "2.0.0")
    assert to.run("update").status == 0
    assert lock.read_text() == skill_line(site, "production", "2.0.0", THREE)
    shutil.rmtree(to.cache)
    assert "is not ann/review 2.0.0" in to.run("sync", "--check").err
    assert to.run("sync").status == 0
    assert files(to) == {SKILL_FILE: site.files["ann/review/versions/2.0.0.skill.md"]}
    (to.work / SKILL_FILE).write_text('---\n  version: "1.0.0"\n---\nMine.\n')
    assert "has your own changes" in to.run("sync").err


def test_a_folder_from_which_agents_load_no_skill(to: Client) -> None:
    for path, is_told in (("review/SKILL.md", False), ("SKILL.md", True), ("x/SKILL.md", True)):
        done = to.run("lock", "--file", "l", "ann/review@1.0.0", path)
        told = f"agents load no skill from {path}: its folder is not called review"
        assert (told in done.err) == is_told
        (to.work / "l").unlink(missing_ok=True)


def test_a_skill_that_is_not_what_was_locked(to: Client, site: Site) -> None:
    write_lock(to, skill_line(site, "1.0.0", "1.0.0", ONE, "SKILL.md"))
    site.files["ann/review/versions/1.0.0.skill.md"] += b"Evil."
    done = to.run("sync")
    assert done.status == 6 and "its SHA-256 differs. Try again, or lock it again" in done.err
    assert files(to) == {}


def test_lines_whose_file_was_renamed(to: Client, site: Site) -> None:
    """A skill's line needs two hashes, any other one."""
    lock = write_lock(to, PINNED.replace("old.md", SKILL_FILE))
    done = to.run("sync")
    assert (done.status, done.err) == (1, "prompts.lock: line 1: not locked. Run `hub lock`\n")
    assert to.run("lock").status == 0
    assert lock.read_text() == skill_line(site, "1.0.0", "1.0.0", ONE)
    write_lock(to, skill_line(site, "1.0.0", "1.0.0", ONE, "old.md"))
    assert to.run("sync").status == to.run("lock").status == 0
    assert files(to) == {"old.md": ONE} and lock.read_text() == PINNED


# Edited files and obstacles -----------------------------------------------------------------------


def test_changes_of_one_s_own(either: Client, host: Fake) -> None:
    to = either.to(host.url)
    write_lock(to, PINNED, REVIEW, TALE)
    to.run("sync")
    (to.work / "old.md").unlink()
    (to.work / "prompts/review.md").write_bytes(b"Mine.\n")
    done = to.run("sync", "--check")
    assert (done.status, done.out) == (1, b"")
    assert done.err.splitlines() == [
        "old.md is missing. Run `hub sync`",
        "prompts/review.md is not ann/review 1.1.0. Run `hub sync`",
    ]
    done = to.run("sync")
    assert done.status == 1 and "prompts/review.md has your own changes, or is" in done.err
    # All or nothing: the file that is missing stays so.
    assert files(to) == {"prompts/review.md": b"Mine.\n", "prompts/ann/story.md": STORY}
    assert to.run("sync", "--force").status == 0 and files(to) == SYNCED


def test_what_stands_in_the_way(either: Client, host: Fake, tmp_path: Path) -> None:
    to = either.to(host.url)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "review.md").write_bytes(b"Theirs.\n")
    ways = [
        lambda: (to.work / "prompts").symlink_to(outside),
        lambda: (to.work / "prompts").symlink_to("."),
        lambda: (to.work / "prompts").symlink_to("nowhere"),
        lambda: (to.work / "prompts").write_bytes(b"A file."),
        lambda: (to.work / "prompts").mkdir() or (to.work / "prompts/review.md").mkdir(),
        lambda: (to.work / "prompts").mkdir() or os.mkfifo(to.work / "prompts/review.md"),
        lambda: (
            (to.work / "prompts").mkdir()
            or (to.work / "prompts/review.md").symlink_to(outside / "review.md")
        ),
    ]
    for number, put in enumerate(ways if to.shell == "dash" else ways[3:]):
        to.work.rename(tmp_path / f"work-{number}")
        to.work.mkdir()
        write_lock(to, REVIEW)
        put()
        before = sorted(to.work.rglob("*"))
        for options in (["--force"], []):
            done = to.run("sync", *options)
            assert done.status == 1 and done.err, number
            assert sorted(to.work.rglob("*")) == before
        assert to.run("sync", "--check").status == 1
    assert [path.read_bytes() for path in outside.iterdir()] == [b"Theirs.\n"]


def test_a_write_that_fails(client: Client, host: Fake, tmp_path: Path) -> None:
    """The existing file stays whole, and the next run continues."""
    to = client.to(host.url)
    write_lock(to, PINNED, REVIEW, TALE)
    full = put_tool(
        tmp_path / "full", "mv", 'case $* in */review.md) exit 1 ;; esac; exec REAL "$@"'
    )
    done = to.having(full).run("sync")
    assert done.status == 1 and "cannot write prompts/review.md" in done.err
    assert files(to) == {"old.md": ONE}
    assert to.run("sync").status == 0 and files(to) == SYNCED


def test_a_text_that_cannot_be_fetched(to: Client, site: Site) -> None:
    write_lock(to, PINNED, REVIEW, TALE)
    text = site.files.pop("ann/story/versions/1.0.0.txt")
    done = to.run("sync")
    assert done.status == 3 and files(to) == {}
    site.files["ann/story/versions/1.0.0.txt"] = text
    assert to.run("sync").status == 0 and files(to) == SYNCED


def test_files_have_the_modes_of_the_user(each: Client, host: Fake) -> None:
    before = os.umask(0o027)
    try:
        to = each.to(host.url)
        to.run("lock", "ann/story")
        to.run("sync")
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(to.work)): stat.S_IMODE(path.stat().st_mode)
        for path in to.work.rglob("*")
    }
    folders = {"prompts": 0o750, "prompts/ann": 0o750}
    assert modes == folders | {"prompts.lock": 0o640, "prompts/ann/story.md": 0o640}


# Trust and networks ------------------------------------------------------------------------------


def test_a_text_that_is_not_what_was_locked(to: Client, site: Site, host: Fake) -> None:
    write_lock(to, PINNED, REVIEW)
    site.files["ann/review/versions/1.1.0.txt"] = b"Evil.\n"
    done = to.run("sync")
    assert done.status == 6 and "is not ann/review 1.1.0: its SHA-256 differs" in done.err
    assert files(to) == {}
    # A hub that changes a version, record and all.
    site.publish("ann/review", "1.1.0", b"Evil.\n")
    site.move("ann/review", "production", "1.1.0")
    for command in (["update"], ["sync", "--check"]):
        done = to.run(*command)
        assert (done.status, done.out) == (6, b""), command
        assert "is not the one in prompts.lock: its SHA-256 differs" in done.err
    done = to.run("lock", "ann/review@production", "b.md")
    assert done.status == 0  # it is new here


def test_a_sync_offline(to: Client, site: Site, host: Fake) -> None:
    lock = write_lock(to, PINNED, REVIEW)
    done = to.run("sync", "--offline")
    assert done.status == 6 and "no copy of ann/review 1.0.0 on this machine" in done.err
    assert files(to) == {}
    lock.write_text("ann/review production prompts/review.md\nann/review 1.0.0 old.md\n")
    assert to.run("lock").status == 0
    host.requests.clear()
    # Locked versions are in the cache.
    assert to.run("sync", "--offline").status == 0
    (to.work / "old.md").unlink()
    assert to.run("sync").status == 0 and paths(host) == [WITHDRAWN]
    site.is_up = False
    (to.work / "old.md").unlink()
    assert to.run("sync").status == 0
    assert to.run("sync", "--check", "--offline").status == 0
    site.is_up = True
    site.move("ann/review", "production", "2.0.0")
    assert to.run("sync", "--check", "--offline").status == 0


def test_labels_are_never_read_from_old_copies(to: Client, site: Site, host: Fake) -> None:
    to.run("cat", "ann/review@production")
    site.move("ann/review", "production", "2.0.0")
    locked = f"ann/review production 2.0.0 {sha256(THREE)} a.md\n"
    lock = write_lock(to, locked)
    site.is_up = False
    for command in (["update"], ["sync", "--check"], ["lock", "ann/review@production", "b.md"]):
        done = to.run(*command)
        assert (done.status, done.out) == (6, b""), command
    assert lock.read_text() == locked and files(to) == {}


def paths(host: Fake) -> list[str]:
    return [one.path for one in host.requests]


def gone(name: str, version: str | None, reason: str, note: str = "") -> bytes:
    """A line of the list of withdrawals."""
    what = {"owner": "ann", "name": name, "version": version, "at": MOVED}
    line = what | {"reason": reason, "note": note}
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def test_versions_that_were_withdrawn(each: Client, site: Site, host: Fake) -> None:
    to = each.to(host.url)
    lock = write_lock(to, PINNED, REVIEW, TALE)
    to.run("sync")
    site.files[WITHDRAWN] = (
        gone("review", "1.0.1", "error")
        + gone("review", "1.0.0", "secret", 'Use "2.0.0", {ann}.\n\x1b[31mNow.')
        + gone("story", None, "legal")
        + gone("story-2", None, "owner")
    )
    told = (
        'ann/review 1.0.0 was withdrawn on 2026-10-01 (secret): Use "2.0.0", {ann}. ?[31mNow.\n'
        "ann/story was withdrawn on 2026-10-01 (legal)\n"
        "run `hub update`, or change the lines of pinned versions in prompts.lock\n"
    )
    before = files(to)
    (to.work / "prompts/review.md").unlink()
    for command in (["sync"], ["sync", "--check"], ["lock"], ["update"]):
        done = to.run(*command)
        assert done.status == 1 and told in done.err, command
        assert lock.read_text() == PINNED + REVIEW + TALE
    host.requests.clear()
    assert to.run("sync", "--offline").status == 0 and not host.requests
    assert files(to) == before
    # What was withdrawn is known only where the hub says so.
    for site.is_up, body in ((False, b""), (True, b""), (True, b"<h1>Sign in</h1>"), (True, None)):
        site.files[WITHDRAWN] = body
        assert to.run("sync") == (0, b"", "every file is as prompts.lock says\n")


def test_one_request_says_what_was_withdrawn_of_many(to: Client, site: Site, host: Fake) -> None:
    lines = [f"ann/p-{n} 1.0.0 1.0.0 {sha256(ONE)} p/{n}.md\n" for n in range(300)]
    write_lock(to, *lines)
    for n in range(300):
        (to.work / "p").mkdir(exist_ok=True)
        (to.work / f"p/{n}.md").write_bytes(ONE)
    site.files[WITHDRAWN] = gone("p-7", "1.0.0", "error")
    done = to.run("sync", "--check")
    assert done.status == 1 and done.err.startswith(
        "ann/p-7 1.0.0 was withdrawn on 2026-10-01 (error"
    )
    assert done.err.count("was withdrawn") == 1 and paths(host) == [WITHDRAWN]


def test_a_version_that_was_withdrawn_is_not_read(to: Client, site: Site) -> None:
    site.gone["ann/review/versions/1.0.0."] = told = "ann/review 1.0.0 was withdrawn: a secret."
    for command in (["cat", "ann/review@1.0.0"], ["lock", "ann/review@1.0.0", "b.md"]):
        done = to.run(*command)
        assert (done.status, done.out) == (3, b"") and told in done.err, command


def test_the_list_says_which_version_was_withdrawn(to: Client, site: Site) -> None:
    listed = json.loads(site.files["ann/review/versions.json"])
    first = listed["data"][-1]
    first |= {"changelog": "", "withdrawn": {"at": MOVED, "reason": "secret", "note": "Use 2.0.0."}}
    site.files["ann/review/versions.json"] = json.dumps(listed).encode()
    rows = to.run("versions", "ann/review").text.splitlines()
    assert rows[-1].split("\t")[4] == "Withdrawn (secret): Use 2.0.0."
    assert "Withdrawn" not in "".join(rows[:-1])


def test_a_label_that_is_gone(to: Client, site: Site) -> None:
    lock = write_lock(to, REVIEW, TALE)
    to.run("sync")
    site.move("ann/review", "production", None)
    site.publish("ann/story", "2.0.0", b"Tell two.\n")
    done = to.run("sync", "--check")
    assert done.status == 1 and done.err.splitlines() == [
        "ann/review@production is gone. Change the line in prompts.lock",
        "ann/story is now 2.0.0, not 1.0.0. Run `hub update`",
    ]
    # All or nothing, and other lines are named, too.
    site.files[WITHDRAWN] = gone("story", "1.0.0", "error")
    done = to.run("update")
    assert "no ann/review@production at" in done.err and "ann/story 1.0.0 was withdr" in done.err
    assert (done.status, done.out) == (3, b"") and lock.read_text() == REVIEW + TALE


def test_what_is_not_there(to: Client) -> None:
    done = to.run("lock", "ann/nothing")
    assert done.status == 3 and not (to.work / "prompts.lock").exists()
    for command in ("lock", "update", "sync"):
        done = to.run(command)
        assert done.status == 1 and "no file prompts.lock. Create it with" in done.err
    lock = write_lock(to)
    assert to.run("sync") == (0, b"", "every file is as prompts.lock says\n")
    assert to.run("update").status == 0 and lock.read_text() == ""


@pytest.mark.parametrize("tool", ["sha256sum"])
def test_no_tool_for_sha_256(tool: str, to: Client, tools: Path, tmp_path: Path) -> None:
    bare = to.having_only(without(tools, tmp_path / "bare", tool))
    write_lock(to, REVIEW)
    done = bare.run("sync")
    assert done.status == 1 and "needs sha256sum, shasum or openssl" in done.err
    assert bare.run("update").status == 0
