"""`hub cat --as skill` and `hub pull --as skill`: a verified prompt as agents read it."""

import json
from typing import Any

import msgspec
import pytest

from builder.text.messages import parse_messages
from tests.client.fake import Fake
from tests.client.shells import Client
from tests.client.site import Site, compact

TEXT = '---\ntitle: Old\n---\n{{role "system"}}\nBe kind.\n{{role "tool"}}\nuser:\n\\{{x}} €\n'


@pytest.fixture
def site() -> Site:
    site = Site()
    for version, end in (("1.0.0", "One."), ("2.0.0", "Two.")):
        site.publish("ann/review", version, f"{TEXT}{end}\n".encode())
    site.move("ann/review", "production", "1.0.0")
    for path in [path for path in site.files if path.startswith("ann/") and path.endswith(".json")]:
        record = json.loads(site.files[path])["data"]
        if "body" in record:
            site.files[path] = compact(complete(record))
    return site


def complete(record: dict[str, Any]) -> dict[str, Any]:
    """The record with all that the API has in it."""
    return record | {
        "title": "Review", "description": "Reviews: all", "tags": ["code"], "license": None,
        "parameters": {"model": "gpt-4o", "top_p": 0.5},
        "messages": msgspec.to_builtins(parse_messages(record["body"])),
    }  # fmt: skip


def test_which_version(either: Client, site: Site, host: Fake) -> None:
    to = either.to(host.url)
    for words, version in (
        (("ann/review", "--as", "skill"), "2.0.0"),
        (("ann/review@1.0.0", "--as", "skill"), "1.0.0"),
        (("ann/review@production", "--as", "skill"), "1.0.0"),
    ):  # fmt: skip
        skill = site.files[f"ann/review/versions/{version}.skill.md"]
        assert to.run("cat", *words) == (0, skill, ""), words
    for format in ("prompty", "dotprompt", "x"):
        done = to.run("cat", "ann/review", "--as", format)
        assert done.status == 2 and "The format is skill" in done.err


def test_a_skill_is_saved_as_a_folder(client: Client, site: Site, host: Fake) -> None:
    to = client.to(host.url)
    written = to.run("cat", "ann/review", "--as", "skill").out
    for words, file in (
        (("-o", ".agents/skills"), ".agents/skills/review/SKILL.md"),
        ((), "review/SKILL.md"),
    ):
        done = to.run("pull", "ann/review", "--as", "skill", *words)
        assert done.status == 0, done.err
        assert (client.work / file).read_bytes() == written
    assert to.run("pull", "ann/review", "--as", "skill", "-o", "-").out == written
    assert to.run("pull", "ann/review", "-o", "SKILL.md").status == 0
    assert (client.work / "SKILL.md").read_bytes() == written
    # An older version is no change of one's own.
    for ref in ("@1.0.0", ""):
        assert to.run("pull", "-o", "SKILL.md", f"ann/review{ref}").status == 0
        assert ((client.work / "SKILL.md").read_bytes() == written) == (not ref)
    (client.work / "review/SKILL.md").write_text("mine")
    done = to.run("pull", "ann/review", "--as", "skill")
    assert done.status == 1 and "--force" in done.err
    assert to.run("pull", "ann/review", "--as", "skill", "--force").status == 0
    assert (client.work / "review/SKILL.md").read_bytes() == written


def test_a_skill_that_cannot_be_read_makes_no_folder(client: Client, host: Fake) -> None:
    assert client.to(host.url).run("pull", "ann/none", "--as", "skill").status == 3
    assert not (client.work / "none").exists()
