"""A repo as a publication finds it: the next version depends on this."""

from functools import cached_property

from msgspec import UNSET

from builder.model import names
from builder.model.names import Version
from builder.model.ordinals import next_ordinal
from builder.model.records import VersionFile
from builder.model.request_bodies import Draft
from builder.store import content
from builder.store.restored import number_floor
from builder.store.withdrawn_files import read_parts
from publisher.write import gone
from publisher.write.folders import VersionFolder
from publisher.write.moves import read_kept
from publisher.write.next_version import next_version


class Repo:
    """The state of a repo that a publication depends on. ``withdrawn`` versions are not among
    ``versions``; ``previous`` is the latest version's record and text.

    Raises RequestError ``version_withdrawn`` where the whole repo is withdrawn, ``name_reserved``
    where it is new; ContentError.
    """

    def __init__(self, root: str, owner: str, name: str) -> None:
        self.root, self.owner, self.name = root, owner, name
        self.listing = content.list_versions(root, owner, name)
        gone.check_open(root, owner, name, self.listing)
        self.withdrawn = read_parts(root, f"{owner}/{name}", self.listing.withdrawn).versions
        self.versions = self.listing.versions
        self.previous = (
            content.read_version(root, owner, name, self.versions[-1]) if self.versions else None
        )
        self._added: VersionFolder | None = None
        self.is_new = not self.versions and not self.withdrawn
        if self.is_new:
            names.check_new("prompt", name, "name")
            if content.read_owner(root, owner) is None:
                names.check_new_owner(owner)

    @property
    def latest(self) -> Version | None:
        return self.versions[-1] if self.versions else None

    @cached_property
    def floor(self) -> int:
        """The least number that a raised part of a new version may have."""
        return number_floor(self.root)

    @cached_property
    def next_ordinal(self) -> int:
        """The ordinal of the next version. Reads the records that this process has not kept in
        memory.
        """
        kept = read_kept(self.root, self.owner, self.name, self.listing)
        stored = [one.ordinal or 0 for one in kept]
        stored += [one.remains.ordinal or 0 for one in self.withdrawn]
        return next_ordinal(len(stored), stored, self.floor)

    def folder_of(self, draft: Draft) -> VersionFolder:
        """The text and files of a draft, or its text with the latest version's files if it names
        none. Raises ContentError.
        """
        record = self.previous[0] if self.previous else None
        if draft.files is not UNSET or not record or not record.files:
            return VersionFolder.of(draft)
        data = self._added and [*self._added.files.values()]
        data = data or content.read_files(self.root, self.owner, self.name, self.latest, record)
        return VersionFolder(draft.content, record.files, data)

    def next_version(self, bump: str) -> Version:
        # A withdrawn version's number is never given again.
        taken = self.versions[-1:] + [one.version for one in self.withdrawn]
        count = len(self.versions) + len(self.withdrawn)
        return next_version(max(taken, default=None), count, bump, self.floor)

    def add(self, version: Version, record: VersionFile, text: str, folder: VersionFolder) -> None:
        """Adds a version that has just been stored, without reading the folder again."""
        self._added = folder
        self.versions.append(version)
        self.previous = record, text
        self.next_ordinal = record.ordinal + 1
