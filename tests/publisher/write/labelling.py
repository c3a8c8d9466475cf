"""Changes of the labels of one prompt, as tests make and read them."""

import json
from datetime import UTC, datetime
from pathlib import Path

from builder.model.request_bodies import LabelDraft, LabelRemoval
from builder.store.check import check
from builder.store.labels import read_labels
from publisher.write.decision import Terms
from publisher.write.drafts import make_draft, parse_change
from publisher.write.durable import FolderStore
from publisher.write.labels import LabelChange, change_label
from publisher.write.publish import Published, publish

REPO = ("ann", "story")


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def put(root: str, text: str, **fields: object) -> Published:
    draft = make_draft({"content": text} | fields)
    return publish(FolderStore(root), *REPO, draft, publisher="ann", terms=Terms(now=NOON))


def move(root: str, version: str | None, label: str = "production", **options) -> LabelChange:
    """Move a label; a version of None removes it."""
    fields = {key: options.pop(key) for key in ("note", "expected") if key in options}
    raw = json.dumps(fields if version is None else {"version": version} | fields).encode()
    draft = parse_change(LabelRemoval, raw) if version is None else parse_change(LabelDraft, raw)
    return change_label(
        FolderStore(root), *REPO, label, draft, by=options.pop("by", "ann"),
        terms=Terms(**{"now": NOON} | options),
    )  # fmt: skip


def versions(root: str) -> dict[str, str]:
    assert list(check(root)) == []
    return read_labels(root, *REPO).versions()


def history(root: str, label: str = "production") -> list[tuple[str | None, str | None]]:
    """Pairs of the previous and the new version of the label, the newest first."""
    moves = read_labels(root, *REPO).history.get(label, [])
    return [(move.previous, move.version) for move in moves]


def events(root: str) -> list[str]:
    folder = Path(root, *REPO, "labels")
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []
