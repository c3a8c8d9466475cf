"""Limits on guessing passwords, and on making accounts; counted in this process, or by all.

Sign-ins are limited for each visitor at an account, against who guesses; by address, against those
who try many accounts; and by account, against guessers at many addresses, who must be many to shut
its owner out. Handles that do not exist count alike, so a refusal tells nothing of which there are.
A visitor is an IPv4 address, or the /64 of an IPv6 address.
"""

import hashlib

from builder.model.metrics import Counter
from server.throttle import Shared, Throttle, network

FAILED_SIGN_INS = Counter(
    "hub_failed_sign_ins_total",
    "Wrong passwords, tokens and ID tokens of CI jobs, and failed sign-ins with OpenID.",
    way=("password", "token", "ci_job", "openid"),
)

WINDOW_MINUTES = 15
# One visitor at one account; at one account in all, which passwords as long as ours bear; and one
# visitor in all.
VISITOR_LIMIT = 10
ACCOUNT_LIMIT = 100
ADDRESS_LIMIT = 30
SIGNUP_WINDOW_MINUTES = 60
SIGNUP_LIMIT = 10


class Attempts:
    """Counts sign-ins and sign-ups, each limit in a window. ``shared``: see ``Throttle``."""

    def __init__(
        self,
        visitor_limit: int = VISITOR_LIMIT,
        account_limit: int = ACCOUNT_LIMIT,
        address_limit: int = ADDRESS_LIMIT,
        signup_limit: int = SIGNUP_LIMIT,
        *,
        shared: Shared | None = None,
    ) -> None:
        def throttle(what: str, limit: int, minutes: int = WINDOW_MINUTES) -> Throttle:
            return Throttle(limit, "sign-in", minutes, what=what, shared=shared)

        self._visitors = throttle("visitor", visitor_limit)
        self._accounts = throttle("account", account_limit)
        self._addresses = throttle("address", address_limit)
        self._signups = throttle("signup", signup_limit, SIGNUP_WINDOW_MINUTES)

    def take(self, handle: str, address: str) -> int:
        """Count a sign-in, before the password is looked at, so that those which run at once
        count too. 0: go on; else the whole seconds to wait.
        """
        taken = []
        for throttle, client in self._counts(handle, address):
            wait_seconds = throttle.hit(client)
            if wait_seconds:
                # What is refused for one reason does not count for another.
                for earlier, counted in taken:
                    earlier.give_back(counted)
                return wait_seconds
            taken.append((throttle, client))
        return 0

    def succeeded(self, handle: str, address: str) -> None:
        """The sign-in that was taken had the right password: it does not count, and none of this
        visitor so far at the account. What others try there counts on.
        """
        for throttle, client in self._counts(handle, address):
            if throttle is self._visitors:
                throttle.forget(client)
            else:
                throttle.give_back(client)

    def give_back(self, handle: str, address: str) -> None:
        """Do not count the sign-in that was taken: its password was not checked."""
        for throttle, client in self._counts(handle, address):
            throttle.give_back(client)

    def take_signup(self, address: str) -> int:
        """Count a sign-up. 0: go on; else the whole seconds to wait."""
        return self._signups.hit(network(address))

    def signup_failed(self, address: str) -> int:
        """The sign-up that was taken made no account: it counts as a sign-in that failed instead.
        0: another may be tried; else the whole seconds to wait.
        """
        visitor = network(address)
        self._signups.give_back(visitor)
        return self._addresses.hit(visitor)

    def _counts(self, handle: str, address: str) -> list[tuple[Throttle, str]]:
        visitor, account = network(address), _account(handle)
        # The address first: one that is refused makes no count for an account, so that it cannot
        # fill the memory with handles.
        return [
            (self._addresses, visitor),
            (self._visitors, f"{account} {visitor}"),
            (self._accounts, account),
        ]


def _account(handle: str) -> str:
    # Whatever is sent is a key of the same length; ways to write the same handle are one.
    plain = handle.strip().lower()
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()
