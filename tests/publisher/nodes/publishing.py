"""Publishing through one of several nodes, as tests do it, and what reaches a node when."""

import time
from datetime import datetime

from builder.model.request_bodies import Draft, LabelDraft, WithdrawalDraft
from publisher.nodes.store import Shared
from publisher.write.decision import Terms
from publisher.write.durable import FolderStore
from publisher.write.idempotency import IdempotencyKey
from publisher.write.labels import LabelChange, change_label
from publisher.write.publish import publish
from publisher.write.withdraw import Withdrawn, withdraw
from tests.publisher.nodes.conftest import LONG, Nodes


def put(store: FolderStore, text: str, name: str = "story", owner: str = "ann", **more):
    draft = Draft(content=text, **more.pop("draft", {}))
    return publish(store, owner, name, draft, publisher=owner, terms=Terms(**more))


def label(
    store: FolderStore, version: str, key: IdempotencyKey | None = None,
    now: datetime | None = None, **more,
) -> LabelChange:  # fmt: skip
    draft, terms = LabelDraft(version=version, **more), Terms(idempotency_key=key, now=now)
    return change_label(store, "ann", "story", "live", draft, by="ann", terms=terms)


def take_back(
    store: FolderStore, version: str | None, now: datetime | None = None, **more
) -> Withdrawn:
    draft = WithdrawalDraft(reason="secret", **more)
    return withdraw(store, "ann", "story", version, draft, by="ann", terms=Terms(now=now))


def meet(nodes: Nodes, *stores: Shared) -> None:
    """Wait until nodes have what the database has."""
    ((serial,),) = nodes.execute("SELECT serial FROM hub")
    for store in stores:
        assert store._commits.wait_applied(serial, LONG)


def before_next_group(store: Shared, work) -> None:
    """Do something when this node is about to commit, once."""
    take = store._commits._take

    def take_later(group: list) -> None:
        if group:
            store._commits._take = take
            work()
        take(group)

    store._commits._take = take_later


def stop_reading(store: Shared) -> None:
    """Let nothing reach a node by itself any more."""
    take = store._commits._take

    def take_own(group: list) -> None:
        if group:
            take(group)
        store._commits._poll_at = time.monotonic() + LONG

    store._commits._take = take_own


def key_of(nodes: Nodes, name: str) -> IdempotencyKey:
    return IdempotencyKey(nodes.databases[name], "ann", "key-1", b"f" * 32)
