"""The API document, made from the table of routes and the records."""

from builder.settings import Settings


def document(settings: Settings) -> bytes:
    return b"{}"
