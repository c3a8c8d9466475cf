"""Verifies an ID token: its signature, its audience and its times.

A token is a JWT (RFC 7519) that an issuer has signed. All of it comes from outside. Before the
signature is checked, its ``iss`` only picks an issuer from the allow list. Messages quote claims,
never the token.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import RSAKey
from joserfc.jws import CompactSignature, JWSRegistry, extract_compact, validate_compact

from builder.model.errors import RequestError
from builder.model.records import format_time
from publisher.trusted.claims import Job, claimed_text, read_job, refusal, shown
from publisher.trusted.issuers import Issuer
from publisher.trusted.keys import ALGORITHMS, KeyRing

TOKEN_BYTES_MAX = 16 * 1024
# Shorter RSA keys are refused, because NIST SP 800-131A disallows them.
RSA_BITS_MIN = 2048
# Clocks may differ by this much; beyond that, a token counts as not yet valid or expired.
LEEWAY_SECONDS = 60
LIFE_SECONDS_MAX = 86_400


class _Registry(JWSRegistry):
    """The rules for the header of a JWS. Only the length of the whole token bounds that of its
    parts.
    """

    max_header_length = max_payload_length = max_signature_length = TOKEN_BYTES_MAX


_registry = _Registry(algorithms=ALGORITHMS, strict_check_header=False)


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
    if algorithm not in ALGORITHMS:
        raise refusal(
            f"The ID token says that it is signed with {shown(algorithm)}, but must be signed "
            f"with one of {', '.join(ALGORITHMS)}. Send it exactly as the issuer returned it."
        )
    if not isinstance(kid, str):
        raise refusal(
            "The ID token does not say which key signed it (kid). Send it exactly as the "
            "issuer returned it."
        )
    key = keys.key_for(issuer, kid)
    if algorithm != key.alg:
        raise refusal(
            f"The ID token says that it is signed with {algorithm}, but its key is for "
            f"{key.alg}. Send it exactly as the issuer returned it."
        )
    is_weak = isinstance(key, RSAKey) and key.public_key.key_size < RSA_BITS_MIN
    try:
        is_signed = not is_weak and validate_compact(jws, key, registry=_registry)
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
