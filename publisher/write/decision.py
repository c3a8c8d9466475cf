"""One decision about a repo: the answer to a request, and the files that are written for it.

Publications, changes of labels and withdrawals decide different things. The rest is the same for
all of them and is in this module: find the answer of an earlier attempt, keep the answer for
retries, check the quotas, and write.
"""

import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from builder.model import names
from builder.model.errors import RequestError
from builder.model.records import Source
from builder.store import content
from publisher.write.durable import FolderStore
from publisher.write.idempotency import IdempotencyKey, KeptAnswer
from publisher.write.quotas import NO_QUOTAS, QuotaKeeper, Quotas

Answer = TypeVar("Answer")

# Writes to a store; the second argument is ``sync``, as in FolderStore.
Write = Callable[[FolderStore, bool], None]


class Decision(NamedTuple, Generic[Answer]):
    """An answer, and the write that makes it true.

    ``kept``: a retry finds the answer by it; None where requests are not retried. ``write``: None
    where there is nothing to write. ``needs``: what the write adds to what the owner has.
    """

    answer: Answer
    kept: KeptAnswer | None
    write: Write | None
    needs: Quotas = NO_QUOTAS


class Terms(NamedTuple):
    """The terms on which a change is decided and stored.

    ``now``: by default the present. ``sync`` as in FolderStore. A request that is sent again with
    its ``idempotency_key`` gets its first answer. A change that does not fit in ``quotas`` raises
    RequestError ``validation_failed``.

    ``source``: the trusted CI job that makes the change. Only for publications: ``front_matter`` as
    in resolve. ``create_only`` adds no version to a repo that has one, and raises RequestError
    ``not_owner`` instead.
    """

    now: datetime | None = None
    sync: bool = True
    idempotency_key: IdempotencyKey | None = None
    quotas: QuotaKeeper | None = None
    source: Source | None = None
    front_matter: bool = True
    create_only: bool = False


USUAL = Terms()


def decide(
    store: FolderStore,
    owner: str,
    name: str,
    make: Callable[[], Decision[Answer]],
    find_again: Callable[[KeptAnswer], Answer | None] = lambda kept: None,
    terms: Terms = USUAL,
) -> Answer:
    """Makes a decision while holding the only right to write to the repo, and writes what it says.

    ``find_again`` rebuilds the first answer to a repeated request from what was kept. It returns
    None where the content does not have that change: the request died before the commit point.
    Raises what ``make``, the key and the store raise.
    """
    idempotency_key, quotas, sync = terms.idempotency_key, terms.quotas, terms.sync

    def work() -> Answer:
        for kept in store.find_answers(idempotency_key) if idempotency_key else []:
            if done := find_again(kept):
                store.sync_repo(owner, name)
                return done
        decision = make()
        room = contextlib.nullcontext()
        if quotas and any(decision.needs):
            room = quotas.room_for(owner, decision.needs)
        with room:
            if sync and not decision.write:
                store.sync_repo(owner, name)
            if idempotency_key:
                store.keep_answer(idempotency_key, decision.kept, owner, name)
            if decision.write:
                decision.write(store, sync)
        return decision.answer

    return store.decide(owner, name, work)


def check_repo(store: FolderStore, owner: str, name: str, by: str, then: str) -> None:
    """Raises RequestError where a name is invalid, or where the repo does not exist: to lock it
    would create its folder. ``then`` is the advice in that error. Raises OperatorError.
    """
    check_names(store.root, owner, name, by)
    if not store.has_repo(owner, name):
        raise no_repo(owner, name, then)


def check_names(root: str, owner: str, name: str, by: str) -> None:
    """Raises RequestError ``invalid_name``, ``name_reserved``; OperatorError."""
    names.check_owner(owner)
    names.check_repo(name)
    names.check_owner(by)
    content.check_folder(root)


def no_repo(owner: str, name: str, then: str) -> RequestError:
    return RequestError("repo_not_found", f"No prompt {owner}/{name}. {then}")
