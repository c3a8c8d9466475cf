"""The limits that an operator sets for publishers.

Reads have ``READS_PER_MINUTE`` (builder.model.settings), and ``write.quotas`` enforces the quotas
of owners. Limits of pages, forms and sign-ins are fixed constants, each beside the code that it
limits.
"""

from typing import NamedTuple


class Quotas(NamedTuple):
    """Limits for each owner; 0: none. Also the amounts that an owner has."""

    repos: int = 0
    versions: int = 0
    bytes: int = 0


NO_QUOTAS = Quotas()
# The default quotas of a hub where anyone can sign up. Beyond them, a publication is refused.
OPEN_SIGNUP_QUOTAS = Quotas(repos=100, versions=5_000, bytes=100 * 1024 * 1024)


def default_quotas(open_signup: bool) -> Quotas:
    """Returns the quotas of a hub whose operator sets none."""
    return OPEN_SIGNUP_QUOTAS if open_signup else NO_QUOTAS


class Limits(NamedTuple):
    """All limits of a publish service; 0: no limit.

    ``publications``: a minute and owner, changes of labels included. ``checks`` of drafts, and
    requests with ``wrong_tokens``: a minute and client address.
    """

    publications: int = 30
    checks: int = 240
    wrong_tokens: int = 20
    quotas: Quotas = NO_QUOTAS


DEFAULT_LIMITS = Limits()
