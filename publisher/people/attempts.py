"""Limits on guessing passwords, and on making accounts; counted in this process alone.

Sign-ins are limited by account, against guessers at many addresses, and by address, against those
who try many accounts. Handles that do not exist count alike, so a refusal tells nothing of which
there are. Whoever is locked out by a guesser gets in when the time is over, or by an invitation.
"""

import hashlib
import ipaddress

from builder.throttle import Throttle

WINDOW_MINUTES = 15
ACCOUNT_LIMIT = 10
ADDRESS_LIMIT = 30
SIGNUP_WINDOW_MINUTES = 60
SIGNUP_LIMIT = 10

# Whoever has one IPv6 address has all of its network.
_IPV6_PREFIX_BITS = 64


class Attempts:
    """Counts sign-ins and sign-ups. Limits are so many in a window; 0: no limit."""

    def __init__(
        self, account_limit: int = ACCOUNT_LIMIT, address_limit: int = ADDRESS_LIMIT,
        signup_limit: int = SIGNUP_LIMIT,
    ) -> None:  # fmt: skip
        self._accounts = _throttle(account_limit, WINDOW_MINUTES)
        self._addresses = _throttle(address_limit, WINDOW_MINUTES)
        self._signups = _throttle(signup_limit, SIGNUP_WINDOW_MINUTES)

    def take(self, handle: str, address: str) -> int:
        """Count a sign-in, before the password is looked at, so that those which run at once
        count too. 0: go on; else the whole seconds to wait.
        """
        visitor = network(address)
        # The address first: one that is refused makes no count for an account, so that it cannot
        # fill the memory with handles.
        wait_seconds = self._addresses.hit(visitor) if self._addresses else 0
        if wait_seconds or not self._accounts:
            return wait_seconds
        wait_seconds = self._accounts.hit(_account(handle))
        if wait_seconds and self._addresses:
            self._addresses.give_back(visitor)
        return wait_seconds

    def succeeded(self, handle: str, address: str) -> None:
        """The sign-in that was taken had the right password: it does not count for its address,
        and none so far for its account.
        """
        if self._addresses:
            self._addresses.give_back(network(address))
        if self._accounts:
            self._accounts.forget(_account(handle))

    def take_signup(self, address: str) -> int:
        """Count a sign-up, successful or not. 0: go on; else the whole seconds to wait."""
        return self._signups.hit(network(address)) if self._signups else 0


def network(address: str) -> str:
    """What of an address counts as one visitor: all of it, or of IPv6 its network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # a socket has none
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed), _IPV6_PREFIX_BITS), strict=False))


def _throttle(limit: int, minutes: int) -> Throttle | None:
    return Throttle(limit, "sign-in", minutes) if limit else None


def _account(handle: str) -> str:
    # Whatever is sent is a key of the same length; ways to write the same handle are one.
    plain = handle.strip().lower()
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()
