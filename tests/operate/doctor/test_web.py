"""A hub at its base URL: behind hosts that answer other things, and certificates."""

import http.server
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from builder.stats.agents import is_bot
from operate.doctor import web
from operate.doctor.examine import examine
from operate.doctor.findings import Subject
from publisher.outside.fetch import DOCUMENT_BYTES_MAX
from tests.operate.doctor.conftest import faults, only
from tests.support.servers import in_thread

HUB = "/api/v1/hub.json"
SEARCH = "/api/v1/repos?q=hub"
READY = "/readyz"


class Answer(NamedTuple):
    status: int
    body: Any = ""
    headers: Mapping[str, str] = MappingProxyType({})


class Host(http.server.ThreadingHTTPServer):
    """A web server that answers these paths, and others with ``rest``."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.answers = answers
        self.rest = Answer(404)
        self.agents: set[str] = set()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Host

    def do_GET(self) -> None:
        self.server.agents.add(self.headers["User-Agent"])
        status, body, headers = self.server.answers.get(self.path, self.server.rest)
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in ({**headers} | {"Content-Length": str(len(data))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def host(subject: Subject) -> Iterator[Host]:
    """A host that passes all on."""
    host = Host({})
    with in_thread(host):
        found = {"base_url": host.url, "serial": subject.hub.serial}
        host.answers |= {
            HUB: Answer(200, {"data": found}),
            SEARCH: Answer(200, {"meta": {"q": "hub"}}),
            READY: Answer(200, {"reasons": [], "parts": {}}),
        }
        yield host


@pytest.fixture
def there(host: Host, subject: Subject) -> Subject:
    return subject._replace(settings=subject.settings._replace(base_url=host.url))


PARKED = Answer(200, "<p>Parked.")
DEPLOY = {"failures": 2, "failing_since": "2026-01-01", "last_error": "Denied."}
FULL = {"code": "disk_full", "message": "Disk full: state."}


@pytest.mark.parametrize(
    ("path", "answer", "level", "expected"),
    [
        (HUB, Answer(301, "", {"Location": "https://www.hub.example/"}), "problem",
         "HTTP 301, a redirect to https://www.hub.example/"),
        (HUB, Answer(401), "problem", "answers HTTP 401. Write"),
        (HUB, PARKED, "problem", "says that the address is None"),
        (HUB, Answer(200, {"data": {"base_url": "http://a.example"}}), "problem",
         "says that the address is http://a.example"),
        (HUB, Answer(200, " " * (DOCUMENT_BYTES_MAX + 1)), "problem", "TooLarge"),
        (SEARCH, PARKED, "problem", f"The search {SEARCH} does not reach the service"),
        (SEARCH, Answer(200, {"meta": {"q": None}}), "problem", "part of the CDN's cache key"),
        (READY, Answer(502), "problem", "/readyz (HTTP 502) misses the service"),
        (READY, Answer(503, {"reasons": [FULL], "parts": {}}), "problem",
         "The service is not ready: Disk full: state."),
        (READY, Answer(200, {"reasons": [], "parts": {"deploy": DEPLOY}}), "problem",
         "deploy has failed since 2026-01-01: Denied."),
    ],
)  # fmt: skip
def test_what_a_host_can_spoil(
    host: Host, there: Subject, path: str, answer: Answer, level: str, expected: str
) -> None:
    assert faults(web.address(there)) == []
    assert host.agents and all(map(is_bot, host.agents))  # so that it counts as no pull
    host.answers[path] = answer
    assert expected in only(web.address(there), level)


def test_readers_who_get_an_older_site(host: Host, there: Subject) -> None:
    newer = there._replace(hub=replace(there.hub, serial=9))
    assert "; this one has 9." in only(web.address(newer), "warning")


def test_a_site_of_files_alone_is_asked_for_files_alone(host: Host, there: Subject) -> None:
    del host.answers[SEARCH], host.answers[READY]
    hub = replace(there.hub, queries=False)
    assert faults(web.address(there._replace(service=None, hub=hub))) == []


def test_a_service_that_is_away(there: Subject, host: Host) -> None:
    """The advice names it, and no other setting."""
    private = there._replace(service=None, settings=there.settings._replace(private=True))
    for answer in (Answer(502), Answer(503, {"error": {"code": "unavailable"}})):
        host.answers, host.rest = {}, answer
        assert "Start the service, which is away." in only(web.address(private), "problem")
        assert faults(web.strangers(private)) == []
    host.shutdown()
    host.server_close()
    found = only(web.address(private), "problem")
    assert "No answer from" in found and found.endswith("Start the service, which is away.")
    assert "check the name and the port" in only(web.address(there), "problem")


def test_strangers_who_can_read_a_private_hub(host: Host, there: Subject) -> None:
    private = there._replace(settings=there.settings._replace(private=True))
    closed = {"/": Answer(303, "", {"Location": "/account/login"})}
    ready = {READY: host.answers[READY]}
    host.rest = Answer(401)
    host.answers = closed | ready
    assert faults(web.strangers(private)) == faults(web.address(private)) == []
    assert faults(web.strangers(there)) == []  # not asked
    prompt = json.loads(Path(there.settings.out, "api/v1/repos.json").read_text())["data"][0]
    page = f"/{prompt['owner']}/{prompt['name']}"
    for path in ("/", HUB, SEARCH, page, f"{page}.html", f"/api/v1/repos{page}/raw.txt"):
        host.answers = closed | ready | {path: Answer(200, "Open.")}
        assert f"strangers can read {path}." in only(web.strangers(private), "problem")
        name, finding = next(examine(private))
        assert (name, finding.level) == ("strangers", "problem")


def write_certificate(folder: Path, name: str, days: int) -> None:
    """A certificate for a name, signed by itself, and its key; it ends in so many days."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=90))
        .not_valid_after(now + timedelta(days=days, hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


class _Quiet(ThreadingTCPServer):
    def handle_error(self, *_: object) -> None:
        """A client that refuses the certificate hangs up."""


@contextmanager
def tls(folder: Path) -> Iterator[int]:
    """A server that only greets; gives its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server = _Quiet(("127.0.0.1", 0), BaseRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with in_thread(server):
        yield server.server_address[1]


@pytest.mark.parametrize(
    ("name", "days", "is_known", "level", "expected"),
    [
        ("localhost", 80, True, "", ""),
        ("localhost", 5, True, "warning", "ends in 5 days, "),
        ("localhost", -2, True, "problem", "localhost: certificate has expired"),
        ("other.example", 80, True, "problem", "localhost: Hostname mismatch"),
        ("localhost", 80, False, "problem", "localhost: self-signed"),
    ],
)
def test_certificates(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    name: str, days: int, is_known: bool, level: str, expected: str,
) -> None:  # fmt: skip
    write_certificate(tmp_path, name, days)
    if is_known:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    with tls(tmp_path) as port:
        settings = subject.settings._replace(base_url=f"https://localhost:{port}")
        found = faults(web.certificate(subject._replace(settings=settings)))
    assert [level for level, _ in found] == ([level] if level else [])
    assert all(expected in text for _, text in found)
    assert f"No TLS at localhost:{port}" in only(
        web.certificate(subject._replace(settings=settings)), "problem"
    )
