"""Limits on guesses of passwords and on new accounts, counted in this process or by all.

Sign-ins have three limits. The one for each visitor at an account stops a guesser. The one for each
address stops a visitor who tries many accounts; it is wide at an address where several people have
signed in. The one for each account stops guessers at many addresses; only very many of them can
lock out its owner. Handles that do not exist count alike, so a refusal does not reveal which ones
exist. A visitor is an IPv4 address, or the /64 of an IPv6 address.
"""

import hashlib
import threading

from cachetools import LRUCache

from builder.model.metrics import Counter
from server.throttle import Throttle, network

FAILED_SIGN_INS = Counter(
    "hub_failed_sign_ins_total",
    "Wrong passwords, tokens and ID tokens of CI jobs, and failed sign-ins with OpenID.",
    way=("password", "token", "ci_job", "openid"),
)

WINDOW_MINUTES = 15
# Sign-ins of one visitor at one account; of all visitors at one account, which a strong password
# withstands; and of one visitor at all accounts. Beyond that, the visitor has to wait.
VISITOR_LIMIT = 10
ACCOUNT_LIMIT = 100
ADDRESS_LIMIT = 30
# Of a visitor at whose address this many people have signed in well: colleagues who share it.
SHARED_LIMIT = 300
SHARED_PEOPLE = 2
# The addresses that are remembered for that; a restart forgets them.
SHARED_MAX = 10_000
SIGNUP_WINDOW_MINUTES = 60
SIGNUP_LIMIT = 10


class Attempts:
    """Counts sign-ins and sign-ups, each limit in a window."""

    def __init__(self) -> None:
        self._visitors = Throttle(VISITOR_LIMIT, "sign-in", WINDOW_MINUTES)
        self._accounts = Throttle(ACCOUNT_LIMIT, "sign-in", WINDOW_MINUTES)
        self._addresses = Throttle(ADDRESS_LIMIT, "sign-in", WINDOW_MINUTES)
        self._signups = Throttle(SIGNUP_LIMIT, "sign-in", SIGNUP_WINDOW_MINUTES)
        self._shared = Throttle(SHARED_LIMIT, "sign-in", WINDOW_MINUTES)
        self._people: LRUCache[str, frozenset[str]] = LRUCache(SHARED_MAX)
        self._turn = threading.Lock()

    def take(self, handle: str, address: str) -> int:
        """Counts a sign-in, before the password is checked, so that concurrent ones count too.
        Returns 0, or the whole seconds to wait.
        """
        taken = []
        for throttle, client in self._counts(handle, address):
            wait_seconds = throttle.hit(client)
            if wait_seconds:
                # A sign-in that one limit refuses does not count for the others.
                for earlier, counted in taken:
                    earlier.give_back(counted)
                return wait_seconds
            taken.append((throttle, client))
        return 0

    def is_shared(self, address: str) -> bool:
        """True if several people have signed in at this address, such as that of an office."""
        with self._turn:
            return len(self._people.get(network(address), ())) >= SHARED_PEOPLE

    def note_person(self, handle: str, address: str) -> None:
        """Notes that a person has signed in well at an address, in any way."""
        visitor = network(address)
        with self._turn:
            known = self._people.get(visitor, frozenset())
            if len(known) < SHARED_PEOPLE:
                self._people[visitor] = known | {handle}

    def succeeded(self, handle: str, address: str) -> None:
        """Takes back a sign-in with the right password, and all of this visitor's at the account.
        The sign-ins of others there still count.
        """
        for throttle, client in self._counts(handle, address):
            if throttle is self._visitors:
                throttle.forget(client)
            else:
                throttle.give_back(client)

    def give_back(self, handle: str, address: str) -> None:
        """Takes back a sign-in whose password was not checked."""
        for throttle, client in self._counts(handle, address):
            throttle.give_back(client)

    def take_signup(self, address: str) -> int:
        """Counts a sign-up. Returns 0, or the whole seconds to wait."""
        return self._signups.hit(network(address))

    def signup_failed(self, address: str) -> int:
        """Takes back a sign-up that created no account, and counts a failed sign-in of the address
        instead. Returns 0 if another may be tried, else the whole seconds to wait.
        """
        visitor = network(address)
        self._signups.give_back(visitor)
        return self._throttle_of(address).hit(visitor)

    def _throttle_of(self, address: str) -> Throttle:
        return self._shared if self.is_shared(address) else self._addresses

    def _counts(self, handle: str, address: str) -> list[tuple[Throttle, str]]:
        visitor, account = network(address), _account(handle)
        # The address first: a refused address adds no count for an account, so it cannot fill the
        # memory with handles.
        return [
            (self._throttle_of(address), visitor),
            (self._visitors, f"{account} {visitor}"),
            (self._accounts, account),
        ]


def _account(handle: str) -> str:
    # A hash, so that any text gives a key of the same length. Different spellings of a handle give
    # one key.
    plain = handle.strip().lower()
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()
