"""**The table** of the content tree, the source of truth: each kind of file, its path, its limit,
and whether it changes. No other module spells a path of the content. Pure.

A version exists once its record does: a text or files without a record were left by a crash, and
are no version. A withdrawal takes the place of the version's files. Names that start with a dot,
and other plain files beside the owners' folders, are ignored. Everything else in a wrong place is a
fault: a build fails rather than silently omit a prompt.
"""

import re
from functools import lru_cache

from builder.model import names, version_files
from builder.model.records import CONTENT_BYTES_MAX

FORMAT_FILE, STORE_FILE, PRIVATE_FILE = ".hub-format", ".hub-store", ".hub-private"
HOME_FILE, RESTORED_FILE, OWNER_FILE = "home.md", "restored.json", "owner.json"
LABELS, WITHDRAWN = "labels", "withdrawn"
# A folder of this name in the content is a restore that has not ended.
RESTORING = ".restoring"
# In place of a version, in a withdrawal of the whole repo.
WHOLE = "all"

_GRAMMAR = {
    "version": names.VERSION_PATTERN,
    "number": names.ORDINAL_PATTERN,
    "what": f"{names.VERSION_PATTERN}|{WHOLE}",
    "path": version_files.PATH_PATTERN,
}


class Kind:
    """A row of the table: the ``path`` below the content folder, ``meaning`` in words, and
    ``changes``, False for a file that is written once, and then at most removed.
    """

    def __init__(self, path: str, bytes_max: int, meaning: str, *, changes: bool = False) -> None:
        self.path, self.bytes_max, self.meaning, self.changes = path, bytes_max, meaning, changes
        below = re.sub(r"^\{owner\}/(\{name\}/)?", "", path)
        self._file = re.sub(r"\{\w+\}", "%s", below)
        self._entry = self._file.partition("/")[0]
        self.pattern = re.compile(
            re.sub(r"\\\{(\w+)\\\}", lambda one: f"({_GRAMMAR[one[1]]})", re.escape(below))
        )

    def file(self, *values: object) -> str:
        """The path relative to the folder of its prompt, or else of its owner, or of the hub, such
        as ``labels/1.json``. ``values`` fill the fields that follow the owner and the name.
        """
        return self._file % values

    def entry(self, version: object) -> str:
        """The entry of a repo's folder that is, or for FILE holds, this kind of a version."""
        return self._entry % (version,)


TEXT = Kind("{owner}/{name}/{version}.md", CONTENT_BYTES_MAX, "the bytes as published")
FILE = Kind(
    "{owner}/{name}/{version}.files/{path}", version_files.BYTES_HARD_MAX, "one of its files"
)
RECORD = Kind("{owner}/{name}/{version}.json", 2 << 20, "its record, which makes it exist")
LABEL = Kind(f"{{owner}}/{{name}}/{LABELS}/{{number}}.json", 16 << 10, "a change of a label")
WITHDRAWAL = Kind(
    f"{{owner}}/{{name}}/{WITHDRAWN}/{{what}}.json",
    8 << 20,  # as many versions as a repo can have take 3 MB
    f"a withdrawal, in place of the version; `{WHOLE}`: of all versions",
)
PROFILE = Kind(f"{{owner}}/{OWNER_FILE}", 2 << 20, "the owner's profile", changes=True)
HOME = Kind(HOME_FILE, 16 << 10, "the operator's text on the home page", changes=True)
RESTORED = Kind(RESTORED_FILE, 16 << 10, "the numbers free since a restore", changes=True)
# In format 2, versions have files. Without this file, the format is 1.
FORMAT = Kind(FORMAT_FILE, 20, "the number of this format", changes=True)
PRIVATE = Kind(PRIVATE_FILE, 100, "marks the content of a private hub", changes=True)
STORE = Kind(STORE_FILE, 1024, "marks a copy of a database", changes=True)

VERSION_KINDS = (TEXT, FILE, RECORD)
KINDS = (FORMAT, PRIVATE, STORE, RESTORED, HOME, PROFILE, *VERSION_KINDS, LABEL, WITHDRAWAL)
# The files of the hub itself that every copy of it has.
HUB_FILES = (FORMAT_FILE, HOME_FILE, PRIVATE_FILE, RESTORED_FILE)

_folder_of_files = re.compile(FILE.pattern.pattern.partition("/")[0])


@lru_cache(8 * names.VERSIONS_PER_REPO_MAX)
def in_repo(file: str) -> tuple[Kind, str] | None:
    """The kind of the file or folder with this path below a repo's folder, and the version, number
    or WHOLE in its name. None if no repo has such a file.
    """
    for kind in (*VERSION_KINDS, LABEL, WITHDRAWAL):
        if found := kind.pattern.fullmatch(file):
            return kind, found[1]
    found = _folder_of_files.fullmatch(file)
    return (FILE, found[1]) if found else None
