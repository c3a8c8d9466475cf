"""The client of an OpenID provider, against one that does each thing wrong."""

import base64
import hashlib
import time
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from builder.model.errors import OperatorError, RequestError
from publisher.openid import client as openid_client
from publisher.openid.client import Begun, Client, Identity
from tests.publisher.openid.conftest import CALLBACK
from tests.publisher.web.pages.openid.provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    TOKEN,
    FakeProvider,
    fake_provider,
)
from tests.support.issuer import DISCOVERY, KEYS, MISSING, make_key


def finish(client: Client, begun: Begun, **answer: str) -> Identity:
    return client.finish(begun, {"state": begun.state, "code": "a-code"} | answer).identity


def refusal(client: Client, begun: Begun, **answer: str) -> RequestError:
    with pytest.raises(RequestError) as caught:
        finish(client, begun, **answer)
    return caught.value


# The right way


def test_a_visitor_is_sent_with_what_the_flow_asks_for(client: Client, fake: FakeProvider) -> None:
    url, begun = client.begin()
    challenge = hashlib.sha256(begun.code_verifier.encode()).digest()
    assert url.startswith(f"{fake.url}/auth?")
    assert dict(parse_qsl(urlsplit(url).query)) == {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": CALLBACK,
        "scope": "openid",
        "state": begun.state,
        "nonce": begun.nonce,
        "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    assert client.begin()[1] != begun
    assert len(set(begun)) == 3
    assert min(map(len, begun)) >= 20


def test_a_code_becomes_an_identity(client: Client, fake: FakeProvider) -> None:
    _, begun = client.begin()
    fake.say(begun.nonce, aud=[CLIENT_ID])
    assert finish(client, begun, iss=fake.url) == Identity(fake.url, "somebody")
    (form,) = fake.forms
    assert form.pop("authorization").startswith("Basic ")
    assert form == {
        "grant_type": "authorization_code",
        "code": "a-code",
        "code_verifier": begun.code_verifier,
        "redirect_uri": CALLBACK,
    }
    assert fake.requests == {DISCOVERY: 1, TOKEN: 1, KEYS: 1}


def test_the_secret_is_sent_as_the_provider_takes_it(client: Client, fake: FakeProvider) -> None:
    fake.discovery["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    _, begun = client.begin()
    fake.say(begun.nonce)
    finish(client, begun)
    (form,) = fake.forms
    assert (form["client_id"], form["client_secret"]) == (CLIENT_ID, CLIENT_SECRET)
    assert form["authorization"] == ""


# RFC 9864 calls it Ed25519; providers that sign so mostly do not yet.
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
@pytest.mark.parametrize("alg", ["ES256", "PS256", "EdDSA"])
def test_any_published_key_will_do(client: Client, fake: FakeProvider, alg: str) -> None:
    _, begun = client.begin()
    key = make_key("other", alg)
    fake.keys += [{"kty": "AKP", "kid": "of-the-future", "alg": "ML-DSA-44"}, key.public_jwk()]
    fake.say(begun.nonce, key=key)
    assert finish(client, begun).subject == "somebody"


def test_keys_that_are_replaced_are_found(client: Client, fake: FakeProvider) -> None:
    _, begun = client.begin()
    fake.say(begun.nonce)
    finish(client, begun)
    key = make_key("newer")
    fake.keys = [key.public_jwk()]
    fake.say(begun.nonce, key=key)
    assert finish(client, begun).subject == "somebody"
    assert fake.requests[KEYS] == 2


# An ID token with one thing wrong

WRONG_CLAIMS = {
    "another nonce": {"nonce": "another"},
    "no nonce": {"nonce": MISSING},
    "another audience": {"aud": "another"},
    # The authorized party (azp) is the client, but the audience is not.
    "another audience, requested by us": {"aud": "another", "azp": CLIENT_ID},
    "several audiences, none of them us": {"aud": ["another", "third"], "azp": CLIENT_ID},
    "for us and others, requested by another": {"aud": [CLIENT_ID, "another"], "azp": "another"},
    "for us and others, without azp": {"aud": [CLIENT_ID, "another"]},
    "no audience": {"aud": MISSING},
    "empty audience": {"aud": []},
    "another issuer": {"iss": "https://login.example.org"},
    "a list of issuers": {"iss": ["https://login.example.org"]},
    "no issuer": {"iss": MISSING},
    "expired": {"exp": int(time.time()) - openid_client.LEEWAY_SECONDS - 5},
    "never expires": {"exp": MISSING},
    "not good yet": {"nbf": int(time.time()) + 3600},
    "expires at a word": {"exp": "tomorrow"},
    "made at no time": {"iat": MISSING},
    "no subject": {"sub": MISSING},
    "empty subject": {"sub": ""},
    "a number as subject": {"sub": 7},
    "a subject without end": {"sub": "x" * 256},
    "another access token": {"at_hash": "bm90LXRoaXMtb25lIQ"},
}


@pytest.mark.parametrize("claims", WRONG_CLAIMS.values(), ids=WRONG_CLAIMS)
def test_wrong_claims_let_nobody_in(
    client: Client, fake: FakeProvider, claims: dict[str, Any]
) -> None:
    _, begun = client.begin()
    token = fake.say(begun.nonce, **claims)
    error = refusal(client, begun)
    assert error.code == "invalid_token"
    assert "Fake" in str(error) and "you were not signed in" in str(error)
    assert token not in str(error)


def test_only_published_keys_sign(client: Client, fake: FakeProvider) -> None:
    _, begun = client.begin()
    # Made by itself, under the name of the published one.
    thief = make_key("thief")._replace(kid=fake.key.kid)
    fake.say(begun.nonce, key=thief)
    assert refusal(client, begun).code == "invalid_token"
    fake.say(begun.nonce, key=make_key("thief"))
    assert refusal(client, begun).code == "invalid_token"


@pytest.mark.parametrize("alg", ["none", "None", "HS256", "RS999"])
def test_only_signatures_with_a_public_key_count(
    client: Client, fake: FakeProvider, alg: str
) -> None:
    # Even if the provider says that it uses others.
    fake.discovery["id_token_signing_alg_values_supported"] = ["none", "HS256", "RS256"]
    fake.keys.append({"kty": "oct", "kid": "shared", "k": "c2hhcmVkLXNlY3JldC1vZi10aGlydHktdHdv"})
    _, begun = client.begin()
    for kid in (fake.key.kid, "shared", MISSING):
        token = fake.say(begun.nonce, headers={"alg": alg, "kid": kid})
        assert refusal(client, begun).code == "invalid_token"
        fake.give(token.rpartition(".")[0] + ".")
        assert refusal(client, begun).code == "invalid_token"


@pytest.mark.parametrize("id_token", [None, 7, "", "a.b.c", "…", ["x"], "x" * 200_000])
def test_rubbish_is_no_id_token(client: Client, fake: FakeProvider, id_token: Any) -> None:
    _, begun = client.begin()
    fake.give(id_token)
    assert refusal(client, begun).code == "invalid_token"


@pytest.mark.parametrize("keys", [[], 5, None, ["x"], [{}], [{"kty": "RSA", "kid": "rsa-1"}]])
def test_rubbish_is_no_key(client: Client, fake: FakeProvider, keys: Any) -> None:
    _, begun = client.begin()
    fake.keys = keys
    fake.say(begun.nonce)
    assert refusal(client, begun).code == "invalid_token"


# Other answers


def test_an_answer_of_another_provider_is_refused(client: Client, fake: FakeProvider) -> None:
    _, begun = client.begin()
    fake.say(begun.nonce)
    assert refusal(client, begun, iss="https://evil.example").code == "invalid_parameter"
    assert not fake.forms, "it must not get the code"


def test_an_answer_without_a_code_is_refused(client: Client, fake: FakeProvider) -> None:
    _, begun = client.begin()
    assert refusal(client, begun, code="").code == "invalid_parameter"
    assert not fake.forms


def test_what_the_provider_refuses_is_said(client: Client) -> None:
    _, begun = client.begin()
    denied = refusal(client, begun, error="access_denied", error_description="too late " * 99)
    assert denied.code == "invalid_token"
    assert "did not confirm it: too late" in str(denied)
    assert len(str(denied)) < 400
    assert "invalid_scope" in str(refusal(client, begun, error="invalid_scope"))
    assert refusal(client, begun, error="temporarily_unavailable").code == "unavailable"


def test_a_code_is_good_once(client: Client, fake: FakeProvider) -> None:
    _, begun = client.begin()
    error = refusal(client, begun)
    assert error.code == "invalid_token"
    assert "used already" in str(error)


def test_a_wrong_secret_is_for_the_operator_to_fix(client: Client, fake: FakeProvider) -> None:
    _, begun = client.begin()
    fake.reply = 401, {"error": "invalid_client"}
    with pytest.raises(OperatorError, match=r"rejects this hub with 'invalid_client'") as caught:
        finish(client, begun)
    assert CALLBACK in str(caught.value)
    assert CLIENT_SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        (500, {}),
        (503, b"<h1>Sorry"),
        (200, b"<h1>Sorry"),
        (200, []),
        (429, b"slow down"),
        (200, b"[" * 100_000 + b"]" * 100_000),
        (200, b'{"id_token":' * 50_000),
    ],
)
def test_a_provider_that_fails_is_unavailable(
    client: Client, fake: FakeProvider, reply: tuple[int, Any]
) -> None:
    _, begun = client.begin()
    fake.reply = reply
    assert refusal(client, begun).code == "unavailable"


def test_the_secret_follows_no_redirect(client: Client, fake: FakeProvider) -> None:
    with fake_provider() as other:
        _, begun = client.begin()
        fake.headers = {"Location": other.url + TOKEN}
        fake.reply = 307, {}
        assert refusal(client, begun).code == "unavailable"
        assert not other.requests
