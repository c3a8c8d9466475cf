"""The service: stores, accounts and limits, and notes of what changes in them."""

import logging
from collections.abc import Callable
from functools import partial

from flask import Response, after_this_request, g, request

from builder.model.errors import RequestError
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from publisher.accounts.database import Database
from publisher.accounts.events import Events, written_by
from publisher.accounts.people.attempts import Attempts
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.rights import Rights
from publisher.accounts.teams import Actor, Teams
from publisher.accounts.tokens import Accounts
from publisher.limits import Limits
from publisher.log import log_event
from publisher.openid.provider import SignIn
from publisher.service.work import Work
from publisher.trusted.publishers import TrustedPublishers
from publisher.write.durable import FolderStore
from publisher.write.idempotency import KEPT_SECONDS, IdempotencyKey
from publisher.write.labels import LabelChange
from publisher.write.publish import Published
from publisher.write.quotas import QuotaKeeper
from publisher.write.withdraw import Withdrawn
from server.answer_headers import WINDOW_SECONDS
from server.throttle import Throttle

log = logging.getLogger("hub.publish")

# The names of changes in the log of the service.
_LOGGED = {"published": "publish", "label_moved": "label", "withdrawn": "withdraw"}


class Service:
    """The stores of publications and accounts, and the counters of their limits.

    ``quotas`` and ``publications`` are the limits of owners.
    """

    def __init__(
        self,
        settings: Settings,
        rebuilder: Rebuilder,
        database: Database,
        store: FolderStore,
        limits: Limits,
        sign_in: SignIn,
    ) -> None:
        self.settings = settings
        self.rebuilder = rebuilder
        self.database = database
        self.store = store
        self.limits = limits
        self.sign_in = sign_in
        self.quotas = QuotaKeeper(settings.content, limits.quotas)
        self.publications = Throttle(limits.publications, "publish")
        self.work = Work()
        self.accounts = Accounts(database)
        self.rights = Rights(database)
        self.teams = Teams(database)
        self.events = Events(database)
        self.sessions = Sessions(database)
        self.passwords = Passwords(database)
        self.invitations = Invitations(database)
        self.identities = Identities(database)
        self.trusted = TrustedPublishers(database)
        self.issuers = {issuer.url: issuer for issuer in sign_in.issuers}
        self.attempts = Attempts()

    def idempotency_key(self, sender: str, key: str, mark: bytes) -> IdempotencyKey:
        """Returns the key of a publication. Keys are limited for one window more than the time for
        which answers are kept, because that time may begin within a window.
        """
        kept_max = self.limits.publications * (KEPT_SECONDS // WINDOW_SECONDS + 1)
        return IdempotencyKey(self.database, sender, key, mark, kept_max)

    # Changes, in the log of the service and in the activity of their owner

    def note_change(
        self, actor: Actor, kind: str, done: Published | LabelChange | Withdrawn
    ) -> None:
        """Notes a publication with the labels that moved, a change of a label, or a withdrawal."""
        g.event = _LOGGED[kind]
        g.fields |= {"owner": done.owner, "repo": done.name, "version": done.version}
        g.fields |= {"unchanged": done.unchanged, "by": actor.name, "how": actor.how}
        if isinstance(done, LabelChange):
            g.fields["label"] = done.label
        if done.unchanged:
            return
        repo, address = f"{done.owner}/{done.name}", request.remote_addr or ""
        note = f"{done.what} {actor.how}"

        def write() -> None:
            with written_by(actor.name, address):
                self.events.note(done.owner, kind, subject=repo, note=note)

        after_this_request(partial(_after_answer, write))

    def note_members(self, team: str, by: str, person: str, role: str) -> None:
        """Names a change of members in the log; ``Teams`` notes it in the activity. An empty
        ``role``: the person has left.
        """
        g.event = "member"
        g.fields |= {"owner": team, "by": by, "person": person, "role": role or None}


def _after_answer(write: Callable[[], None], response: Response) -> Response:
    """Writes to an activity once the answer is sent, as its client need not wait for that."""

    def close() -> None:
        try:
            write()
        except RequestError as error:
            log_event(log, logging.ERROR, "activity", error)

    response.call_on_close(close)
    return response
