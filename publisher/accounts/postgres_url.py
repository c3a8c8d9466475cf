"""The URL of a PostgreSQL database. It has a password in it, so it is never shown."""

import re
from urllib.parse import urlsplit

from builder.model.errors import OperatorError

_scheme = re.compile("postgres(ql)?://")


def is_postgres_url(text: str) -> bool:
    """True if the text is meant as such a URL, and not as a folder."""
    return bool(_scheme.match(text))


def parse_postgres_url(text: str) -> str:
    """Returns such a URL, checked. Raises OperatorError, which does not show it.

    PostgreSQL's library would take the unquoted part of a password for a host or a port, and show
    it.
    """
    try:
        parts = urlsplit(text)
        is_valid = (
            is_postgres_url(text)
            and re.fullmatch("/[^/]+", parts.path) is not None
            and text.count("@") == parts.netloc.count("@") <= 1
            and "#" not in text
            # Several hosts are separated by commas, each with its port.
            and all(
                re.fullmatch(r"(\[[^]]*\]|[^:]*)(:[0-9]{1,5})?", host)
                for host in parts.netloc.rpartition("@")[2].split(",")
            )
        )
    except ValueError:
        is_valid = False
    if not is_valid:
        raise OperatorError(
            "Invalid address of the database. Give a PostgreSQL URL with the name of a database, "
            "like postgresql://hub@db.example.org/hub. In a password, write @ as %40, : as %3A, / "
            "as %2F, ? as %3F, # as %23 and % as %25."
        )
    return text
