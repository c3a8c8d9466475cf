"""The public keys of issuers, which sign what they say of CI jobs.

OpenID Connect Discovery 1.0 leads from an issuer's URL to its keys (JWK, RFC 7517). Only issuers
that whoever runs the hub has named are ever asked.
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

# Never those with a shared secret (HS256 …), and never "none". The first that fits a key is the
# usual one for its type.
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

# Keys are good this long, and this long if the issuer cannot be asked for newer ones.
FRESH_SECONDS = 3600
USABLE_SECONDS = 86_400
# An issuer is asked at most this often, whatever strangers put into their tokens.
PAUSE_SECONDS = 30
# Whoever needs a key that another thread is asking for holds a thread, too.
WAIT_SECONDS = 1

log = logging.getLogger("hub.trusted")


class KeyRing:
    """The public keys of issuers, fetched when they are needed and kept in memory. Thread-safe.

    ``clock`` gives seconds that never go back. ``before_asking`` is called before somebody waits
    for an issuer, who is made to wait no more by what it raises.
    """

    def __init__(
        self,
        issuers: Iterable[Issuer],
        clock: Callable[[], float] = time.monotonic,
        before_asking: Callable[[], None] = lambda: None,
    ) -> None:
        self._kept = {issuer: _Kept() for issuer in issuers}
        self._clock = clock
        self._before_asking = before_asking

    def key_for(self, issuer: Issuer, kid: str) -> Key:
        """The key that an issuer calls ``kid``, to check signatures with.

        Its ``alg`` is the one it states, else the usual one for its type; it is one of
        ALGORITHMS. Raises RequestError ``invalid_token`` if the issuer has no such key;
        ``unavailable`` if it cannot be asked, or another thread waits for its answer.
        """
        kept = self._kept[issuer]
        key = kept.keys.get(kid)
        age = self._age(kept)
        if key is None or age >= FRESH_SECONDS:
            # Whoever has a key that will do goes on with it while another thread asks.
            is_enough = key is not None and age < USABLE_SECONDS
            if not is_enough:
                self._before_asking()
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
        """Ask the issuer, unless it was asked just now, by another thread maybe."""
        now = self._clock()
        if now - kept.asked_at < PAUSE_SECONDS:
            return
        kept.asked_at = now
        try:
            kept.keys, kept.fetched_at, kept.failure = _fetch_keys(issuer), now, ""
        except RequestError as error:
            kept.failure = str(error)
            log_event(log, logging.WARNING, "issuer", error, issuer=issuer.url)


class _Kept:
    """What is known of one issuer. Times are the clock's; ``failure`` is how the last fetch
    failed, or empty. ``turn`` is held by the thread that fetches.
    """

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.keys: dict[str, Key] = {}
        self.fetched_at = self.asked_at = float("-inf")
        self.failure = ""


def _fetch_keys(issuer: Issuer) -> dict[str, Key]:
    """The issuer's keys by name. Raises RequestError ``unavailable``."""
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
    """A key for signatures, of a kind that is known here, with a name; None for any other."""
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
        # Issuers add kinds of keys before they use them; a token that needs this one is told so.
        return None


def _fetch(issuer: Issuer, url: str) -> dict[str, Any]:
    """A document of JSON. Raises RequestError ``unavailable``."""
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
