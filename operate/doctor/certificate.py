"""Checks the certificate at the base URL: its name, its chain, and its expiry."""

import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

from builder.model.plural import counted
from builder.model.records import DAY_SECONDS
from operate.doctor.findings import Finding, Subject, problem, warning
from publisher.outside.fetch import TIMEOUT_SECONDS

# certbot and Caddy renew a certificate of 90 days when 30 days are left. With fewer than this,
# renewal has failed for two weeks.
DAYS_MIN = 14


def certificate(subject: Subject) -> Iterator[Finding]:
    """The certificate is valid for the name in the base URL, long enough, and for clients that know
    the usual issuers.
    """
    parts = urlsplit(subject.settings.base_url)
    if parts.scheme != "https":
        return
    host, port = parts.hostname or "", parts.port or 443
    context = ssl.create_default_context()
    try:
        with (
            socket.create_connection((host, port), TIMEOUT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host) as connection,
        ):
            found = connection.getpeercert() or {}
    except ssl.SSLCertVerificationError as error:
        yield problem(
            f"Clients refuse the certificate of {host}: {error.verify_message}.",
            "Get one for this name from an issuer that clients know, serve it with its whole chain "
            "(fullchain.pem), and renew it in time.",
        )
        return
    except OSError as error:
        yield problem(f"No TLS at {host}:{port}: {error}.", "Start the web server with TLS.")
        return
    end = ssl.cert_time_to_seconds(str(found["notAfter"]))
    days = int((end - time.time()) // DAY_SECONDS)
    if days < DAYS_MIN:
        yield warning(
            f"The certificate of {host} ends in {counted(days, 'day')}, "
            f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d}.",
            "Renew it, and reload the web server. Find out why nothing has renewed it.",
        )
