"""The client of an OpenID Connect provider, built on Authlib.

OpenID Connect Core 1.0 (https://openid.net/specs/openid-connect-core-1_0.html): the authorization
code flow with PKCE (RFC 7636), state and nonce, of a client that has a secret. The scope is
``openid``: it gives the provider's ID of the person, and nothing else; with ``profile``, also a
name to propose. No token is kept.
Knows nothing of accounts and pages.
"""

import base64
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote_plus

import requests
from authlib.integrations.base_client import BaseApp, OAuth2Mixin, OAuthError, OpenIDMixin
from authlib.integrations.requests_client import OAuth2Session
from joserfc.errors import JoseError

from builder.model.errors import OperatorError, RequestError
from publisher.log import log_event
from publisher.openid.provider import Provider
from publisher.outside.fetch import FetchError, bounded, fetch_json
from publisher.outside.private_way import is_private_way
from publisher.trusted.id_tokens import LEEWAY_SECONDS

# The provider's description of itself is fetched again after FRESH_SECONDS. After a failure, the
# next fetch comes PAUSE_SECONDS later, because each request that waits for the provider holds a
# thread. A request waits at most WAIT_SECONDS for another thread's fetch.
FRESH_SECONDS = 3600
PAUSE_SECONDS = 2
WAIT_SECONDS = 1
# OpenID Connect Core 1.0 §2: a longer subject is refused.
SUBJECT_CHARS_MAX = 255

_DISCOVERY = "/.well-known/openid-configuration"
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# Never those with a shared secret (HS256 …), and never "none" (RFC 8725 §3.2).
_ALGORITHMS = (
    *(f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512)),
    "EdDSA",
    "Ed25519",
)

log = logging.getLogger("hub.openid")


class Begun(NamedTuple):
    """The values to keep of a sign-in until its visitor comes back."""

    state: str
    nonce: str
    code_verifier: str


class Identity(NamedTuple):
    """The identity of a person. ``subject`` is the issuer's ID of the person, which it gives to no
    other person.
    """

    issuer: str
    subject: str


class Person(NamedTuple):
    """A person whom the provider has let in. ``name``: what the provider calls them, which others
    may be called, too (OpenID Connect Core 1.0 §5.7); empty if it does not say.
    """

    identity: Identity
    name: str


