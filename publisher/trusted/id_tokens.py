"""Whether to believe an ID token: who signed it, for whom, and until when.

A token is a JWT (RFC 7519) that an issuer has signed. All that is in it comes from outside: its
``iss`` before the signature is checked does no more than pick an issuer from the allow list.
Messages quote claims, never the token.
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
# NIST SP 800-131A.
RSA_BITS_MIN = 2048
# How far clocks may be apart.
LEEWAY_SECONDS = 60
LIFE_SECONDS_MAX = 86_400


class _Registry(JWSRegistry):
    """What a JWS may have in it. The length of a part is bounded by that of the token alone."""

    max_header_length = max_payload_length = max_signature_length = TOKEN_BYTES_MAX


_registry = _Registry(algorithms=ALGORITHMS, strict_check_header=False)


def verify(
    token: str,
    issuers: Iterable[Issuer],
    keys: KeyRing,
    audience: str,
    now: datetime | None = None,
) -> Job:
    """The job that an ID token was made for, if an issuer on the list made it for ``audience``,
    the hub's base URL, and it holds now.

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
    """A JWT and its claims, which nobody has vouched for yet."""
    if len(token) > TOKEN_BYTES_MAX:
        raise refusal(
            f"An ID token has at most {TOKEN_BYTES_MAX:,} bytes, and this has {len(token):,}. "
            "Send the issuer's JWT alone."
        )
    not_a_jwt = refusal(
        "That is no ID token: it is no signed JWT, three parts of base64 with dots between them. "
        "Send what the issuer gave, all of it, without quotes."
    )
    try:
        jws = extract_compact(token.encode(), registry=_registry)
        claims = json.loads(jws.payload)
    except (JoseError, ValueError, RecursionError):
        # Without its cause, which may quote the token.
        raise not_a_jwt from None
    header = jws.headers()
    # No extension that a header may call critical (crit) is known here, b64 (RFC 7797) neither.
    if not isinstance(header, dict) or not isinstance(claims, dict) or {"crit", "b64"} & {*header}:
        raise not_a_jwt
    return jws, claims


def _issuer_of(claims: Mapping[str, Any], issuers: Iterable[Issuer]) -> Issuer:
    known = {issuer.url: issuer for issuer in issuers}
    came = claims.get("iss")
    if not isinstance(came, str) or came not in known:
        raise refusal(
            f"The ID token's issuer (iss) is {shown(came)}, and this hub believes only "
            f"{' and '.join(known)}. Publish from there, or ask whoever runs this hub to add the "
            "issuer."
        )
    return known[came]


def _check_signature(jws: CompactSignature, issuer: Issuer, keys: KeyRing) -> None:
    algorithm, kid = jws.headers()["alg"], jws.headers().get("kid")
    if algorithm not in ALGORITHMS:
        raise refusal(
            f"The ID token says that it is signed with {shown(algorithm)}; expected is one of "
            f"{', '.join(ALGORITHMS)}. Send the token as its issuer gave it."
        )
    if not isinstance(kid, str):
        raise refusal(
            "The ID token does not say which key it is signed with (kid). Send the token as its "
            "issuer gave it."
        )
    key = keys.key_for(issuer, kid)
    if algorithm != key.alg:
        raise refusal(
            f"The ID token says that it is signed with {algorithm}; its key is for {key.alg}. "
            "Send the token as its issuer gave it."
        )
    is_weak = isinstance(key, RSAKey) and key.public_key.key_size < RSA_BITS_MIN
    try:
        is_signed = not is_weak and validate_compact(jws, key, registry=_registry)
    except JoseError:
        is_signed = False
    if not is_signed:
        raise refusal(
            f"The ID token is not signed by {issuer.url}: it was changed, or somebody else made "
            "it. Send the token as its issuer gave it."
        )


def _check_times(claims: Mapping[str, Any], now: float) -> int:
    """Whether a token holds at ``now``; returns the second from which on it does not.

    joserfc's own check neither bounds how long a token holds nor tells the times it compares.
    """
    expires = _time(claims, "exp")
    if expires is None:
        raise refusal(
            "The ID token never expires (it has no exp), and such a token is not taken. Get one "
            "from an issuer that says how long it holds."
        )
    if expires > now + LIFE_SECONDS_MAX + LEEWAY_SECONDS:
        raise refusal(
            "The ID token holds for more than a day, and such a token is not taken. Have the "
            "issuer make one that expires (exp) with the job."
        )
    if now >= expires + LEEWAY_SECONDS:
        made = _time(claims, "iat")
        clock = "" if made is None else f"the CI's said {_moment(made)} when it was made (iat), "
        raise RequestError(
            "token_expired",
            f"The ID token expired (exp) at {_moment(expires)}. Get a new one right before it is "
            f"exchanged. If it is new, a clock is wrong: {clock}this hub's says {_moment(now)}.",
        )
    for name, told in (("nbf", "does not hold before"), ("iat", "was made at")):
        since = _time(claims, name)
        if since is not None and since > now + LEEWAY_SECONDS:
            raise refusal(
                f"The ID token {told} ({name}) {_moment(since)}, and here it is {_moment(now)}. "
                "Set the clock of the machine that is wrong, and get a new one."
            )
    return math.ceil(expires) + LEEWAY_SECONDS


def _check_audience(claims: Mapping[str, Any], audience: str) -> None:
    came = claims.get("aud")
    if came not in (audience, [audience]):
        raise refusal(
            f"The ID token is for (aud) {shown(came)}, and this hub is {audience!r}. Ask the "
            "issuer for a token with exactly this audience, and no other beside it."
        )


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """A claim that is epoch seconds; None if it is missing."""
    if name not in claims:
        return None
    came = claims[name]
    is_number = isinstance(came, int | float) and not isinstance(came, bool)
    # Python's JSON has infinity and no number that is too large.
    if not is_number or not 0 <= came < 1e12:
        raise refusal(
            f"The ID token's {name} is {shown(came)}; expected are seconds since 1970. Get the "
            "token from the issuer of the CI that runs the job."
        )
    return came


def _moment(seconds: float) -> str:
    # Within what a date can be; nobody needs the right one beyond.
    return format_time(datetime.fromtimestamp(min(seconds, 253_402_300_799), UTC))
