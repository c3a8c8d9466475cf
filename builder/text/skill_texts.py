"""Texts that were written as Agent Skills, which the hub serves as they are. Pure.

The format: https://agentskills.io/specification
"""

from collections.abc import Mapping
from typing import Any

# The keys of the format that are not also metadata of a prompt.
KEYS = frozenset({"name", "allowed-tools", "compatibility", "metadata"})
# The keys of `metadata` in all skills that a hub writes.
_WRITTEN = frozenset({"title", "author", "version"})


def looks_like_skill(front: Mapping[str, Any]) -> bool:
    """True if the front matter has the keys that every skill has."""
    return isinstance(front.get("name"), str) and isinstance(front.get("description"), str)


def is_skill(name: str, front: Mapping[str, Any]) -> bool:
    """True if the front matter has the name of the prompt and a description, as a whole skill does.
    False if it declares variables, which need a section that asks for them. False also if a hub
    wrote it, because its version would be out of date.
    """
    described, metadata = front.get("description"), front.get("metadata")
    has_both = front.get("name") == name and isinstance(described, str) and described.strip()
    is_written = isinstance(metadata, dict) and metadata.keys() >= _WRITTEN
    return bool(has_both) and "variables" not in front and not is_written
