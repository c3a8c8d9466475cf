"""`hub cat --as`: a verified prompt as a file of another format, and what that cannot hold."""

import json
from typing import Any

import msgspec
import pytest

from builder.text.formats import write_as
from builder.text.messages import parse_messages
from tests.client.conftest import TOOLS
from tests.client.fake import Fake
from tests.client.shells import Client, link_tools
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


def expected(site: Site, path: str, format: str) -> tuple[int, bytes, str]:
    if format == "skill":  # which is the site's own
        version = "1.0.0" if "/1.0.0" in path else "2.0.0"
        return 0, site.files[f"ann/review/versions/{version}.skill.md"], ""
    text, losses = write_as(json.loads(site.files[path])["data"], format)
    return 0, text.encode(), "".join(f"{format} cannot hold {loss}\n" for loss in losses)


def test_each_format(either: Client, site: Site, host: Fake) -> None:
    to = either.to(host.url)
    for format in ("skill", "dotprompt", "prompty"):
        done = to.run("cat", "ann/review", "--as", format)
        assert done == expected(site, "ann/review.json", format), format
    assert "cannot hold" in done.err


def test_which_version_and_what_a_format_is_called(client: Client, site: Site, host: Fake) -> None:
    to = client.to(host.url)
    for words, path, format in (
        (("ann/review@1.0.0", "--as", "prompt"), "versions/1.0.0", "dotprompt"),
        (("ann/review@production", "--as", "prompty"), "labels/production", "prompty"),
        (("--as", "SKILL.md", "ann/review", "--version", "2.0.0"), "versions/2.0.0", "skill"),
    ):
        assert to.run("cat", *words) == expected(site, f"ann/review/{path}.json", format), words


def test_it_is_saved_as_pull_saves(client: Client, site: Site, host: Fake) -> None:
    to = client.to(host.url)
    words = ("cat", "ann/review", "--as", "dotprompt", "-o", "review.prompt")
    assert to.run(*words) == (0, b"", "saved ann/review 2.0.0 as review.prompt\n")
    file = client.work / "review.prompt"
    assert file.read_bytes() == expected(site, "ann/review.json", "dotprompt")[1]
    assert "already" in to.run(*words).err
    file.write_text("Mine.")
    assert to.run(*words).status == 1
    assert file.read_text() == "Mine."
    assert to.run(*words, "--force").status == 0
    # Without the server, of the copy.
    site.is_up = False
    assert to.run("cat", "ann/review", "--as", "dotprompt", "--offline").out == file.read_bytes()


def test_what_is_no_record_of_the_text_is_refused(client: Client, site: Site, host: Fake) -> None:
    to = client.to(host.url)
    whole = json.loads(site.files["ann/review.json"])["data"]
    for change in (
        {"content": "Other."}, {"body": "Other."}, {"parameters": []}, {"variables": [{}]},
        {"messages": [{"role": "user"}]},
    ):  # fmt: skip
        # Its length, which `cat` itself reads, is right.
        site.files["ann/review.json"] = compact(whole | change)
        done = to.run("cat", "ann/review", "--as", "prompty", "--no-cache")
        assert (done.status, done.out) == (6, b""), change
    without = {key: value for key, value in whole.items() if key != "messages"}
    site.files["ann/review.json"] = compact(without)
    done = to.run("cat", "ann/review", "--as", "prompty")
    assert (done.status, done.out) == (1, b"") and "is too old to say" in done.err


def test_it_needs_python_and_says_so(client: Client, host: Fake, tmp_path) -> None:
    to = client.having_only(link_tools(tmp_path / "bin", *TOOLS)).to(host.url)
    done = to.run("cat", "ann/review", "--as", "prompty")
    assert (done.status, done.out) == (1, b"") and "`hub cat --as` needs python3" in done.err
    assert not host.requests
    assert to.run("cat", "ann/review", "--as", "skill").status == 0


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
    for words in (("pull", "-o", "SKILL.md"), ("cat", "--as", "skill", "-o", "SKILL.md")):
        assert to.run(*words, "ann/review@1.0.0").status == 0
        assert (client.work / "SKILL.md").read_bytes() != written
        assert to.run("pull", "ann/review", "-o", "SKILL.md").status == 0
    # The published file, under that name.
    assert to.run("cat", "ann/review", "--force", "-o", "SKILL.md").status == 0
    assert (client.work / "SKILL.md").read_bytes() == site.files["ann/review/versions/2.0.0.txt"]
    (client.work / "review/SKILL.md").write_text("mine")
    done = to.run("pull", "ann/review", "--as", "skill")
    assert done.status == 1 and "--force" in done.err
    assert to.run("pull", "ann/review", "--as", "skill", "--force").status == 0
    assert (client.work / "review/SKILL.md").read_bytes() == written


def test_a_skill_that_cannot_be_read_makes_no_folder(client: Client, host: Fake) -> None:
    assert client.to(host.url).run("pull", "ann/none", "--as", "skill").status == 3
    assert not (client.work / "none").exists()
