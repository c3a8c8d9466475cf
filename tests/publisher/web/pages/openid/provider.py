"""Two OpenID providers on this machine: a real one, and one that says what it should not.

To browsers the real one is at ``localhost``, so it is another site than a hub at 127.0.0.1.
"""

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.node import NODE, PROGRAMS
from tests.support.issuer import DISCOVERY, KEYS, Key, TestIssuer, make_key
from tests.support.servers import Process, free_port, in_thread

CLIENT_ID = "https://hub.example/"
# Characters that an HTTP header and a form field would each decode differently.
CLIENT_SECRET = "100% secret: a+b/c=&d"
# The name that it has on the pages.
NAME = "Testers & <Co>"

TOKEN = "/token"


@contextlib.contextmanager
def real_provider(callback_url: str) -> Iterator[str]:
    """The issuer of a running oidc-provider, which signs in anyone under any name."""
    node = PROGRAMS / "node"
    assert node.exists(), "node is not there; install it with: sh tests/install-tools"
    script = str(NODE / "openid-provider.mjs")
    process = Process(
        str(node), script, str(free_port()), CLIENT_ID, CLIENT_SECRET, callback_url
    )  # fmt: skip
    try:
        yield process.wait_for_line("ready ").split()[-1]
    finally:
        process.stop()


class FakeProvider:
    """A provider whose answers a test sets.

    ``requests`` counts requests by path; ``forms`` has the bodies sent to the token endpoint.
    ``status`` is the status of all answers, if set. ``reply`` is the answer of the token endpoint,
    as status and body.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = make_key("rsa-1")
        self.requests: Counter[str] = Counter()
        self.forms: list[dict[str, str]] = []
        self.status: int | None = None
        self.reply: tuple[int, Any] = (400, {"error": "invalid_grant"})
        self.headers: dict[str, str] = {}
        self.discovery: dict[str, Any] = {
            "issuer": url,
            "authorization_endpoint": f"{url}/auth",
            "token_endpoint": url + TOKEN,
            "jwks_uri": url + KEYS,
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
        self.keys = [self.key.public_jwk()]

    def say(
        self, nonce: str, /, *, key: Key | None = None, headers: Mapping[str, Any] | None = None,
        **claims: Any,
    ) -> str:  # fmt: skip
        """Give out an ID token for this nonce from now on; ``claims`` replace the usual ones."""
        at = int(time.time())
        usual = {
            "iss": self.url, "sub": "somebody", "aud": CLIENT_ID, "nonce": nonce, "iat": at,
            "exp": at + 300,
        }  # fmt: skip
        token = TestIssuer(self.url).sign(usual | claims, key=key or self.key, headers=headers)
        self.give(token)
        return token

    def give(self, id_token: Any) -> None:
        """Give out this as ID token from now on."""
        body = {"access_token": "opaque-access-token", "token_type": "Bearer"}
        self.reply = 200, body | {"id_token": id_token}

    def answer(self, method: str, path: str, form: dict[str, str]) -> tuple[int, Any]:
        self.requests[path] += 1
        if self.status is not None:
            return self.status, {"message": "out of order"}
        if method == "POST" and path == TOKEN:
            self.forms.append(form)
            return self.reply
        known = {DISCOVERY: self.discovery, KEYS: {"keys": self.keys}}
        return (200, known[path]) if path in known else (404, {"message": "not found"})


@contextlib.contextmanager
def fake_provider() -> Iterator[FakeProvider]:
    """One at a free port, in threads of this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.fake = FakeProvider(f"http://127.0.0.1:{server.server_port}")
    with in_thread(server):
        yield server.fake


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer(
            {name: values[0] for name, values in parse_qs(raw).items()}
            | {"authorization": self.headers.get("Authorization", "")}
        )

    def _answer(self, form: dict[str, str]) -> None:
        fake = self.server.fake
        status, body = fake.answer(self.command, urlsplit(self.path).path, form)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **fake.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Keep the output of the tests clean."""
