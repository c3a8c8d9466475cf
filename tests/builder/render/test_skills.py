"""Skills: what does not follow from one catalogue."""

import json

import msgspec
import pytest

from builder.model.links import Links
from builder.model.names import Version
from builder.model.records import User, VersionFile
from builder.render import skills
from builder.render.derive import Stored
from builder.text.prompts import parse_document

LINKS = Links("https://hub.example/base")


def skill(name: str, body: str = "Say so.") -> skills.Skill:
    about = {
        "publisher": "ann", "published_at": "2026-01-01T00:00:00Z", "sha256": "0" * 64,
        "title": name.title(), "description": "",
    }  # fmt: skip
    record = msgspec.convert(about, VersionFile)
    return skills.skill_of(Stored("ann", name, Version.parse("1.2.0"), record, body, body), LINKS)


def test_archives_have_the_same_bytes_at_any_time():
    first, again = skill("greet"), skill("greet")
    assert first.archive == again.archive
    assert first.archive != skill("greet", "Say no.").archive
    # The first time that ZIP has, stored, readable for all.
    assert first.archive[8:14] == b"\0\0\0\0!\0"


@pytest.mark.parametrize(
    ("front", "is_described"),
    [
        ("description: Greets.", True),
        ('"description": Greets.', True),
        ("'description' : 5", True),
        ("{description: Greets.}", True),
        ("description: >-\n  Greets\n  you.", True),
        ("? description\n: Greets.", True),
        ("title: Greet", False),
        ("description:", False),
        ("description: null", False),
        ("description: ''", False),
        ("# description: Greets.\ntitle: description", False),
        ("variables:\n- name: who\n  description: Whom to greet", False),
    ],
)
def test_a_description_in_front_matter_goes_without_the_title(front: str, is_described: bool):
    body = "description: no\n"
    about = {
        "publisher": "ann", "published_at": "2026-01-01T00:00:00Z", "sha256": "0" * 64,
        "title": "Greet", "description": "Greets.",
    }  # fmt: skip
    record = msgspec.convert(about, VersionFile)
    version, content = Version.parse("1.2.0"), f"---\n{front}\n---\n{body}"
    made = skills.skill_of(Stored("ann", "greet", version, record, content, body), LINKS)
    expected = "Greets." if is_described else "Use for: Greet. Greets."
    assert made.entry.description == expected
    assert parse_document(made.text.decode()).front["description"] == expected


def test_addresses_are_absolute_below_the_base_url():
    row = skills.remembered(skill("greet"), "ann", LINKS)
    entry, plugin = map(json.loads, row.split(b"\n"))
    assert entry["url"] == "https://hub.example/base/ann/greet/1.2.0/SKILL.md"
    assert plugin["source"]["url"].startswith("https://hub.example/base/api/v1/repos/ann/greet/")


def test_the_index_of_an_owner_has_the_first_fifty():
    rows = [skills.remembered(skill(f"p{number}"), "ann", LINKS) for number in range(51)]
    names = [entry["name"] for entry in json.loads(skills.owner_index(rows))["skills"]]
    assert names == [f"p{number}" for number in range(50)]
    user = User("ann", "", "", "", "2026-01-01T00:00:00Z", 51, None, [])
    plugins = json.loads(skills.marketplace(user, rows))["plugins"]
    assert [one["name"] for one in plugins] == sorted(f"p{number}" for number in range(51))


@pytest.mark.parametrize(
    ("handle", "name"),
    [
        ("ann", "ann"),
        ("agent-skills", "agent-skills-prompts"),
        ("inline", "inline-prompts"),
        ("claude-plugins-official", "prompts-f6cb1f50b780"),
        ("my-official-claude", "prompts-2a0f7d5bb62d"),
    ],
)
def test_no_marketplace_has_a_name_that_claude_code_refuses(handle, name):
    user = User(handle, "", "", "", "2026-01-01T00:00:00Z", 0, None, [])
    made = json.loads(skills.marketplace(user, []))
    assert made["name"] == name
    assert made["owner"] == {"name": handle}
