"""The public keys of issuers, which verify the ID tokens of CI jobs.

OpenID Connect Discovery 1.0 (https://openid.net/specs/openid-connect-discovery-1_0.html) leads from
an issuer's URL to its keys (JWK, RFC 7517). The hub only contacts issuers that its operator has
named.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import Key, import_key
from joserfc.jws import JWSRegistry

from builder.model.errors import RequestError
from publisher.log import log_event
from publisher.outside.fetch import FetchError, fetch_json
from publisher.outside.private_way import is_private_way
from publisher.trusted.issuers import Issuer

# Never the algorithms with a shared secret (HS256 …), and never "none" (RFC 8725 §3.2). The first
# that fits a key is the usual one for its type.
ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)

# Keys are fetched again after FRESH_SECONDS. If the issuer cannot be reached, they are used until
# USABLE_SECONDS have passed. Then its tokens are refused.
FRESH_SECONDS = 3600
USABLE_SECONDS = 86_400
# An issuer is contacted at most this often, whatever clients put into their tokens.
PAUSE_SECONDS = 30
# A request waits at most this long for keys that another thread fetches, because it holds a thread
# itself. Then it fails with ``unavailable``.
WAIT_SECONDS = 1

log = logging.getLogger("hub.trusted")


class KeyRing:
    """The public keys of issuers, fetched when they are needed and kept in memory. Thread-safe.

    ``clock`` gives seconds that never go back. ``before_fetching`` is called before a request waits
    for an issuer; an error that it raises ends the request instead.
    """

    def __init__(
        self,
        issuers: Iterable[Issuer],
        clock: Callable[[], float] = time.monotonic,
        before_fetching: Callable[[], None] = lambda: None,
    ) -> None:
        self._kept = {issuer: _Kept() for issuer in issuers}
        self._clock = clock
        self._before_fetching = before_fetching

    def key_for(self, issuer: Issuer, kid: str) -> Key:
        """Returns the key that an issuer calls ``kid``, to check signatures with.

        Its ``alg`` is the one it states, else the usual one for its type; it is one of ALGORITHMS.
        Raises RequestError ``invalid_token`` if the issuer has no such key; ``unavailable`` if it
        cannot be reached, or another thread waits for its answer.
        """
        kept = self._kept[issuer]
        key = kept.keys.get(kid)
        age = self._age(kept)
        if key is None or age >= FRESH_SECONDS:
            # A request with a usable key continues with it while another thread fetches new ones.
            is_enough = key is not None and age < USABLE_SECONDS
            if not is_enough:
                self._before_fetching()
            if kept.turn.acquire(timeout=0 if is_enough else WAIT_SECONDS):
                try:
                    self._renew(issuer, kept)
                finally:
                    kept.turn.release()
            elif not is_enough:
                raise _unavailable(issuer, "it has not answered yet")
            key = kept.keys.get(kid)
            age = self._age(kept)
        if key is not None and age < USABLE_SECONDS:
            return key
        if kept.failure or age >= FRESH_SECONDS:
            raise RequestError("unavailable", kept.failure or _unreachable(issuer, "no answer"))
        raise RequestError(
            "invalid_token",
            f"The ID token is signed with the key {kid[:100]!r}, which {issuer.url} does not "
            "publish. Get a new ID token. If the issuer has new keys, this hub knows them "
            f"within {PAUSE_SECONDS} seconds.",
        )

    def _age(self, kept: "_Kept") -> float:
        return self._clock() - kept.fetched_at

    def _renew(self, issuer: Issuer, kept: "_Kept") -> None:
        """Fetches the issuer's keys, unless this or another thread has just tried."""
        now = self._clock()
        if now - kept.tried_at < PAUSE_SECONDS:
            return
        kept.tried_at = now
        try:
            kept.keys, kept.fetched_at, kept.failure = _fetch_keys(issuer), now, ""
        except RequestError as error:
            kept.failure = str(error)
            log_event(log, logging.WARNING, "issuer", error, issuer=issuer.url)


class _Kept:
    """The state of one issuer. Times are the clock's. ``failure`` describes why the last fetch
    failed, or is empty. ``turn`` is held by the thread that fetches.
    """

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.keys: dict[str, Key] = {}
        self.fetched_at = self.tried_at = float("-inf")
        self.failure = ""


def _fetch_keys(issuer: Issuer) -> dict[str, Key]:
    """Returns the issuer's keys by name. Raises RequestError ``unavailable``."""
    discovery = _fetch(issuer, f"{issuer.url}/.well-known/openid-configuration")
    if discovery.get("issuer") != issuer.url:
        raise _unavailable(issuer, "its discovery document belongs to another issuer")
    keys_url = discovery.get("jwks_uri")
    if not is_private_way(keys_url):
        raise _unavailable(issuer, "its discovery document has no jwks_uri with https")
    listed = _fetch(issuer, keys_url).get("keys")
    found = [_parse_key(one) for one in listed] if isinstance(listed, list) else []
    keys = {key.kid: key for key in found if key is not None}
    if not keys:
        raise _unavailable(issuer, "it publishes no usable key")
    return keys


def _parse_key(listed: Any) -> Key | None:
    """Returns a key for signatures, of a known type and with a name; None for any other."""
    if not isinstance(listed, dict) or listed.get("use", "sig") != "sig":
        return None
    if listed.get("kty") == "oct":
        return None  # a shared secret
    kid = listed.get("kid")
    if not isinstance(kid, str) or not kid:
        return None
    try:
        fitting = JWSRegistry.filter_algorithms(import_key(listed), ALGORITHMS)
        return import_key(listed, parameters={"alg": fitting[0].name}) if fitting else None
    except (JoseError, LookupError, TypeError, ValueError):
        # Issuers add types of keys before they use them. A token that needs this key gets an error
        # of its own.
        return None


def _fetch(issuer: Issuer, url: str) -> dict[str, Any]:
    """Returns a JSON document. Raises RequestError ``unavailable``."""
    try:
        return fetch_json(url)
    except FetchError as error:
        raise _unavailable(issuer, str(error)) from error


def _unavailable(issuer: Issuer, reason: str) -> RequestError:
    return RequestError("unavailable", _unreachable(issuer, reason))


def _unreachable(issuer: Issuer, reason: str) -> str:
    return (
        f"The keys of {issuer.url} are unavailable: {reason}. Run the job again later. The "
        "operator of this hub can check that it reaches that address."
    )
