"""Redirects from http to https, and the challenges of a certificate authority."""

import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import requests

from builder.hosts.rules import HostedSite
from builder.model.settings import Settings
from tests.hosts.hosted import get
from tests.support.servers import DEADLINE_SECONDS, free_port

CHALLENGE = "/.well-known/acme-challenge/"
SECONDS = 1234

Started = Callable[[HostedSite, Path], AbstractContextManager[str]]


def make_certificate(folder: Path) -> tuple[str, str]:
    certificate, key = f"{folder}/cert.pem", f"{folder}/key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


def check_redirects(settings: Settings, plain: HostedSite, started: Started, folder: Path) -> None:
    """Check the redirects. ``plain``: the site without TLS, whose upstream is down."""
    pair = make_certificate(folder)
    place = f"127.0.0.1:{free_port()}"
    site = plain._replace(
        base_url="https://hub.example.org", certificate=pair, redirect_from=place,
        hsts_seconds=SECONDS,
    )  # fmt: skip
    with started(site, folder) as url:
        for path in ("/", "/api/v1/repos?tag=a&x=%2F..", "//evil.example.net/x", "/.well-known/x"):
            # A client library would take the two slashes for one.
            request = requests.Request("GET", f"http://{place}/").prepare()
            request.url = f"http://{place}{path}"
            request.headers["Host"] = "evil.example.net"
            with requests.Session() as session:
                answer = session.send(request, allow_redirects=False, timeout=DEADLINE_SECONDS)
            assert answer.status_code == 308
            assert answer.headers["Location"] == f"https://hub.example.org{path}"
            assert "Strict-Transport-Security" not in answer.headers
        check_challenge(site, f"http://{place}")
        # Pages, records, errors of each kind, and addresses of the service.
        for path, status in {
            "/": 200, "/api/v1/repos": 200, "/nobody/nothing": 404, "/api/v1/repos/nobody/x": 404,
            "/api/v1/repos?sort=x": 400, "/api/v1/repos?q=x": 503, "/account": 503, "/mcp": 503,
        }.items():  # fmt: skip
            answer = get(f"{url}{path}", verify=pair[0])
            assert answer.status_code == status, path
            assert answer.headers["Strict-Transport-Security"] == f"max-age={SECONDS}", path


def check_challenge(site: HostedSite, url: str) -> None:
    """Check that ``url`` serves the files of an ACME client's folder, and nothing else."""
    folder = Path(site.challenges, *CHALLENGE.split("/"))
    folder.mkdir(parents=True, exist_ok=True)
    Path(folder, "a_token-1").write_text("a_token-1.thumbprint")
    Path(folder, ".hidden").write_text("not for readers")
    answer = get(f"{url}{CHALLENGE}a_token-1")
    assert (answer.status_code, answer.text) == (200, "a_token-1.thumbprint")
    for name in ("another", ".hidden", "", "a_token-1/", "../acme-challenge/.hidden"):
        assert "not for readers" not in get(f"{url}{CHALLENGE}{name}").text
    assert get(f"{url}{CHALLENGE}another").status_code == 404
