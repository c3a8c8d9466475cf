"""The places that prompts of the hub came from, by the changelogs of imports.

An import never adds a version to a prompt that came from elsewhere, unless it is asked to.
"""

import hashlib
import re
from typing import NamedTuple

from builder.model.records import VersionFile
from builder.store import content
from builder.text.one_line import one_line
from moving.importers.items import Item

IMPORTED, CHANGED = "Imported from", "Changed in"
_CHARS_MAX = 1_000
# Of a prompt with more versions, only the newest are read.
_VERSIONS_MAX = 100
_by_import = re.compile(f"(?:{IMPORTED}|{CHANGED}) (.+?)(?: by .*)?", re.DOTALL)


class Other(NamedTuple):
    """A repo that came from elsewhere: the oldest record that was read, and the version that has an
    item's text, if there is one.
    """

    first: VersionFile
    same: str


class Origin(NamedTuple):
    """A source: its name in changelogs, and whether it is a folder of files."""

    source: str
    is_folder: bool

    def of(self, where: str) -> str:
        """The source in the changelog of an item. The rows of a table have no lasting place."""
        if not self.is_folder:
            return self.source
        path = f"{self.source}/{where}".encode("utf-8", "replace").decode()
        return one_line(path, _CHARS_MAX)

    def place(self, where: str) -> str:
        """An item for people, such as ``prompts.csv row 83``."""
        is_alone = where == self.source
        return self.of(where) if self.is_folder or is_alone else f"{self.source} {where}"

    def other_at(
        self, root: str, owner: str, name: str, item: Item, changelog: str | None
    ) -> Other | None:
        """The repo of this name, if none of its versions came from the item's place. ``changelog``:
        of this import, if it is not the usual one. Raises HubError.
        """
        sha256 = hashlib.sha256(item.text.encode("utf-8", "surrogatepass")).hexdigest()
        # Before an import named the file, it named the folder.
        places = (self.source, self.of(item.where))
        texts = {f"{how} {one}" for how in (IMPORTED, CHANGED) for one in places}
        record, same = None, ""
        for version in content.list_versions(root, owner, name).versions[: -_VERSIONS_MAX - 1 : -1]:
            record = content.read_record(root, owner, name, version)
            said = record.changelog
            if said in {*texts, changelog} or said.startswith(tuple(f"{one} by " for one in texts)):
                return None
            if record.sha256 == sha256:
                same = same or str(version)
        return Other(record, same) if record else None


def origin_in(changelog: str) -> str:
    """The source that a changelog of an import names; empty for others."""
    found = _by_import.fullmatch(changelog)
    return found[1] if found else ""
