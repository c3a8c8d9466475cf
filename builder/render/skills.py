"""A version of a prompt as an Agent Skill: its `SKILL.md`, the indexes for installers, the archive
of a plugin and the marketplace that lists it. Pure.

Indexes follow Agent Skills discovery 0.2.0, marketplaces are those of Claude Code.
"""

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from builder.model import answers
from builder.model.envelopes import json_bytes
from builder.model.links import Links
from builder.render.derive import Stored
from builder.text.messages import parse_messages
from builder.text.prompts import parse_document
from builder.text.skill_texts import is_skill
from builder.text.skill_writer import skill_parts, with_front

SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
FILE = "SKILL.md"
# The most skills in an owner's index; an installer downloads all that an index names.
INDEXED_MAX = 50
# Claude Code reserves these names of marketplaces, and refuses others that look like its maker's.
_RESERVED_MARKETPLACES = frozenset(
    "agent-skills builtin financial-services-plugins first-party-plugins healthcare inline"
    " knowledge-work-plugins life-sciences skills-dir synced".split()
)
_MAKERS = ("anthropic", "claude")
# Names of plugins that `claude plugin validate` refuses.
_reserved_plugin = re.compile(
    r"(claude|anthropics?)(-.*)?|cc-plugin-.*|(?=.*official).*(claude|anthropic).*"
)
_DIGEST_DIGITS = 12
_RECORDED = ("title", "description", "tags", "license", "parameters")


# A path, the bytes, and true for an executable.
File = tuple[str, bytes, bool]


class SkillEntry(msgspec.Struct):
    """A skill in an index. ``version`` and ``files`` are for readers of other formats."""

    name: str
    type: Literal["skill-md", "archive"]
    description: str
    url: str
    digest: str
    version: str
    files: list[str]


@dataclass(frozen=True)
class Skill:
    """A version as a skill: the bytes of its `SKILL.md`, its entry in an index, its files."""

    text: bytes
    entry: SkillEntry
    files: Sequence[File]

    @cached_property
    def archive(self) -> bytes:
        """The skill as ZIP: the same bytes from every build. Without files it is also a plugin."""
        return _archive(self.text, self.files)

    @cached_property
    def plugin(self) -> bytes:
        """A plugin with this one skill. Claude Code runs files at some paths of a plugin, such as
        `hooks/hooks.json`, so the skill has a folder of its own.
        """
        if not self.files:
            return self.archive
        return _archive(self.text, self.files, f"skills/{self.entry.name}/")

    @cached_property
    def listed(self) -> bytes:
        """The index of a channel of this version."""
        return index([json_bytes(self.entry)])


def skill_of(stored: Stored, data: Sequence[bytes], links: Links) -> Skill:
    """The skill of a version; ``data`` holds the bytes of its files. The URL in the entry is the
    version's own, whose bytes never change, so an old cached index still has the right digest.
    """
    owner, name, version, about, content, body = stored
    own = _front_matter(content.removesuffix(body))
    record = {field: getattr(about, field) for field in _RECORDED} | {
        "owner": owner,
        "name": name,
        "version": str(version),
        "variables": msgspec.to_builtins(about.variables),
        "is_described": bool(own.get("description")),
        "body": body,
        "messages": msgspec.to_builtins(parse_messages(body)),
    }
    front, body = skill_parts(record, {})
    as_it_is = is_skill(name, own) and own["description"].strip() == front["description"]
    text = (content if as_it_is else with_front(front, body)).encode()
    both = zip(about.files or (), data, strict=True)
    files = [(one.path, raw, one.executable) for one, raw in both]
    at = {"owner": owner, "name": name, "version": version}
    entry = SkillEntry(
        name=name,
        type="archive" if files else "skill-md",
        description=front["description"],
        url=links.file("version_skill_archive" if files else "version_skill", **at),
        digest="",
        version=str(version),
        files=[FILE, *(path for path, _, _ in files)],
    )
    skill = Skill(text, entry, files)
    entry.digest = f"sha256:{_sha256(skill.archive if files else text)}"
    return skill


def _archive(text: bytes, files: Sequence[File], folder: str = "") -> bytes:
    """A ZIP of a skill's text and files, below a folder: the same bytes from every build."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for path, data, executable in [(FILE, text, False), *files]:
            info = zipfile.ZipInfo(folder + path)  # with the format's first time
            info.create_system = 3  # Unix, on every system
            info.external_attr = (0o755 if executable else 0o644) << 16
            file.writestr(info, data)
    return packed.getvalue()


def _front_matter(block: str) -> Mapping[str, Any]:
    """The values of a block of front matter, in any form of YAML; empty without a description."""
    return (parse_document(block).front or {}) if "description" in block else {}


def index(entries: Sequence[bytes]) -> bytes:
    """The index of skills, from the JSON of their entries."""
    schema = json_bytes(SCHEMA)
    return b'{"$schema":' + schema + b',"skills":[' + b",".join(entries) + b"]}"


def remembered(skill: Skill, owner: str, links: Links) -> bytes:
    """The state's copy of a repo's skill, one line each: its entry in an index, its plugin."""
    entry = skill.entry
    at = {"owner": owner, "name": entry.name, "version": entry.version}
    route = "version_plugin" if skill.files else "version_skill_archive"
    url = links.file(route, **at)
    plugin = {
        "name": plugin_name(entry.name),
        "description": entry.description,
        "version": entry.version,
        "source": {"source": "archive", "url": url, "sha256": _sha256(skill.plugin)},
    }
    return json_bytes(entry) + b"\n" + json_bytes(plugin)


def owner_index(rows: Sequence[bytes]) -> bytes:
    """The index of an owner, from what is ``remembered`` of the skills, the most used first."""
    return index([row.split(b"\n")[0] for row in rows[:INDEXED_MAX]])


def marketplace_name(owner: str) -> str:
    """The name of an owner's marketplace in Claude Code: the handle, unless it is refused."""
    if any(maker in owner for maker in _MAKERS):
        return _unlike_the_makers(owner)
    return f"{owner}-prompts" if owner in _RESERVED_MARKETPLACES else owner


def plugin_name(name: str) -> str:
    """The name of a prompt's plugin in Claude Code: the prompt's name, unless it is refused."""
    return _unlike_the_makers(name) if _reserved_plugin.fullmatch(name) else name


def _unlike_the_makers(name: str) -> str:
    return f"prompts-{_sha256(name.encode())[:_DIGEST_DIGITS]}"


def installs_plugins(base_url: str) -> bool:
    """True if Claude Code accepts archives from this address: over https, not from loopback."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    return parts.scheme == "https" and not re.fullmatch(r"(.*\.)?localhost|127\..*|::1", host)


def marketplace(user: answers.User, rows: Sequence[bytes]) -> bytes:
    """The marketplace of an owner, from what is ``remembered`` of the skills, sorted by name."""
    plugins = [msgspec.Raw(plugin) for plugin in sorted(row.split(b"\n")[1] for row in rows)]
    owner = {"name": user.name or user.handle}
    return json_bytes({"name": marketplace_name(user.handle), "owner": owner, "plugins": plugins})


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
