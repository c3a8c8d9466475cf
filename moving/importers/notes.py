"""Exports of note applications: Notion's ids in names, and properties under a title. Pure."""

import re

# Notion ends the name of each file and folder with the page's id.
_id = re.compile(r"(?<=\S)[ _-]+[0-9a-f]{32}\b")
_heading = re.compile(r"\s*# [^\n]*\n\s*")
# Notion's "Status: Done", and Dataview's "status:: done" and a line of tags in Obsidian.
_of_notion = re.compile(r"(?:\w[\w /()&-]{0,60}: [^\n]*(?:\n|\Z))+")
_of_obsidian = re.compile(r"(?:(?:\w[\w /-]{0,60}:: ?[^\n]*|(?:#[\w/-]+[ \t]*)+)(?:\n|\Z))+")


def has_id(path: str) -> bool:
    return _id.search(path) is not None


def without_id(name: str) -> str:
    return _id.sub("", name)


def without_properties(body: str, *, is_of_notion: bool) -> str:
    """A body without its title and the properties below it; unchanged if it has none."""
    heading = _heading.match(body)
    start = heading.end() if heading else 0
    properties = (_of_notion if is_of_notion else _of_obsidian).match(body, start)
    return body[properties.end() :] if properties else body
