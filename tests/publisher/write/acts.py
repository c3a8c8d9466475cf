"""Publications, changes of labels and withdrawals, as tests make and read them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.model.errors import RequestError
from builder.model.request_bodies import LabelDraft, LabelRemoval, WithdrawalDraft
from builder.store import content
from operate.content_check import check
from publisher.write.decision import Terms
from publisher.write.drafts import make_change, make_draft, parse_change
from publisher.write.durable import FolderStore
from publisher.write.labels import LabelChange, change_label
from publisher.write.moves import read_labels
from publisher.write.publish import Published, publish
from publisher.write.withdraw import Withdrawn, withdraw

REPO = ("ann", "story")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _terms(options: dict[str, Any]) -> Terms:
    """Takes the terms out of these options; at noon if they do not say when."""
    given = {key: options.pop(key) for key in Terms._fields if key in options}
    return Terms(**{"now": NOON} | given)


def put(root: str | Path, text: str, repo: str = "ann/story", **options: Any) -> Published:
    """Publish a text; ``options`` are terms, and other fields of the draft."""
    owner, name = repo.split("/")
    terms = _terms(options)
    draft = make_draft({"content": text} | options)
    return publish(FolderStore(str(root)), owner, name, draft, publisher=owner, terms=terms)


def move(root: str, version: str | None, label: str = "production", **options: Any) -> LabelChange:
    """Move a label; a version of None removes it."""
    by, terms = options.pop("by", "ann"), _terms(options)
    raw = json.dumps(options if version is None else {"version": version} | options).encode()
    draft = parse_change(LabelRemoval if version is None else LabelDraft, raw)
    return change_label(FolderStore(root), *REPO, label, draft, by=by, terms=terms)


def take_back(root: str, version: str | None = "1.0.1", **options: Any) -> Withdrawn:
    """Withdraw a version, or None: the whole prompt."""
    terms = _terms(options)
    draft = make_change(WithdrawalDraft, {"reason": "secret"} | options)
    return withdraw(FolderStore(root), *REPO, version, draft, by="ann", terms=terms)


def refusal(act: Callable[..., object], *args: Any, **options: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        act(*args, **options)
    return caught.value


def code_of(act: Callable[..., object], *args: Any, **options: Any) -> str:
    return refusal(act, *args, **options).code


def versions_of(root: str | Path, repo: str = "ann/story") -> list[str]:
    return [*map(str, content.list_versions(str(root), *repo.split("/")).versions)]


def texts_of(root: str | Path, repo: str = "ann/story") -> list[str]:
    """The text of each version, read back and checked."""
    at = str(root), *repo.split("/")
    return [content.read_version(*at, one)[1] for one in content.list_versions(*at).versions]


def labels_of(root: str) -> dict[str, str]:
    assert list(check(root)) == []
    return read_labels(root, *REPO).versions()


def history(root: str, label: str = "production") -> list[tuple[str | None, str | None]]:
    """Pairs of the previous and the new version of the label, the newest first."""
    moves = read_labels(root, *REPO).history.get(label, [])
    return [(move.previous, move.version) for move in moves]


def events(root: str) -> list[str]:
    folder = Path(root, *REPO, "labels")
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []
