"""An OpenID issuer on this machine, which issues the tokens of GitHub Actions and GitLab jobs.

It serves what a hub requests from an issuer (its discovery document and keys), and what a GitHub
Actions job requests from its runner (an ID token for an audience). It counts these requests.
"""

import base64
import contextlib
import functools
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from joserfc import jwk
from joserfc.jws import JWSRegistry, extract_compact

from tests.support.catalogues import BASE_URL
from tests.support.servers import in_thread

DISCOVERY = "/.well-known/openid-configuration"
KEYS = "/keys"
JOB_TOKEN = "/token"
RUNTIME_SECRET = "runtime-secret-of-one-job"

# The value of a claim to leave out.
MISSING = object()


class Key(NamedTuple):
    """A private key; ``kid`` is its name, ``alg`` what it signs with."""

    kid: str
    alg: str
    private: jwk.Key

    def public_jwk(self) -> dict[str, Any]:
        return self.private.as_dict(kid=self.kid, alg=self.alg, use="sig")


@functools.cache
def make_key(kid: str, alg: str = "RS256") -> Key:
    """A key of this name and algorithm: the same one each time in a process."""
    if alg.startswith(("RS", "PS")):
        return Key(kid, alg, jwk.generate_key("RSA"))
    if alg == "EdDSA":
        return Key(kid, alg, jwk.generate_key("OKP"))
    return Key(kid, alg, jwk.generate_key("EC", {"ES256": "P-256"}[alg]))


