"""Skills with paths, lists, archives and links that a hostile host or folder may have."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.client.copies.lock_files import STORY, files, write_lock
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
from tests.client.site import Site, compact, packed, sha256


def with_files(site: Site, change: Any, version: str = "1.0.0") -> None:
    """Has the records of a version list other files, with a hash of the whole that is right."""
    record = json.loads(site.files[f"{TOOL}/versions/{version}.json"])["data"]
    listed = change(record["files"])
    lines = [f"{record['sha256']}  -\n"] + [
        f"{one['sha256']} {'*' if one['executable'] is True else ' '}{one['path']}\n"
        for one in sorted(listed, key=lambda one: one["path"].encode())
    ]
    record |= {"files": listed, "content_sha256": sha256("".join(lines).encode())}
    site.files[f"{TOOL}/versions/{version}.json"] = compact(record)
    latest = {key: value for key, value in record.items() if key != "version"}
    site.files[f"{TOOL}.json"] = compact(latest | {"latest_version": version})


PATHS = [
    *"../up a/../../up .. /etc/passwd //etc/passwd a//b a/ ./a a/./b .git/config a/.git/x".split(),
    *r"~/x -rf a\..\b c:x é a. nul d/COM1.txt SKILL.md skill.MD Prompt.md a* $(id) `id` %s".split(),
    *("", "a b", "a\tb", "a\nb", "a\x00b", "a\x1b[31m", "\u202ex", "x" * 201),
]


@pytest.mark.parametrize("path", PATHS, ids=repr)
def test_paths_that_are_refused(path: str, to: Client, site: Site, host: Fake) -> None:
    with_files(site, lambda listed: [listed[0], listed[1] | {"path": path}])
    check_refused(to, host, "files that no version of a prompt can have")


LISTS = {
    "case": lambda listed: [*listed, listed[1] | {"path": "EMPTY"}],
    "twice": lambda listed: [*listed, listed[1]],
    "case of a folder": lambda listed: [*listed, listed[1] | {"path": "A/x"}],
    "file and folder": lambda listed: [*listed, listed[1] | {"path": "empty/x"}],
    "many": lambda listed: [listed[1] | {"path": f"f{n}"} for n in range(201)],
    "very many": lambda listed: [listed[1] | {"path": f"f{n}"} for n in range(20_000)],
    "large": lambda listed: [listed[0] | {"size": 25_165_825}],
    "very large": lambda listed: [listed[0] | {"size": 10**30}],
    "large together": lambda listed: [
        listed[0] | {"path": f"f{n}", "size": 12_600_000} for n in range(2)
    ],
    "negative": lambda listed: [listed[0] | {"size": -1}],
    "no size": lambda listed: [listed[0] | {"size": None}],
    "size in words": lambda listed: [listed[0] | {"size": "1;id"}],
    "no mode": lambda listed: [listed[0] | {"executable": None}],
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_that_are_refused(name: str, awk: Client, site: Site, host: Fake) -> None:
    with_files(site, LISTS[name])
    check_refused(awk.to(host.url), host, "files that no version of a prompt can have")


def check_refused(to: Client, host: Fake, told: str) -> None:
    """No archive is fetched for such a list, and nothing is written."""
    for words in (("pull", TOOL, "--as", "skill"), ("lock", TOOL, "tool/SKILL.md")):
        done = to.run(*words)
        assert (done.status, done.out) == (6, b""), done.err
        assert told in done.err and done.err.count("\n") == 1 and done.err[:-1].isprintable()
    assert files(to) == {} and not (to.folder / "up").exists()
    assert not any(one.path.endswith((".zip", ".bin", ".sh")) for one in host.requests)


def with_archive(site: Site, archive: bytes, digest: str = "") -> None:
    """Another archive, with the digest of the index if it is to be believed."""
    site.files[f"{TOOL}/versions/1.0.0.skill.zip"] = archive
    if digest:
        index = json.dumps({"skills": [{"digest": f"sha256:{digest}"}]}, separators=(",", ":"))
        place = f"/{TOOL}/1.0.0/.well-known/agent-skills/index.json"
        site.files[place] = index.encode()


ARCHIVES = {
    "another file": lambda skill: packed(skill, FILES | {"run.sh": b"#!/bin/sh\nrm -rf\n"}),
    "shorter file": lambda skill: packed(skill, FILES | {"run.sh": b""}),
    "longer file": lambda skill: packed(skill, FILES | {"empty": b"x"}),
    "a file less": lambda skill: packed(skill, {"run.sh": FILES["run.sh"]}),
    "a file more": lambda skill: packed(skill, FILES | {"b": b"x"}),
    "cut": lambda skill: packed(skill, FILES)[:-100],
    "none": lambda skill: b"",
    "a page": lambda skill: b"<!doctype html>" * 10_000,
}


@pytest.mark.parametrize("is_believed", [True, False])
@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_with_other_files_change_nothing(
    name: str, is_believed: bool, to: Client, site: Site
) -> None:
    site.publish(TOOL, "0.9.0", b"Old.\n", NEWER)
    write_lock(to, line(site, "0.9.0"))
    to.run("sync")
    before = files(to)
    archive = ARCHIVES[name](skill_md(site, "1.0.0"))
    with_archive(site, archive, sha256(archive) if is_believed else "")
    write_lock(to, line(site))
    for words in (("sync",), ("sync", "--force"), ("pull", f"{TOOL}@1.0.0", "--as", "skill")):
        done = to.run(*words)
        assert (done.status, done.out) == (6, b""), done.err
        assert "does not have the files of" in done.err or "its SHA-256 differs" in done.err
        assert files(to) == before
    assert not (to.work / "tool").exists()


def test_another_skill_md_than_the_locked_one(to: Client, site: Site) -> None:
    locked = line(site)
    archive = packed(b"Evil.\n", FILES)
    with_archive(site, archive, sha256(archive))
    write_lock(to, locked)
    done = to.run("sync")
    assert done.status == 6 and "lock it again" in done.err and files(to) == {}


def test_other_files_than_the_locked_ones(to: Client, site: Site) -> None:
    locked = write_lock(to, line(site))
    site.publish(TOOL, "1.0.0", TEXT, FILES | {"run.sh": b"#!/bin/sh\nevil\n"})
    done = to.run("sync")
    assert done.status == 6 and "the files from" in done.err and files(to) == {}
    for words in (("update",), ("sync", "--check")):
        assert to.run(*words).status == 6
    site.publish(TOOL, "1.0.0", TEXT)
    done = to.run("update")
    assert done.status == 6 and "its SHA-256 differs" in done.err
    assert locked.exists() and files(to) == {}


def test_links_in_the_folder_are_not_followed(to: Client, site: Site, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (to.work / PLACE).mkdir(parents=True)
    (to.work / PLACE / "scripts").symlink_to(outside)
    write_lock(to, line(site))
    for words in (("sync",), ("sync", "--force"), ("sync", "--check")):
        done = to.run(*words)
        assert done.status == 1 and "goes through a symbolic link" in done.err
    pull = ("pull", TOOL, "--as", "skill", "-o", ".agents/skills", "--force")
    assert to.run(*pull).status == 1
    assert not list(outside.iterdir()) and files(to) == {}


def test_old_files_are_removed_in_the_folder_alone(to: Client, site: Site, tmp_path: Path) -> None:
    """Whatever a hub says that a version had."""
    secret = tmp_path / "client/up"
    secret.write_bytes(b"")
    write_lock(to, line(site))
    to.run("sync")
    shutil.rmtree(to.cache)
    with_files(site, lambda listed: [listed[1] | {"path": "../../../../up"}])
    site.publish(TOOL, "2.0.0", b"New.\n", NEWER)
    write_lock(to, line(site, "2.0.0"))
    done = to.run("sync")
    assert done.status == 6 and secret.exists()


def test_paths_of_two_lines(to: Client, site: Site) -> None:
    site.publish("ann/story", "1.0.0", STORY)
    story = f"ann/story 1.0.0 1.0.0 {sha256(STORY)}"
    for path in (f"{PLACE}/run.sh", f"{PLACE}/RUN.sh"):
        write_lock(to, line(site), f"{story} {path}\n")
        done = to.run("sync")
        assert done.status == 1 and "belongs to two lines" in done.err and files(to) == {}
    site.publish(TOOL, "1.0.0", TEXT, {"prompts.lock": b"x"})
    lock = write_lock(to, line(site, path=".").replace("./", ""))
    done = to.run("sync", "--force")
    assert done.status == 1 and lock.read_text().startswith(TOOL)


def test_an_old_file_that_another_line_has_stays(to: Client, site: Site) -> None:
    site.publish("ann/story", "1.0.0", STORY)
    site.publish(TOOL, "1.0.0", TEXT, {"story.md": STORY, "Old.md": b"1"})
    write_lock(to, line(site))
    to.run("sync")
    site.publish(TOOL, "2.0.0", TEXT, {"old.md": b"1"})
    story = f"ann/story latest 1.0.0 {sha256(STORY)} {PLACE}/story.md\n"
    write_lock(to, line(site, "2.0.0"), story)
    assert to.run("sync").status == 0 and to.run("sync", "--check").status == 0
    kept = {f"{PLACE}/story.md": STORY, f"{PLACE}/Old.md": b"1"}
    assert files(to) == whole(site, "2.0.0", {"old.md": b"1"}) | kept
