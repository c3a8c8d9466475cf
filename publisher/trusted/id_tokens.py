"""Verifies an ID token: its signature, with the keys of its issuer, its audience and its times.

A token is a JWT (RFC 7519) that an issuer has signed. All of it comes from outside. Before the
signature is checked, its ``iss`` only picks an issuer from the allow list. Messages quote claims,
never the token.

OpenID Connect Discovery 1.0 (https://openid.net/specs/openid-connect-discovery-1_0.html) leads from
an issuer's URL to its keys (JWK, RFC 7517). The hub only contacts issuers that its operator has
named.
"""

import hashlib
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import RSAKey
from joserfc.jws import CompactSignature, JWSRegistry, extract_compact, validate_compact

from builder.model.errors import RequestError
from builder.model.records import format_time
from publisher.log import log_event
from publisher.outside.fetch import FetchError, fetch_json
from publisher.outside.private_way import is_private_way
from publisher.trusted.issuers import Issuer, Job, claimed_text, read_job, refusal, shown

# GitHub and GitLab sign their ID tokens so, and with nothing else.
ALGORITHM = "RS256"
# Shorter RSA keys are refused, because NIST SP 800-131A disallows them.
RSA_BITS_MIN = 2048

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

    def key_for(self, issuer: Issuer, kid: str) -> RSAKey:
        """Returns the key that an issuer calls ``kid``, to check signatures with.

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
        self.keys: dict[str, RSAKey] = {}
        self.fetched_at = self.tried_at = float("-inf")
        self.failure = ""


def _fetch_keys(issuer: Issuer) -> dict[str, RSAKey]:
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


def _parse_key(listed: Any) -> RSAKey | None:
    """Returns a key for ALGORITHM that has a name; None for any other."""
    if not isinstance(listed, dict) or listed.get("kty") != "RSA":
        return None
    kid = listed.get("kid")
    if not isinstance(kid, str) or not kid:
        return None
    if listed.get("use", "sig") != "sig" or listed.get("alg", ALGORITHM) != ALGORITHM:
        return None
    try:
        key = RSAKey.import_key(listed)
    except (JoseError, LookupError, TypeError, ValueError):
        # A token that needs this key gets an error of its own.
        return None
    return key if key.public_key.key_size >= RSA_BITS_MIN else None


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


TOKEN_BYTES_MAX = 16 * 1024
# Clocks may differ by this much; beyond that, a token counts as not yet valid or expired.
LEEWAY_SECONDS = 60
LIFE_SECONDS_MAX = 86_400


class _Registry(JWSRegistry):
    """The rules for the header of a JWS. Only the length of the whole token bounds that of its
    parts.
    """

    max_header_length = max_payload_length = max_signature_length = TOKEN_BYTES_MAX


_registry = _Registry(algorithms=[ALGORITHM], strict_check_header=False)


def verify(
    token: str, issuers: Iterable[Issuer], keys: KeyRing, audience: str, now: datetime | None = None
) -> Job:
    """Returns the job that an ID token was created for. An issuer on the list must have created it
    for ``audience``, the hub's base URL, and it must be valid now.

    Raises RequestError ``invalid_token``, ``token_expired``; ``unavailable`` if the issuer's keys
    are.
    """
    jws, claims = _read(token)
    issuer = _issuer_of(claims, issuers)
    _check_signature(jws, issuer, keys)
    expires_at = _check_times(claims, (now or datetime.now(UTC)).timestamp())
    _check_audience(claims, audience)
    token_id = claimed_text(claims, "jti")
    claimed_text(claims, "sub")
    digest = hashlib.sha256(f"{issuer.url}\n{token_id}".encode()).digest()
    return read_job(issuer, claims, digest, expires_at)


def _read(token: str) -> tuple[CompactSignature, Mapping[str, Any]]:
    """Returns a JWT and its claims, which are not verified yet."""
    if len(token) > TOKEN_BYTES_MAX:
        raise refusal(
            f"The ID token has {len(token):,} bytes, but {TOKEN_BYTES_MAX:,} is the limit. "
            "Send only the JWT of the issuer."
        )
    not_a_jwt = refusal(
        "This is not an ID token: a signed JWT is three parts of base64 with dots between. "
        "Send all of what the issuer returned, without quotes."
    )
    try:
        jws = extract_compact(token.encode(), registry=_registry)
        claims = json.loads(jws.payload)
    except (JoseError, ValueError, RecursionError):
        # Raised without its cause, which may quote the token.
        raise not_a_jwt from None
    header = jws.headers()
    # This hub supports no critical extension (``crit``, RFC 7515 §4.1.11), not even ``b64`` (RFC
    # 7797).
    if not isinstance(header, dict) or not isinstance(claims, dict) or {"crit", "b64"} & {*header}:
        raise not_a_jwt
    return jws, claims


def _issuer_of(claims: Mapping[str, Any], issuers: Iterable[Issuer]) -> Issuer:
    known = {issuer.url: issuer for issuer in issuers}
    came = claims.get("iss")
    if not isinstance(came, str) or came not in known:
        raise refusal(
            f"The ID token's issuer (iss) is {shown(came)}, but this hub trusts only "
            f"{' and '.join(known)}. Publish from there, or ask the operator of this hub to "
            "add the issuer."
        )
    return known[came]


def _check_signature(jws: CompactSignature, issuer: Issuer, keys: KeyRing) -> None:
    algorithm, kid = jws.headers()["alg"], jws.headers().get("kid")
    if algorithm != ALGORITHM:
        raise refusal(
            f"The ID token says that it is signed with {shown(algorithm)}, but must be signed "
            f"with {ALGORITHM}. Send it exactly as the issuer returned it."
        )
    if not isinstance(kid, str):
        raise refusal(
            "The ID token does not say which key signed it (kid). Send it exactly as the "
            "issuer returned it."
        )
    key = keys.key_for(issuer, kid)
    try:
        is_signed = validate_compact(jws, key, registry=_registry)
    except JoseError:
        is_signed = False
    if not is_signed:
        raise refusal(
            f"The ID token is not signed by {issuer.url}: someone else created or changed it. "
            "Send it exactly as the issuer returned it."
        )


def _check_times(claims: Mapping[str, Any], now: float) -> int:
    """Checks that a token is valid at ``now``; returns the second from which on it is not.

    joserfc's own check neither bounds how long a token is valid nor shows the times that it
    compares.
    """
    expires = _time(claims, "exp")
    if expires is None:
        raise refusal(
            "The ID token never expires (no exp), so it was rejected. Get one that expires "
            "with the job."
        )
    if expires > now + LIFE_SECONDS_MAX + LEEWAY_SECONDS:
        raise refusal(
            "The ID token is valid for more than a day, so it was rejected. Get one that "
            "expires (exp) with the job."
        )
    if now >= expires + LEEWAY_SECONDS:
        made = _time(claims, "iat")
        clock = "" if made is None else f"the CI's said {_moment(made)} when it was created (iat), "
        raise RequestError(
            "token_expired",
            f"The ID token expired (exp) at {_moment(expires)}. Get a new one right before you "
            f"exchange it. If it is new, a clock is wrong: {clock}this hub's says "
            f"{_moment(now)}.",
        )
    for name, phrase in (("nbf", "is not valid before"), ("iat", "was created at")):
        since = _time(claims, name)
        if since is not None and since > now + LEEWAY_SECONDS:
            raise refusal(
                f"The ID token {phrase} ({name}) {_moment(since)}, but here it is "
                f"{_moment(now)}. Correct the clock that is wrong, then get a new token."
            )
    return math.ceil(expires) + LEEWAY_SECONDS


def _check_audience(claims: Mapping[str, Any], audience: str) -> None:
    came = claims.get("aud")
    if came not in (audience, [audience]):
        raise refusal(
            f"The ID token is for (aud) {shown(came)}, but this hub is {audience!r}. Ask the "
            "issuer for a token with exactly this audience and no other."
        )


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Returns a claim that is epoch seconds; None if it is missing."""
    if name not in claims:
        return None
    came = claims[name]
    is_number = isinstance(came, int | float) and not isinstance(came, bool)
    # Python's JSON accepts infinity, and numbers of any size.
    if not is_number or not 0 <= came < 1e12:
        raise refusal(
            f"The ID token's {name} is {shown(came)}, but must be seconds since 1970. Get the "
            "token from the issuer of your CI."
        )
    return came


def _moment(seconds: float) -> str:
    # Later times are shown as the last second of the year 9999, the limit of datetime.
    return format_time(datetime.fromtimestamp(min(seconds, 253_402_300_799), UTC))
