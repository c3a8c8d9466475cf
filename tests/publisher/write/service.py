"""The service as the state machine uses it: its requests, and what it has stored."""

import json
from datetime import datetime
from typing import Any

from builder.model.errors import RequestError
from builder.model.request_bodies import LabelDraft, LabelRemoval
from builder.model.settings import Settings
from builder.store import content
from publisher.accounts.database import Database
from publisher.write.decision import Terms
from publisher.write.drafts import parse_change, parse_draft
from publisher.write.durable import FolderStore
from publisher.write.idempotency import IdempotencyKey, fingerprint
from publisher.write.labels import LabelChange, change_label
from publisher.write.moves import read_labels
from publisher.write.publish import Published, publish
from tests.publisher.write.model import Moved, Request
from tests.publisher.write.readers import Repo, Stored


class Service:
    """Handles requests on one content folder, and reads the folder back."""

    settings: Settings
    database: Database

    def send(self, request: Request, now: datetime) -> Published | str:
        """Handle a request as the service does; returns its answer, or the code of its refusal."""
        owner, name = request.repo
        key = None
        if request.key:
            mark = fingerprint(owner, name, None, body=request.body)
            key = IdempotencyKey(self.database, owner, request.key, mark)
        draft, terms = parse_draft(request.body), Terms(idempotency_key=key, now=now)
        store = FolderStore(self.settings.content)
        try:
            return publish(store, owner, name, draft, publisher=owner, terms=terms)
        except RequestError as error:
            return error.code

    def send_move(
        self, repo: Repo, move: Moved, base: str | None, now: datetime
    ) -> LabelChange | str:
        fields: dict[str, Any] = {"note": move.note}
        if base == "right" and move.previous:
            fields["expected"] = move.previous
        elif base:
            fields["expected"] = "7.0.0"
        if move.version is None:
            draft = parse_change(LabelRemoval, json.dumps(fields).encode())
        else:
            draft = parse_change(
                LabelDraft, json.dumps(fields | {"version": move.version}).encode()
            )
        store, terms = FolderStore(self.settings.content), Terms(now=now)
        try:
            return change_label(store, *repo, move.label, draft, by=repo[0], terms=terms)
        except RequestError as error:
            return error.code

    def read_content(self, repo: Repo) -> list[Stored]:
        """The stored versions of a repo, as the reader of the content returns them."""
        root = self.settings.content
        stored = []
        for version in content.list_versions(root, *repo).versions:
            record, text = content.read_version(root, *repo, version)
            fields = (record.title, record.tags, record.changelog, record.published_at)
            stored.append(Stored(str(version), text, *fields))
        return stored

    def read_ordinals(self, repo: Repo) -> list[int]:
        """The stored numbers of a repo's versions, in order of version."""
        root = self.settings.content
        found = content.list_versions(root, *repo).versions
        return [content.read_record(root, *repo, version).ordinal for version in found]

    def read_moves(self, repo: Repo) -> dict[str, list[Moved]]:
        """The moves of each label that are stored, in order."""
        history = read_labels(self.settings.content, *repo).history
        return {
            label: [
                Moved(label, move.version, move.previous, move.note)
                for move in reversed(history.get(label, []))
            ]
            for label in ("production", "canary")
        }
