"""The jobs that publish take a folder with a SKILL.md or PROMPT.md as one prompt with files."""

import pytest

from tests.docs.ci import NOTHING, SHELLS, TrustedProject, Trusting, text, versions
from tests.support.servers import Server


def files_of(hub: Server, project: TrustedProject, name: str) -> dict[str, tuple[bytes, bool]]:
    record = hub.get(f"/api/v1/repos/{project.owner}/{name}").json()["data"]
    return {
        one["path"]: (hub.get(one["url"].removeprefix(hub.url)).content, one["executable"])
        for one in record.get("files", ())
    }


@pytest.mark.parametrize("platform", SHELLS)
def test_folders_are_prompts_with_files(trusting: Trusting, trusted: TrustedProject, platform: str):
    hub, run = trusting.server, trusted.work / "prompts/tool/run.sh"
    run.parent.mkdir(parents=True)
    run.touch(0o755)
    (run.parent / "link").symlink_to("/etc/passwd")
    files = {
        "prompts/tool/SKILL.md": "Run it.",
        "prompts/tool/run.sh": b"#!/bin/sh\n",
        "prompts/tool/a/README.md": "Read.",
        "prompts/tool/.env": "SECRET=1",
        "prompts/tool/node_modules/a.js": "x",
        "prompts/plain.md": "P",
        "prompts/README.md": "Read.",
        "prompts/other/PROMPT.md": "O.",
        "prompts/other/moved.bin": b"\0\xff",
        ".gitattributes": "prompts/** -text\n",
    }
    empty = trusted.push_files("Begin", {"README.md": ""})
    first = trusted.push_files("Begin", files)
    said = trusted.check(platform, first, empty)
    left = "hub: leaves out prompts/tool/node_modules/: made by a tool\n"
    assert "hub: leaves out prompts/tool/.env: hidden\n" in said.output and left in said.output
    assert said.status == 0 and f"{trusted.owner}/tool" in said.output + said.summary.replace(
        "\\", ""
    )
    done = trusted.run(platform, NOTHING, first)
    assert done.status == 0, done.output
    assert "hub: leaves out prompts/tool/.env: hidden\n" in done.output and left in done.output
    assert text(hub, trusted, "tool") == b"Run it."
    kept = {"run.sh": (b"#!/bin/sh\n", True), "a/README.md": (b"Read.", False)}
    assert files_of(hub, trusted, "tool") == kept
    # Only a file of a folder changes; one is moved from a folder to another.
    second = trusted.push_files(
        "Move", {"prompts/other/moved.bin": None, "prompts/tool/moved.bin": b"\0\xff"}
    )
    done = trusted.run(platform, first, second)
    assert done.status == 0 and f"{trusted.owner}/plain" not in done.output
    assert files_of(hub, trusted, "tool") == kept | {"moved.bin": (b"\0\xff", False)}
    assert files_of(hub, trusted, "other") == {}
    assert versions(hub, trusted, "other") == {"1.0.1": "Move", "1.0.0": "Begin"}
    done = trusted.run(platform, NOTHING, first)
    assert f"tool 1.0.1 is from commit {second}, which is not in" in done.output
    more = trusted.push_files("More", {"prompts/other/more.bin": b"x"})
    trusted.run(platform, second, more)
    done = trusted.run(platform, NOTHING, second)
    assert f"other 1.0.2 is from commit {more}, which is not in" in done.output
    third = trusted.push_files("Wrong", {"prompts/tool/café 1": "x", "prompts/plain.md": "Q"})
    done = trusted.run(platform, more, third)
    assert done.status == 5 and "prompts/tool/SKILL.md: error: " in done.output
    assert "is not a portable path" in done.output
    assert list(versions(hub, trusted, "tool")) == ["1.0.1", "1.0.0"]
    assert text(hub, trusted, "plain") == b"Q"


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
# What a push does not publish, and the words of both jobs for it.
REFUSED = {
    "prompts/empty.md": (b"", "prompts/empty.md: error: the file is empty"),
    "prompts/latin-1.md": (b"caf\xe9", "prompts/latin-1.md: error: the file is not UTF-8"),
    "prompts/nul.md": (b"a\0b", "prompts/nul.md: error: the file has a NUL character"),
    "prompts/long.md": (b"x" * 262_145, "prompts/long.md: error: the file has 262145 bytes"),
    "prompts/two--hyphens.md": ("x", "prompts/two--hyphens.md: error: not the file of a prompt"),
    "prompts/My Prompt.md": ("x", "prompts/My Prompt.md: error: not the file of a prompt"),
    "prompts/pointer.md": (POINTER, "prompts/pointer.md: error: is a pointer of Git LFS"),
    "prompts/kit/big.bin": (POINTER, "prompts/kit/big.bin: error: is a pointer of Git LFS"),
    "prompts/kit/SKILL.md": ("Kit.", ""),
    "prompts/two.md": (
        "2",
        ": error: prompts/two.md and prompts/two are two sources",
    ),
    "prompts/two/SKILL.md": ("2", ""),
    "prompts/Über.md": ("U", "prompts/Über.md: error: not the file of a prompt"),
    'prompts/"q".md': ("Q", "a quote or a control character in a name"),
    "prompts/a.txt": ("T", "prompts/a.txt: warning: not the file of a prompt"),
    "prompts/B.MD": ("M", "prompts/B.MD: warning: not the file of a prompt"),
    "prompts/c.markdown": ("M", "prompts/c.markdown: warning: not the file of a prompt"),
    "prompts/.hid/d.md": ("H", "hub: leaves out prompts/.hid/d.md: hidden"),
}


def test_check_and_push_name_the_same_in_the_same_places(
    trusting: Trusting, trusted: TrustedProject
) -> None:
    before = trusted.push_files("Begin", {"README.md": ""})
    refused = {path: data for path, (data, _) in REFUSED.items()}
    good = {"prompts/a.md": "A", "prompts/z.md": "Z", ".gitattributes": "prompts/** -text"}
    after = trusted.push_files("Names", refused | good)
    for done in (trusted.check("github", after, before), trusted.run("alpine", before, after)):
        assert done.status == 5, done.output
        for _, said in REFUSED.values():
            assert said in done.output
    user = trusting.server.get(f"/api/v1/users/{trusted.owner}").json()["data"]
    assert {repo["name"] for repo in user["repos"]} == {"a", "z"}
