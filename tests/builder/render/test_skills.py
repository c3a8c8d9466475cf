"""Skills: what does not follow from one catalogue."""

import hashlib
import json
import re
from pathlib import Path

import msgspec
import pytest

from builder.model.answers import User
from builder.model.links import Links
from builder.model.names import Version
from builder.model.records import VersionFile
from builder.pipeline.build import build
from builder.render import skills
from builder.render.derive import Stored
from builder.text.prompts import parse_document
from tests.support.catalogues import settings_in, write_small_catalogue, write_version

LINKS = Links("https://hub.example/base")


def skill(name: str, body: str = "Say so.", front: str = "", description: str = "") -> skills.Skill:
    about = {
        "publisher": "ann", "published_at": "2026-01-01T00:00:00Z", "sha256": "0" * 64,
        "title": name.title(), "description": description,
    }  # fmt: skip
    record = msgspec.convert(about, VersionFile)
    content = f"---\n{front}\n---\n{body}" if front else body
    stored = Stored("ann", name, Version.parse("1.2.0"), record, content, body)
    return skills.skill_of(stored, [], LINKS)


def test_archives_have_the_same_bytes_at_any_time():
    first, again = skill("greet"), skill("greet")
    assert first.archive == again.archive
    assert first.archive != skill("greet", "Say no.").archive
    # The first time that ZIP has, stored, readable for all.
    assert first.archive[8:14] == b"\0\0\0\0!\0"


@pytest.mark.parametrize(
    ("front", "is_described"),
    [
        ("description: Greets.", True), ('"description": Greets.', True),
        ("'description' : 5", True), ("{description: Greets.}", True),
        ("description: >-\n  Greets\n  you.", True), ("? description\n: Greets.", True),
        ("title: Greet", False), ("description:", False), ("description: null", False),
        ("description: ''", False), ("# description: Greets.\ntitle: description", False),
        ("variables:\n- name: who\n  description: Whom to greet", False),
    ],
)  # fmt: skip
def test_a_description_in_front_matter_goes_without_the_title(front: str, is_described: bool):
    made = skill("greet", "description: no\n", front, "Greets.")
    expected = "Greets." if is_described else "Use for: Greet. Greets."
    assert made.entry.description == expected
    assert parse_document(made.text.decode()).front["description"] == expected


@pytest.mark.parametrize(
    ("front", "is_kept"),
    [
        ("name: greet\ndescription: Greets.\nallowed-tools: Read", True),
        ("name: greet\ndescription: >-\n  Greets.\ncompatibility: Linux", True),
        ("name: other\ndescription: Greets.\nallowed-tools: Read", False),
        ("name: greet\ndescription: Published with another one.", False),
        ("name: greet\ndescription: Greets.\nvariables: [who]", False),
        ("name: greet\ndescription: Greets.\nmetadata: {version: 2.0.0}", True),
        ("name: greet\ndescription: Greets.\nmetadata: {title: A, author: b, version: 2.0.0}",
         False),
        ("description: Greets.", False),
    ],
)  # fmt: skip
def test_a_text_that_is_a_skill_already_stays_byte_for_byte(front: str, is_kept: bool):
    body = "Greet {{who}}.\n"
    made = skill("greet", body, front, "Greets.")
    assert (made.text.decode() == f"---\n{front}\n---\n{body}") is is_kept
    assert made.entry.digest == f"sha256:{hashlib.sha256(made.text).hexdigest()}"


def test_addresses_are_absolute_below_the_base_url():
    row = skills.remembered(skill("greet"), "ann", LINKS)
    entry, plugin = map(json.loads, row.split(b"\n"))
    assert entry["url"] == "https://hub.example/base/api/v1/repos/ann/greet/versions/1.2.0.skill.md"
    assert plugin["source"]["url"].startswith("https://hub.example/base/api/v1/repos/ann/greet/")


REFUSED = (
    "claude claude-helper anthropic anthropics anthropic-review anthropics-x cc-plugin-x"
    " official-claude my-claude-official anthropicofficial"
)


def test_no_plugin_has_a_name_that_claude_code_refuses() -> None:
    taken = "review my-claude claudette ask-anthropic cc-plugin official".split()
    assert [*map(skills.plugin_name, taken)] == taken
    names = {*map(skills.plugin_name, REFUSED.split())}
    assert len(names) == len(REFUSED.split())
    assert all(re.fullmatch("prompts-[0-9a-f]{12}", name) for name in names)
    row = skills.remembered(skill("claude-helper"), "ann", LINKS)
    entry, plugin = map(json.loads, row.split(b"\n"))
    assert entry["name"] == "claude-helper" and plugin["name"] in names


@pytest.mark.parametrize(
    ("base_url", "takes"),
    [
        ("https://hub.example/base", True), ("http://hub.example", False),
        ("https://localhost:8443", False), ("https://hub.localhost", False),
        ("https://127.0.0.1", False), ("https://[::1]:8443/hub", False),
    ],
)  # fmt: skip
def test_claude_code_wants_https_and_another_machine(base_url: str, takes: bool) -> None:
    assert skills.installs_plugins(base_url) == takes


@pytest.mark.parametrize("base_url", ["https://hub.example", "http://hub.example"])
def test_pages_show_the_commands_that_work(tmp_path: Path, base_url: str) -> None:
    settings = settings_in(tmp_path)._replace(base_url=base_url)
    write_small_catalogue(settings.content)
    write_version(settings.content, "ann", "claude-review", "1.0.0", "Review it.")
    build(settings, index=False)
    pages = {
        page: (Path(settings.out) / f"{page}.html").read_text()
        for page in ("connect", "ann", "ann/claude-review")
    }
    for page, text in pages.items():
        takes = base_url.startswith("https")
        assert ("claude plugin marketplace add" in text) == takes, page
        assert ("installs plugins only from a public https address" in text) != takes, page
    market = json.loads((Path(settings.out) / "ann/marketplace.json").read_text())
    assert market["plugins"][0]["name"].startswith("prompts-")
    if takes:
        assert f"install {market['plugins'][0]['name']}@ann</pre>" in pages["ann/claude-review"]


def test_the_index_of_an_owner_has_the_first_fifty():
    rows = [skills.remembered(skill(f"p{number}"), "ann", LINKS) for number in range(51)]
    names = [entry["name"] for entry in json.loads(skills.owner_index(rows))["skills"]]
    assert names == [f"p{number}" for number in range(50)]
    user = User("ann", "", "", "", "2026-01-01T00:00:00Z", 51, None, "person", [])
    plugins = json.loads(skills.marketplace(user, rows))["plugins"]
    assert [one["name"] for one in plugins] == sorted(f"p{number}" for number in range(51))


@pytest.mark.parametrize(
    ("handle", "name"),
    [
        ("ann", "ann"), ("agent-skills", "agent-skills-prompts"), ("inline", "inline-prompts"),
        ("claude-plugins-official", "prompts-f6cb1f50b780"),
        ("my-official-claude", "prompts-2a0f7d5bb62d"),
    ],
)  # fmt: skip
def test_no_marketplace_has_a_name_that_claude_code_refuses(handle, name):
    user = User(handle, "", "", "", "2026-01-01T00:00:00Z", 0, None, "person", [])
    made = json.loads(skills.marketplace(user, []))
    assert made["name"] == name
    assert made["owner"] == {"name": handle}
