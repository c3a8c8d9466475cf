"""ID tokens without a signature, or with one of a foreign key."""

import base64
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwk

from builder.model.errors import RequestError
from publisher.trusted.id_tokens import RSA_BITS_MIN, TOKEN_BYTES_MAX, KeyRing, verify
from publisher.trusted.issuers import DEFAULT_ISSUERS
from tests.publisher.trusted.conftest import Verifier
from tests.support.catalogues import BASE_URL
from tests.support.issuer import KEYS, MISSING, Key, claims_of, make_key


def forge(claims: dict, header: Any, sign: Callable[[bytes], bytes]) -> str:
    parts = [
        base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in (header, claims)
    ]
    signature = base64.urlsafe_b64encode(sign(b".".join(parts))).rstrip(b"=")
    return b".".join((*parts, signature)).decode()


def test_signed_by_another_key(either: Verifier):
    stolen = make_key("another")._replace(kid="rsa-1")
    error = either.refusal(either.token(key=stolen))
    assert error.code == "invalid_token"
    assert "not signed by" in str(error)


def test_changed_after_it_was_signed(either: Verifier):
    header, claims, signature = either.token().split(".")
    changed = claims_of(either.token()) | {"aud": BASE_URL, "sub": "repo:octo/other"}
    other = forge(changed, {}, lambda _: b"").split(".")[1]
    assert "not signed by" in str(either.refusal(f"{header}.{other}.{signature}"))
    assert "not signed by" in str(either.refusal(f"{header}.{claims}.{signature[4:]}"))
    assert "not signed by" in str(either.refusal(f"{header}.{claims}."))


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, 7, ["RS256"], "RS1"])
def test_signed_with_nothing(either: Verifier, algorithm: object):
    claims = claims_of(either.token())
    for header in ({"alg": algorithm, "kid": "rsa-1"}, {"alg": algorithm}):
        error = either.refusal(forge(claims, header, lambda _: b""))
        assert error.code == "invalid_token"
    assert not either.live.requests


@pytest.mark.parametrize("form", ["pem", "der", "jwk"])
@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_signed_with_the_public_key_as_a_secret(either: Verifier, algorithm: str, form: str):
    key = either.live.keys[0]
    public = key.private.public_key
    encoding = serialization.Encoding.PEM if form == "pem" else serialization.Encoding.DER
    secret = (
        json.dumps(key.public_jwk()).encode() if form == "jwk"
        else public.public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
    )  # fmt: skip
    digest = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}[algorithm]
    token = forge(
        claims_of(either.token()), {"alg": algorithm, "kid": key.kid},
        lambda text: hmac.digest(secret, text, digest),
    )  # fmt: skip
    error = either.refusal(token)
    assert error.code == "invalid_token"
    assert f"'{algorithm}'" in str(error)


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "RS512"])
def test_signed_with_another_algorithm(either: Verifier, algorithm: str):
    either.live.keys.append(make_key("other", "ES256" if algorithm == "ES256" else "RS256"))
    token = either.token(key=either.live.keys[-1]._replace(alg=algorithm))
    assert "but must be signed with RS256" in str(either.refusal(token))


@pytest.mark.filterwarnings("ignore:Key size should be")
def test_signed_with_a_key_that_is_too_short(either: Verifier):
    weak = jwk.generate_key("RSA", RSA_BITS_MIN - 8)
    either.live.keys.insert(0, Key("weak", "RS256", weak))
    assert "does not publish" in str(either.refusal(either.token()))


def test_signed_with_a_key_for_encryption(either: Verifier):
    public = either.live.keys[0].public_jwk() | {"key_ops": ["encrypt"]}
    del public["use"]
    either.live.replace(KEYS, {"keys": [public]})
    assert "not signed by" in str(either.refusal(either.token()))


@pytest.mark.parametrize("header", [["alg"], "alg", 7, None])
def test_a_header_that_is_no_object(either: Verifier, header: Any):
    claims = claims_of(either.token())
    assert "a signed JWT" in str(either.refusal(forge(claims, header, lambda _: b"")))


@pytest.mark.parametrize("kid", [MISSING, None, 7, ["rsa-1"], "", "unknown", "x" * 5000])
def test_kid_is_wrong(either: Verifier, kid: object):
    assert either.refusal(either.token(headers={"kid": kid})).code == "invalid_token"


def test_a_key_in_the_header_is_not_used(either: Verifier):
    mine = make_key("mine")
    for header in (
        {"jwk": mine.public_jwk()}, {"jwk": mine.public_jwk(), "kid": "rsa-1"},
        {"jku": "https://evil.example/keys", "kid": "rsa-1"},
    ):  # fmt: skip
        assert either.refusal(either.token(key=mine, headers=header)).code == "invalid_token"


@pytest.mark.parametrize(
    "header",
    [{"crit": []}, {"crit": None}, {"crit": 7}, {"crit": ["alg"]}, {"crit": ["x"], "x": 1},
     {"crit": ["b64"]}, {"crit": ["b64"], "b64": False}, {"b64": False}],
)  # fmt: skip
def test_extensions_that_must_be_understood(either: Verifier, header: dict[str, Any]):
    assert "a signed JWT" in str(either.refusal(either.token(headers=header)))


def test_a_long_header(either: Verifier):
    assert either.job(either.token(headers={"x5c": ["x" * 4000], "more": [7]}))


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "..", "a.b.c", "e30.e30.", "e30.W10.", "W10.e30.", "a" * (TOKEN_BYTES_MAX + 1),
        "é.é.é", "\ud800.a.b", "\0", "eyJhbGciOiJub25lIn0", "Bearer a.b.c", "null",
        "eyJhbGciOiJSUzI1NiJ9.W10.", "eyJhbGciOiJSUzI1NiJ9.e30=.", "eyJhbGciOiJSUzI1NiJ9.e30.a",
        "eyJhbGciOiJSUzI1NiJ9." + base64.urlsafe_b64encode(b"[" * 9000).decode() + ".e30",
        base64.urlsafe_b64encode(b"[" * 9000).decode() + ".e30.e30",
    ],
)  # fmt: skip
def test_that_is_no_token(either: Verifier, text: str):
    assert either.refusal(text).code == "invalid_token"
    assert not either.live.requests


@given(st.text(max_size=60))
def test_any_text_is_refused(text: str):
    with pytest.raises(RequestError) as caught:
        verify(text, DEFAULT_ISSUERS, KeyRing(DEFAULT_ISSUERS), BASE_URL)
    assert caught.value.code == "invalid_token"


def test_the_longest_token(either: Verifier):
    short = either.token(padding="")
    room = TOKEN_BYTES_MAX - len(short)
    # Three bytes are four characters.
    assert either.job(either.token(padding="x" * (room * 3 // 4 - 8)))
    assert "16,384 is the limit" in str(either.refusal(either.token(padding="x" * room)))
