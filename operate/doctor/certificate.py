"""The certificate at the base URL: its name, its chain, and how long it is good."""

import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

from builder.model.plural import counted
from operate.doctor.findings import Finding, Subject, ok, problem, warning
from publisher.outside.fetch import TIMEOUT_SECONDS

# certbot and Caddy renew a certificate of 90 days when 30 are left.
DAYS_MIN = 14
_DAY_SECONDS = 86_400

_RENEW = "Renew it, and have the web server read it again. Look why nothing has renewed it."


def certificate(subject: Subject) -> Iterator[Finding]:
    """Good for the name in the base URL, for some time, to clients that know the usual issuers."""
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
            version = connection.version()
    except ssl.SSLCertVerificationError as error:
        yield problem(
            f"The certificate of {host} is not good: {error.verify_message}.",
            "Get one for this name from an issuer that clients know, serve it with its whole chain "
            "(fullchain.pem), and renew it in time.",
        )
        return
    except OSError as error:
        yield problem(f"No TLS at {host}:{port}: {error}.", "Start the web server with TLS.")
        return
    until = ssl.cert_time_to_seconds(str(found["notAfter"]))
    days = int((until - time.time()) // _DAY_SECONDS)
    date = datetime.fromtimestamp(until, UTC).strftime("%Y-%m-%d")
    if days < DAYS_MIN:
        yield warning(f"The certificate of {host} ends in {counted(days, 'day')}, {date}.", _RENEW)
    else:
        yield ok(f"good until {date}, {version}")