class TestIssuer:
    """A running issuer. ``requests`` counts requests by path. ``job`` has the claims of the job
    that requests ID tokens, where they differ from the usual ones.
    """

    __test__ = False

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: Counter[str] = Counter()
        self.job: dict[str, Any] = {}
        self.keys = [make_key("rsa-1"), make_key("ec-1", "ES256")]
        self._replaced: dict[str, tuple[int, bytes, Mapping[str, str]]] = {}
        self._status: int | None = None
        self._counting = threading.Lock()

    # Methods that tests call

    def token(
        self, *, key: Key | None = None, headers: Mapping[str, Any] | None = None,
        now: float | None = None, **claims: Any,
    ) -> str:  # fmt: skip
        """An ID token as GitHub Actions makes it, for a push to octo/prompts.

        ``claims`` replace the usual ones, ``headers`` those of the JWT, and MISSING takes one out.
        ``now``, in epoch seconds, is when it is made. ``key``: by default the first of ``keys``.
        """
        return self.sign(self.github_claims(now) | claims, key=key, headers=headers)

    def gitlab_token(
        self, *, key: Key | None = None, headers: Mapping[str, Any] | None = None,
        now: float | None = None, **claims: Any,
    ) -> str:  # fmt: skip
        """The same as GitLab makes it, for a push to acme/team/prompts."""
        return self.sign(self.gitlab_claims(now) | claims, key=key, headers=headers)

    def sign(
        self, claims: Mapping[str, Any], *, key: Key | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> str:  # fmt: skip
        """A JWT of exactly these claims, except those that are MISSING."""
        key = key or self.keys[0]
        header = {"typ": "JWT", "alg": key.alg, "kid": key.kid, **(headers or {})}
        parts = [
            base64.urlsafe_b64encode(json.dumps(present(part)).encode()).rstrip(b"=")
            for part in (header, claims)
        ]
        # serialize_compact would refuse tokens that tests of refusals need.
        signature = JWSRegistry.algorithms[key.alg].sign(b".".join(parts), key.private)
        return b".".join((*parts, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()

    def rotate(self, *, drop: bool = False) -> Key:
        """Sign with a new key from now on; the old ones stay published unless ``drop``."""
        key = make_key(f"rotated-{uuid.uuid4().hex[:8]}")
        self.keys = [key] if drop else [key, *self.keys]
        return key

    def fail(self, status: int | None) -> None:
        """Answer everything with this status from now on; None: answer as usual again."""
        self._status = status

    def replace(
        self, path: str, body: bytes | Mapping[str, Any] = b"", status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Give this answer to requests of this path from now on."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._replaced[path] = (status, raw, headers or {})

    def env(self) -> dict[str, str]:
        """Environment variables that the runner of GitHub Actions sets for a job."""
        return {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}{JOB_TOKEN}?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": RUNTIME_SECRET,
        }

    def github_claims(self, now: float | None = None) -> dict[str, Any]:
        at = int(time.time() if now is None else now)
        return {
            "jti": str(uuid.uuid4()),
            "sub": "repo:octo/prompts:ref:refs/heads/main",
            "aud": BASE_URL,
            "ref": "refs/heads/main",
            "sha": "1f2e3d4c5b6a79880796a5b4c3d2e1f001234567",
            "repository": "octo/prompts",
            "repository_owner": "octo",
            "repository_owner_id": "65",
            "repository_id": "74",
            "repository_visibility": "private",
            "run_id": "1234567890",
            "run_number": "10",
            "run_attempt": "1",
            "actor": "octocat",
            "actor_id": "12",
            "workflow": "Publish",
            "workflow_ref": "octo/prompts/.github/workflows/publish.yml@refs/heads/main",
            "job_workflow_ref": "octo/prompts/.github/workflows/publish.yml@refs/heads/main",
            "event_name": "push",
            "ref_type": "branch",
            "head_ref": "",
            "base_ref": "",
            "runner_environment": "github-hosted",
            "iss": self.url,
            "nbf": at - 600,
            "iat": at,
            "exp": at + 300,
        }

    def gitlab_claims(self, now: float | None = None) -> dict[str, Any]:
        at = int(time.time() if now is None else now)
        host = self.url.partition("://")[2]
        return {
            "jti": str(uuid.uuid4()),
            "sub": "project_path:acme/team/prompts:ref_type:branch:ref:main",
            "aud": BASE_URL,
            "namespace_id": "72",
            "namespace_path": "acme/team",
            "project_id": "20",
            "project_path": "acme/team/prompts",
            "project_visibility": "private",
            "user_id": "1",
            "user_login": "sam",
            "pipeline_id": "574",
            "pipeline_source": "push",
            "job_id": "302",
            "ref": "main",
            "ref_type": "branch",
            "ref_path": "refs/heads/main",
            "ref_protected": "true",
            "runner_id": 1,
            "runner_environment": "gitlab-hosted",
            "sha": "1f2e3d4c5b6a79880796a5b4c3d2e1f001234567",
            "ci_config_ref_uri": f"{host}/acme/team/prompts//.gitlab-ci.yml@refs/heads/main",
            "ci_config_sha": "1f2e3d4c5b6a79880796a5b4c3d2e1f001234567",
            "iss": self.url,
            "nbf": at - 5,
            "iat": at,
            "exp": at + 3600,
        }

    # Answers to HTTP requests

    def answer(
        self, target: str, authorization: str | None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body and further headers of the answer to a GET."""
        url = urlsplit(target)
        with self._counting:
            self.requests[url.path] += 1
        if self._status is not None:
            return self._status, b'{"message": "out of order"}', {}
        if url.path in self._replaced:
            return self._replaced[url.path]
        if url.path == DISCOVERY:
            return 200, json.dumps(self._discovery()).encode(), {}
        if url.path == KEYS:
            return 200, json.dumps({"keys": [key.public_jwk() for key in self.keys]}).encode(), {}
        if url.path == JOB_TOKEN:
            return self._answer_job(parse_qs(url.query), authorization)
        return 404, b'{"message": "not found"}', {}

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "jwks_uri": self.url + KEYS,
            "subject_types_supported": ["public"],
            "response_types_supported": ["id_token"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            "scopes_supported": ["openid"],
        }

    def _answer_job(
        self, query: dict[str, list[str]], authorization: str | None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        scheme, _, secret = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or secret != RUNTIME_SECRET:
            return 401, b'{"message": "not authorized"}', {}
        audience = query.get("audience", ["https://github.com/octo"])[0]
        token = self.token(**{"aud": audience} | self.job)
        return 200, json.dumps({"count": len(token), "value": token}).encode(), {}


@contextlib.contextmanager
def issuer() -> Iterator[TestIssuer]:
    """A live issuer at a free port of 127.0.0.1, in threads of this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.issuer = TestIssuer(f"http://127.0.0.1:{server.server_port}")
    with in_thread(server):
        yield server.issuer


def present(claims: Mapping[str, Any]) -> dict[str, Any]:
    """The claims without those that are ``MISSING``."""
    return {name: value for name, value in claims.items() if value is not MISSING}


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a JWT; its signature is not checked."""
    return json.loads(extract_compact(token.encode()).payload)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, body, headers = self.server.issuer.answer(
            self.path, self.headers.get("Authorization")
        )
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep the output of the tests clean."""
