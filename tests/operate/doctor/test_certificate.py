"""Certificates that clients refuse, or soon will."""

import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from operate.doctor import web
from operate.doctor.certificate import certificate
from operate.doctor.findings import Subject
from operate.doctor.remote_hub import RemoteHub
from tests.operate.doctor.conftest import faults, only
from tests.support.servers import in_thread


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


def at(subject: Subject, port: int) -> Subject:
    return subject._replace(
        settings=subject.settings._replace(base_url=f"https://localhost:{port}")
    )


@pytest.mark.parametrize(
    ("name", "days", "level", "expected"),
    [
        ("localhost", 80, "", ""),
        ("localhost", 5, "warning", "ends in 5 days, "),
        ("localhost", -2, "problem", "localhost: certificate has expired"),
        ("other.example", 80, "problem", "localhost: Hostname mismatch"),
    ],
)
def test_certificates(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    name: str, days: int, level: str, expected: str,
) -> None:  # fmt: skip
    write_certificate(tmp_path, name, days)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    with tls(tmp_path) as port:
        found = faults(certificate(at(subject, port)))
    assert [level for level, _ in found] == ([level] if level else [])
    assert all(expected in text for _, text in found)


def test_an_unknown_issuer(subject: Subject, tmp_path: Path) -> None:
    write_certificate(tmp_path, "localhost", 80)
    with tls(tmp_path) as port:
        there = at(subject, port)
        assert "localhost: self-signed" in only(certificate(there), "problem")
        with closing(RemoteHub(there)) as remote:
            found = only(web.address(remote), "problem")
    assert "certificate verify failed: self-signed" in found


def test_nothing_that_listens(subject: Subject) -> None:
    with ThreadingTCPServer(("127.0.0.1", 0), BaseRequestHandler) as server:
        port = server.server_address[1]
    assert f"No TLS at localhost:{port}" in only(certificate(at(subject, port)), "problem")
