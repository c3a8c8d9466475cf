"""The parts of the publish service, which the API and the pages work on."""

from builder.model.answer_headers import WINDOW_SECONDS
from builder.model.settings import Settings
from builder.pipeline.rebuild import Rebuilder
from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.people.attempts import Attempts
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.invitations import Invitations
from publisher.accounts.people.passwords import Passwords
from publisher.accounts.people.sessions import Sessions
from publisher.accounts.tokens import Accounts
from publisher.limits import Limits
from publisher.openid.provider import SignIn
from publisher.trusted.publishers import TrustedPublishers
from publisher.web.work import Work
from publisher.write.idempotency import KEPT_SECONDS, IdempotencyKey
from publisher.write.quotas import QuotaKeeper
from publisher.write.store_protocol import Store
from server.throttle import Throttle


class Service:
    """The stores of publications and accounts, and the counters of their limits.

    ``quotas`` and ``publications`` are the limits of owners; ``publications`` is None without one.
    """

    def __init__(
        self,
        settings: Settings,
        rebuilder: Rebuilder,
        database: Database,
        store: Store,
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
        self.publications = (
            Throttle(limits.publications, "publish") if limits.publications else None
        )
        self.work = Work()
        self.accounts = Accounts(database)
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
