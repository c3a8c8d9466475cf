"""A site with a prompt that is a skill with files, and what a client writes of it."""

import json

import pytest

from tests.client.site import Site, sha256

TOOL = "ann/tool"
TEXT = b"Run run.sh on {{file}}.\n"
FILES = {
    "a/b/c.bin": bytes(range(256)) * 300,
    "empty": b"",
    "run.sh": b"#!/bin/sh\necho hi\n",
    "scripts/deep/more.sh": b"#!/bin/sh\n",
}
NEWER = {"empty": b"no more", "lib/n.py": b"1\n", "run.sh": FILES["run.sh"]}
PLACE = ".agents/skills/tool"


@pytest.fixture(name="site")
def tool_site() -> Site:
    site = Site()
    site.publish(TOOL, "1.0.0", TEXT, FILES)
    return site


def skill_md(site: Site, version: str) -> bytes:
    return site.files[f"{TOOL}/versions/{version}.skill.md"]


def whole(site: Site, version: str, of: dict[str, bytes], place: str = PLACE) -> dict[str, bytes]:
    """All files of a version's skill, by their paths."""
    return {f"{place}/{path}": raw for path, raw in of.items()} | {
        f"{place}/SKILL.md": skill_md(site, version)
    }


def line(site: Site, version: str = "1.0.0", ref: str = "latest", path: str = PLACE) -> str:
    record = json.loads(site.files[f"{TOOL}/versions/{version}.json"])["data"]
    pinned = f" files:{record['content_sha256']}" if "files" in record else ""
    hashes = f"{record['sha256']}{pinned} {sha256(skill_md(site, version))}"
    return f"{TOOL} {ref} {version} {hashes} {path}/SKILL.md\n"
