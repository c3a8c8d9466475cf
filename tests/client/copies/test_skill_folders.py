"""A skill with files is pulled and synced whole: verified before anything is written, with
executable bits, and without the files of the previous version. No hub writes anywhere else.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.client.conftest import Hub
from tests.client.copies.lock_files import RUN_SYNC, STORY, files, write_lock
from tests.client.copies.skill_site import (
    FILES,
    NEWER,
    PLACE,
    TEXT,
    TOOL,
    line,
    skill_md,
    tool_site,  # noqa: F401
    whole,
)
from tests.client.fake import Fake
from tests.client.shells import Client
from tests.client.site import Site, sha256
from tests.client.test_machine import put_tool


def executables(client: Client) -> set[str]:
    """The paths of all executable files in its folder."""
    return {path for path in files(client) if os.access(client.work / path, os.X_OK)}


def test_a_pull_brings_all_files(each: Client, site: Site, host: Fake) -> None:
    to = each.to(host.url)
    pull = ("pull", TOOL, "--as", "skill", "-o", ".agents/skills")
    done = to.run(*pull)
    assert (done.status, done.out) == (0, b""), done.err
    assert files(to) == whole(site, "1.0.0", FILES)
    assert executables(to) == {f"{PLACE}/run.sh", f"{PLACE}/scripts/deep/more.sh"}
    assert done.err.endswith(f"saved {TOOL} 1.0.0 as {PLACE}/SKILL.md\n")
    assert to.run(*pull).err == f"{PLACE}/SKILL.md is already {TOOL} 1.0.0\n"
    (to.work / PLACE / "empty").write_bytes(b"Mine.")
    done = to.run(*pull)
    assert done.status == 1 and f"{PLACE}/empty has your own changes" in done.err
    site.is_up = False
    assert to.run(*pull, "--offline", "--force").status == 0
    assert files(to) == whole(site, "1.0.0", FILES)
    assert to.run("cat", TOOL, "--as", "skill", "--offline").out == skill_md(site, "1.0.0")
    assert to.run("pull", TOOL, "-o", "x/SKILL.md", "--offline").status == 0
    assert (to.work / "x/scripts/deep/more.sh").read_bytes() == FILES["scripts/deep/more.sh"]


def test_a_hub_without_the_skill(to: Client, site: Site, host: Fake) -> None:
    del site.files[f"{TOOL}/versions/1.0.0.skill.zip"]
    done = to.run("pull", TOOL, "--as", "skill")
    assert done.err == f"no {TOOL} 1.0.0 at {host.url}: it answers 404\n"
    assert done.status == 3 and not files(to)


def test_lock_sync_and_update(each: Client, site: Site, host: Fake) -> None:
    to = each.to(host.url)
    lock = write_lock(to, f"{TOOL} latest {PLACE}/SKILL.md\n")
    assert to.run("lock").status == 0 and lock.read_text() == line(site)
    host.requests.clear()
    assert to.run("sync", "--offline").status == 0 and not host.requests
    assert files(to) == whole(site, "1.0.0", FILES)
    assert to.run("sync", "--check").err == "every file is as prompts.lock says\n"
    (to.work / PLACE / "notes.txt").write_text("Ours.")
    (to.work / PLACE / "a/b/c.bin").write_bytes(b"Changed.")
    site.publish(TOOL, "2.0.0", b"New.\n", NEWER)
    assert to.run("update").err == RUN_SYNC and lock.read_text() == line(site, "2.0.0")
    done = to.run("sync")
    assert done.status == 0 and f"{PLACE}/a/b/c.bin stays, with your own changes" in done.err
    mine = {f"{PLACE}/notes.txt": b"Ours.", f"{PLACE}/a/b/c.bin": b"Changed."}
    assert files(to) == whole(site, "2.0.0", NEWER) | mine
    assert not (to.work / PLACE / "scripts").exists()
    # To a version without files, from a lock file that came with its files from elsewhere.
    site.publish(TOOL, "3.0.0", b"None.\n")
    shutil.rmtree(to.cache)
    assert to.run("update").status == to.run("sync").status == 0
    assert files(to) == whole(site, "3.0.0", {}) | mine


def test_a_check_sees_each_file(to: Client, site: Site) -> None:
    write_lock(to, line(site))
    to.run("sync")
    folder = to.work / PLACE
    (folder / "a/b/c.bin").write_bytes(b"Changed.")
    (folder / "empty").unlink()
    (folder / "run.sh").chmod(0o644)
    done = to.run("sync", "--check", "--offline")
    assert done.status == 1 and done.err.splitlines() == [
        f"{PLACE}/a/b/c.bin is not {TOOL} 1.0.0. Run `hub sync`",
        f"{PLACE}/empty is missing. Run `hub sync`",
        f"{PLACE}/run.sh is not {TOOL} 1.0.0. Run `hub sync`",
    ]
    assert to.run("sync", "--force").status == 0
    assert to.run("sync", "--check").status == 0 and files(to) == whole(site, "1.0.0", FILES)


BY_FILE = {"a": b"file", "b/c/d": b"deep", "b/e": b"more", "run.sh": b"x"}
BY_FOLDER = {"a/x/y": b"inside", "a/z": b"more", "b": b"file", "run.sh": b"x"}


@pytest.mark.parametrize("mine", ["a", "b/e", "b/mine", "b/empty/", "b/link"])
def test_a_file_of_the_user_in_the_place_of_another_stops_a_sync(
    each: Client, site: Site, host: Fake, mine: str
) -> None:
    to = each.to(host.url)
    site.publish(TOOL, "2.0.0", b"Two.\n", BY_FILE)
    write_lock(to, line(site, "2.0.0"))
    to.run("sync")
    place = to.work / PLACE / mine
    if mine.endswith("/"):
        place.mkdir()
    elif mine == "b/link":
        place.symlink_to("nowhere")
    else:
        place.write_text("Mine.")
    site.publish(TOOL, "3.0.0", b"Three.\n", BY_FOLDER)
    write_lock(to, line(site, "3.0.0"))
    before = files(to)
    for command in ("sync", "sync --force"):
        done = to.run(*command.split())
        assert done.status == 1 and "is not a file, or goes through one. Move it away" in done.err
        assert files(to) == before and os.path.lexists(place)


@pytest.mark.parametrize(
    ("path", "inside"),
    [(f"{PLACE}/A", f"{PLACE}/SKILL.md"), ("0", "0/SKILL.md"), ("0/EMPTY", "0/SKILL.md")],
)
def test_the_file_of_a_line_is_not_one_of_another(
    to: Client, site: Site, path: str, inside: str
) -> None:
    site.publish("ann/story", "1.0.0", STORY)
    write_lock(to, f"{TOOL} latest {inside}\nann/story latest {path}\n")
    assert to.run("lock").status == 0
    before = files(to)
    done = to.run("sync")
    assert done.err.lower() == f"{path} belongs to two lines. Change the path of one\n".lower()
    assert done.status == 1 and files(to) == before


def test_only_the_executable_bit_of_a_file_changes(to: Client, site: Site) -> None:
    site.publish(TOOL, "1.0.0", TEXT, {"run.sh": b"x", "x": b"y"})
    write_lock(to, line(site))
    to.run("sync")
    record = json.loads(site.files[f"{TOOL}/versions/1.0.0.json"])["data"]
    (to.work / PLACE / "x").chmod(0o755)
    assert f"{PLACE}/x is not" in to.run("sync", "--check").err
    assert to.run("sync").status == 0 and executables(to) == {f"{PLACE}/run.sh"}
    assert [one["executable"] for one in record["files"]] == [True, False]


def test_files_have_the_modes_of_the_user(either: Client, host: Fake, site: Site) -> None:
    to = either.to(host.url)
    before = os.umask(0o027)
    try:
        assert to.run("pull", TOOL, "--as", "skill").status == 0
    finally:
        os.umask(before)
    assert (to.work / "tool/run.sh").stat().st_mode & 0o777 == 0o750
    assert (to.work / "tool/empty").stat().st_mode & 0o777 == 0o640


def test_a_sync_that_was_stopped_continues(to: Client, site: Site, tmp_path: Path) -> None:
    write_lock(to, line(site))
    to.run("sync")
    site.publish(TOOL, "2.0.0", b"New.\n", NEWER)
    to.run("update")
    for number, stopped in enumerate(("empty", "n.py", "SKILL.md")):
        full = put_tool(
            tmp_path / f"full{number}",
            "mv",
            f'case $* in */{stopped}) exit 1 ;; esac; exec REAL "$@"',
        )
        assert to.having(full).run("sync").status == 1
        assert (to.work / PLACE / "SKILL.md").read_bytes() == skill_md(site, "1.0.0")
    assert to.run("sync").status == 0 and files(to) == whole(site, "2.0.0", NEWER)


# Hostile hubs ------------------------------------------------------------------------------------


def test_a_lock_file_of_before_stays_valid(to: Client, site: Site) -> None:
    """A line that an older client wrote has no hash of the files. An update adds it."""
    lock = write_lock(to, f"{TOOL} latest 1.0.0 {sha256(TEXT)} tool.md\n")
    assert to.run("sync").status == to.run("sync", "--check").status == 0
    assert files(to) == {"tool.md": TEXT} and " files:" not in lock.read_text()
    assert to.run("update").status == 0 and " files:" in lock.read_text()
    assert to.run("sync", "--check").status == 0


# With a hub --------------------------------------------------------------------------------------


def test_a_skill_comes_back_as_it_was_pushed(each: Client, publishing: Hub) -> None:
    hub = each.to(publishing.url, HUB_TOKEN=publishing.token)
    pushed = {f"s/{path}": raw for path, raw in FILES.items()}
    for path, raw in (pushed | {"s/SKILL.md": TEXT}).items():
        (hub.work / path).parent.mkdir(parents=True, exist_ok=True)
        (hub.work / path).write_bytes(raw)
        (hub.work / path).chmod(0o755 if path.endswith(".sh") else 0o644)
    repo = f"ada/back-{each.shell}"
    assert hub.run("push", repo, "s").status == 0
    name = repo.partition("/")[2]
    assert hub.run("pull", repo, "--as", "skill").status == 0
    assert hub.run("lock", repo, "t/SKILL.md").status == hub.run("sync").status == 0
    for folder in (name, "t"):
        found = {path: raw for path, raw in files(hub).items() if path.startswith(f"{folder}/")}
        assert found.pop(f"{folder}/SKILL.md").endswith(TEXT)
        assert found == {f"{folder}/{path}": raw for path, raw in FILES.items()}
    assert {path.partition("/")[2] for path in executables(hub)} == {
        "run.sh", "scripts/deep/more.sh"
    }  # fmt: skip
    assert hub.run("sync", "--check").status == 0


def test_a_text_that_is_a_skill_already_is_updated(to: Client, publishing: Hub) -> None:
    """The hub serves it as it is, so it does not say its version."""
    hub = to.to(publishing.url, HUB_TOKEN=publishing.token)
    text = b"---\nname: own\ndescription: Does it.\n---\nText "

    def push(more: bytes, name: str) -> None:
        shutil.rmtree(hub.work / "s", ignore_errors=True)
        (hub.work / "s").mkdir()
        for path, raw in {"SKILL.md": text + more, name: b"x", "same": name.encode()}.items():
            (hub.work / "s" / path).write_bytes(raw)
        hub.run("push", "ada/own", "s")

    push(b"1", "old")
    assert hub.run("lock", "ada/own", "t/SKILL.md").status == hub.run("sync").status == 0
    for more, name in ((b"2", "new"), (b"2", "newer")):  # then the text stays
        push(more, name)
        shutil.rmtree(hub.cache)
        hub.run("update")
        assert hub.run("sync").status == 0
        assert (hub.work / "t/SKILL.md").read_bytes() == text + more
        assert {one.name for one in (hub.work / "t").iterdir()} == {"SKILL.md", name, "same"}
    (hub.work / "t/same").write_bytes(b"mine")
    assert "t/same has your own changes" in hub.run("sync").err


def test_a_link_in_place_of_the_folder_is_refused(to: Client, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (to.work / "skills").mkdir()
    link = to.work / "skills" / TOOL.partition("/")[2]
    link.symlink_to(elsewhere)
    done = to.run("pull", TOOL, "--as", "skill", "-o", "skills")
    assert done.status == 1 and "is a symbolic link. Remove the link" in done.err
    assert not [*elsewhere.iterdir()]
    # One may choose a link oneself.
    (to.work / "linked").symlink_to(elsewhere)
    assert to.run("pull", TOOL, "--as", "skill", "-o", "linked").status == 0
    assert (elsewhere / link.name / "SKILL.md").exists()
