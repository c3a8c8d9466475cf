"""Histories as modules of vendors make them, imported and read."""

from typing import Any

from builder.model.answers import Message
from builder.model.records import VersionFile
from builder.model.request_bodies import LabelDraft
from builder.store import content
from moving.importers.items import History, Rejection, Revision
from moving.importers.run import Options, Outcome, import_found
from operate.content_check import check
from publisher.write.decision import Terms
from publisher.write.durable import FolderStore
from publisher.write.labels import change_label
from publisher.write.moves import read_labels

UNCHANGED = Outcome(unchanged=["imported/greeting"])


def revision(text: str | list[Message], **more: Any) -> Revision:
    """A revision as a vendor's module makes it; ``more`` are fields of Revision."""
    where = more.pop("where", f"v{more.get('number', '?')} {str(text)[:9]}")
    return Revision(where, text, more.pop("fields", {}), more.pop("warnings", []), **more)


def history(*revisions: Revision, name: str = "greeting", owner: str = "") -> History:
    return History(f"{name}.json", owner, name, list(revisions))


def texts(*found: str, **more: Any) -> History:
    return history(*(revision(text, number=number) for number, text in enumerate(found, 1)), **more)


def bring(root: str, *found: History | Rejection, **options: Any) -> Outcome:
    outcome = import_found(found, "Vendor", FolderStore(root), Options(**options), lambda *_: None)
    assert not [fault for fault in check(root) if not fault.is_warning]
    return outcome


def versions(root: str, repo: str = "imported/greeting") -> list[tuple[VersionFile, str]]:
    owner, name = repo.split("/")
    listing = content.list_versions(root, owner, name)
    return [content.read_version(root, owner, name, version) for version in listing.versions]


def read_texts(root: str, repo: str = "imported/greeting") -> list[str]:
    return [text for _, text in versions(root, repo)]


def labels_of(root: str) -> dict[str, str]:
    return read_labels(root, "imported", "greeting").versions()


def move_here(root: str, label: str, version: str) -> None:
    draft = LabelDraft(version=version, note="Rolled back")
    change_label(
        FolderStore(root),
        "imported",
        "greeting",
        label,
        draft,
        by="imported",
        terms=Terms(sync=False),
    )


def labelled(*labels: tuple[str, ...]) -> History:
    return history(*(revision(f"{n}", labels=these) for n, these in enumerate(labels)))
