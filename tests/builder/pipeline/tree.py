"""A content tree of a state machine: its repos, its files and their faults."""

import json
import tempfile
from pathlib import Path

from hypothesis import assume
from hypothesis.stateful import RuleBasedStateMachine

from builder.model.errors import ContentError, Fault
from publisher.write.moves import read_labels
from tests.support.catalogues import settings_in, write_json


class Tree(RuleBasedStateMachine):
    """A content tree, what builds have seen of it, and the hints for the next build."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="hub-")
        self.settings = settings_in(self.folder)._replace(langfuse=True)
        self.root = Path(self.settings.content)
        self.touched: set[tuple[str, str]] = set()  # repos that changed since the last good build
        self.is_hint_complete = True
        self.seen: list[dict[Path, bytes]] = []  # files of versions, at each build since then
        self.old_trees: list[dict[str, bytes]] = []

    def build(self, hint: set[tuple[str, str]] | None) -> None:
        """Build all that has changed, or what the hint names."""
        raise NotImplementedError

    def repos(self) -> list[tuple[str, str]]:
        return sorted(
            (path.parent.name, path.name)
            for path in self.root.glob("*/*")
            if path.is_dir() and any(path.rglob("*.json"))
        )

    def records(self) -> list[Path]:
        """Those of versions that are not withdrawn."""
        return sorted(
            path
            for owner, name in self.repos()
            for path in (self.root / owner / name).glob("*.json")
            if not (path.parent / "withdrawn" / path.name).exists()
            if not (path.parent / "withdrawn" / "all.json").exists()
        )

    def withdrawals(self) -> list[Path]:
        return sorted(self.root.glob("*/*/withdrawn/*.json"))

    def is_edited(self) -> bool:
        """True if a file that a build has seen now has other bytes; the caller builds."""
        now = {path: path.read_bytes() for path in self.root.glob("*/*/**/*.*") if path.is_file()}
        seen = [item for tree in self.seen for item in tree.items()]
        self.seen.append(now)
        return any(now.get(path, data) != data for path, data in seen)

    def pick(self, things: list, number: int):
        assume(things)
        return things[number % len(things)]

    def pick_file(self, number: int) -> tuple[Path, Path]:
        """A version's record, and this record, its text or one of its files."""
        record = self.pick(self.records(), number)
        below = sorted(record.with_suffix(".files").rglob("*.*"))
        return record, self.pick([record, record.with_suffix(".md"), *below], number)

    def touch(self, owner: str, name: str) -> None:
        self.touched.add((owner, name))
        # A label or a withdrawal that names a removed version is a fault.
        while faults := self.label_faults(owner, name):
            path = self.root / faults[0].path
            if path.parent.name in ("labels", "withdrawn"):
                path.unlink()
            else:
                record = json.loads(path.read_text())
                del record["labels"], record["label_number"]
                write_json(path, record)
        self.remove_repeated_ordinals(self.root / owner / name)

    def remove_repeated_ordinals(self, folder: Path) -> None:
        """A number that two versions store is a fault."""
        taken = set()
        for path in sorted(folder.glob("withdrawn/*.json")) + sorted(folder.glob("*.json")):
            stored = json.loads(path.read_text())
            for one in stored.get("versions", {"": stored}).values():
                if one.get("ordinal") in taken:
                    del one["ordinal"]
                    write_json(path, stored)
                taken |= {one["ordinal"]} if "ordinal" in one else set()

    def label_faults(self, owner: str, name: str) -> list[Fault]:
        try:
            read_labels(str(self.root), owner, name)
        except ContentError as error:
            return [fault for fault in error.faults if "label" in fault.reason]
        return []

    def next_number(self, owner: str, name: str) -> int:
        """One that no change of a label has."""
        folder = self.root / owner / name
        taken = [int(path.stem) for path in folder.glob("labels/*.json")]
        records = [json.loads(path.read_text()) for path in folder.glob("*.json")]
        for path in folder.glob("withdrawn/*.json"):
            stored = json.loads(path.read_text())
            records += [stored["withdrawn"], *stored["versions"].values()]
        taken += [record.get("label_number", 0) for record in records]
        return max(taken, default=0) + 1
