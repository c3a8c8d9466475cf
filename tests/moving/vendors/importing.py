"""Imports what a vendor's API has, as the command does."""

from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from builder.store import content
from moving.importers.items import Document, History, Rejection
from moving.importers.run import Options, Outcome, import_found
from moving.vendors.api import ask
from moving.vendors.documents import read_export
from operate.content_check import check
from publisher.write.durable import FolderStore
from publisher.write.moves import read_labels


def read(module: ModuleType, *values: Any) -> list[History | Rejection]:
    """The histories that a vendor's module reads from these entries of an export."""
    entries = (Document(f"entry {number}", value) for number, value in enumerate(values, 1))
    return list(module.read_histories(entries))


def read_api(module: ModuleType, url: str, keys: dict[str, str]) -> list[History | Rejection]:
    """The histories of an API."""
    documents = ask(module, url, lambda *_: None, keys, pause=lambda seconds: None)
    return list(read_export(module, documents))


def by_name(found: list[History | Rejection]) -> dict[str, History]:
    """Histories in which nothing is wrong."""
    assert not [one for one in found if isinstance(one, Rejection)]
    return {one.name: one for one in found}


def check_types(found: list[History | Rejection]) -> None:
    """Fails where a history has what no record could hold."""
    for one in found:
        if isinstance(one, History):
            assert isinstance(one.name, str) and isinstance(one.owner, str)
            for revision in one.revisions:
                assert isinstance(revision.changelog, str)
                assert all(isinstance(label, str) for label in revision.labels)


class Importing(NamedTuple):
    """Imports from the API at ``url`` into a hub below ``folder``, for the owner ada."""

    module: ModuleType
    url: str
    folder: Path
    keys: dict[str, str]

    def __call__(self) -> Outcome:
        root = self.folder / "content"
        root.mkdir(exist_ok=True)
        found = read_api(self.module, self.url, self.keys)
        outcome = import_found(
            found, self.module.TITLE, FolderStore(str(root)), Options(owner="ada"), lambda *_: None
        )
        assert all(fault.is_warning for fault in check(str(root)))
        return outcome

    def read(self, name: str) -> list[str]:
        """The texts of a prompt's versions."""
        root = str(self.folder / "content")
        versions = content.list_versions(root, "ada", name).versions
        return [content.read_version(root, "ada", name, version)[1] for version in versions]

    def read_labels(self, name: str) -> dict[str, str]:
        """The version that each label names."""
        return read_labels(str(self.folder / "content"), "ada", name).versions()