class Client:
    """The client of a provider. Thread-safe. ``callback_url`` is the URL to which visitors come
    back, as the provider knows it. ``clock`` gives seconds that never go back. ``wants_names``: the
    provider is asked what it calls people.

    The provider's description of itself is fetched when it is first needed.
    """

    def __init__(
        self,
        provider: Provider,
        callback_url: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        wants_names: bool = False,
    ) -> None:
        self._wants_names = wants_names
        self._provider = provider
        self._callback_url = callback_url
        self._clock = clock
        self._turn = threading.Lock()
        self._app: _App | None = None
        self._ask_at = float("-inf")

    def begin(self, *, again: bool = False) -> tuple[str, Begun]:
        """Returns the URL at which a visitor signs in, and the values to keep of that. ``again``:
        also if the provider has let the visitor in before (OpenID Connect Core 1.0 §3.1.2.1).

        Raises RequestError ``unavailable``; OperatorError if the provider is not the configured
        one.
        """
        asked = {"prompt": "login"} if again else {}
        made = self._connect().create_authorization_url(self._callback_url, **asked)
        return made["url"], Begun(made["state"], made["nonce"], made["code_verifier"])

    def finish(self, begun: Begun, answer: Mapping[str, str]) -> Person:
        """Returns the visitor who came back with this answer, the query of the
        callback's URL. The caller has found ``begun`` by its state.

        Raises RequestError ``invalid_parameter`` for an answer of another provider;
        ``invalid_token`` if the provider or its ID token does not let the visitor in;
        ``unavailable``. OperatorError if the provider does not know this hub.
        """
        name = self._provider.name
        issuer = answer.get("iss", self._provider.issuer)
        # RFC 9207: the answer names its issuer, against mix-up attacks.
        if issuer != self._provider.issuer:
            raise RequestError(
                "invalid_parameter",
                f"This answer did not come from {name}, so it was rejected. Start again.",
            )
        if "error" in answer:
            raise self._refusal(answer["error"], answer.get("error_description", ""))
        if not answer.get("code"):
            raise RequestError("invalid_parameter", f"{name} returned no code. Start again.")
        app = self._connect()
        try:
            token = app.fetch_access_token(
                self._callback_url, code=answer["code"], code_verifier=begun.code_verifier
            )
        except OAuthError as error:
            raise self._refused_code(error) from error
        except (requests.RequestException, ValueError, RecursionError) as error:
            raise self._unreachable() from error
        return self._verify(app, token, begun.nonce)

    def _verify(self, app: "_App", token: Mapping[str, Any], nonce: str) -> Person:
        provider = self._provider
        if not isinstance(token, Mapping) or not isinstance(token.get("id_token"), str):
            raise self._untrusted("the ID token is missing")
        try:
            claims = app.parse_id_token(
                token,
                nonce,
                # Authlib itself checks only the issuer.
                claims_options={
                    "iss": {"essential": True, "value": provider.issuer},
                    "aud": {"essential": True, "values": [provider.client_id]},
                    "sub": {"essential": True},
                },
                leeway=LEEWAY_SECONDS,
            )
        except JoseError as error:
            raise self._untrusted(_fault_of(error)) from error
        except (requests.RequestException, RecursionError) as error:
            raise self._unreachable() from error
        except (KeyError, TypeError, ValueError) as error:
            # Neither library checks the type of the values it receives, so any error can come from
            # them.
            raise self._untrusted(type(error).__name__) from error
        if len(claims["sub"]) > SUBJECT_CHARS_MAX:
            raise self._untrusted("the subject is too long")
        name = claims.get("preferred_username")
        identity = Identity(provider.issuer, claims["sub"])
        return Person(identity, name if isinstance(name, str) else "")

    def _connect(self) -> "_App":
        app = self._app
        if app is None or self._clock() >= self._ask_at:
            # The earlier description is used while another thread fetches a new one.
            if self._turn.acquire(timeout=0 if app else WAIT_SECONDS):
                try:
                    self._renew()
                finally:
                    self._turn.release()
            app = self._app
        if app is None:
            raise self._unreachable()
        return app

    def _renew(self) -> None:
        """Fetches the provider's description, unless this or another thread has just tried."""
        if self._clock() < self._ask_at:
            return
        try:
            self._app = self._discover()
            self._ask_at = self._clock() + FRESH_SECONDS
        except (RequestError, OperatorError) as error:
            self._ask_at = self._clock() + PAUSE_SECONDS
            if self._app is None:
                raise
            log_event(log, logging.WARNING, "openid", error, issuer=self._provider.issuer)

    def _discover(self) -> "_App":
        """Returns the provider's description of itself (OpenID Connect Discovery 1.0)."""
        provider = self._provider
        url = provider.issuer.rstrip("/") + _DISCOVERY
        try:
            found = fetch_json(url)
        except FetchError as error:
            raise self._unreachable() from error
        said = found.get("issuer")
        if said != provider.issuer:
            raise OperatorError(
                f"The OpenID issuer is set to {provider.issuer!r}, but {url} says {said!r}. "
                "Pass that URL to --openid-issuer, to the letter."
            )
        endpoints = {name: found.get(name) for name in _ENDPOINTS}
        wrong = [name for name, url in endpoints.items() if not is_private_way(url)]
        if wrong:
            raise OperatorError(
                f"The OpenID provider {provider.issuer} has no {wrong[0]} with https, so "
                "sign-in with it is not possible. Choose another provider."
            )
        methods = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        is_basic = "client_secret_basic" in methods
        return _App(
            None,
            "openid",
            client_id=provider.client_id,
            client_secret=provider.client_secret,
            client_kwargs={
                "scope": "openid profile" if self._wants_names else "openid",
                "code_challenge_method": "S256",
                # No redirect is followed, so no secret is sent to another address.
                "max_redirects": 0,
            },
            client_auth_methods=[("client_secret_basic", _authenticate)],
            issuer=provider.issuer,
            id_token_signing_alg_values_supported=_ALGORITHMS,
            token_endpoint_auth_method="client_secret_basic" if is_basic else "client_secret_post",
            **endpoints,
        )

    # Errors

    def _refusal(self, code: str, description: str) -> RequestError:
        name = self._provider.name
        if code in ("server_error", "temporarily_unavailable"):
            return self._unreachable()
        if code == "access_denied":
            said = f": {description[:300]}" if description else ""
            return RequestError(
                "invalid_token",
                f"You were not signed in: {name} did not confirm it{said}. Start again.",
            )
        said = " ".join(filter(None, (code, description)))[:300]
        return RequestError(
            "invalid_token",
            f"{name} did not sign you in: {said}. If that happens again, tell the operator of "
            "this hub.",
        )

    def _refused_code(self, error: OAuthError) -> Exception:
        if error.error == "invalid_grant":
            return RequestError(
                "invalid_token", "This sign-in was used already or took too long. Start again."
            )
        return OperatorError(
            f"The OpenID provider {self._provider.issuer} rejects this hub with "
            f"{error.error!r}. Check the client ID, the client secret and that the callback "
            f"URL {self._callback_url} is registered there."
        )

    def _untrusted(self, reason: str) -> RequestError:
        log_event(log, logging.WARNING, "openid", reason=reason, issuer=self._provider.issuer)
        return RequestError(
            "invalid_token",
            f"The answer of {self._provider.name} cannot be trusted, so you were not signed "
            f"in: {reason}. Start again. If that happens again, tell the operator of this hub.",
        )

    def _unreachable(self) -> RequestError:
        return RequestError(
            "unavailable",
            f"{self._provider.name} cannot be reached. Sign in with your password, or try "
            "again in a minute.",
        )


class _Session(OAuth2Session):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        bounded(self)


class _App(OAuth2Mixin, OpenIDMixin, BaseApp):
    """Authlib's client without a framework: the caller keeps the state."""

    client_cls = _Session


def _authenticate(
    client: Any, method: str, url: str, headers: dict[str, str], body: str
) -> tuple[str, dict[str, str], str]:
    # RFC 6749 §2.3.1: the id and the secret are encoded like form fields, which Authlib leaves out.
    pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return url, headers, body


def _fault_of(error: JoseError) -> str:
    """Returns the fault of an ID token, without any text from the token."""
    reason = error.error or type(error).__name__
    claim = getattr(error, "claim", None)
    return f"{reason} ({claim})" if claim else reason
