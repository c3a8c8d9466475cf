"""The present time, as the accounts database stores it."""

from datetime import UTC, datetime


def seconds(now: datetime | None) -> int:
    """Returns an aware moment in whole epoch seconds; None is the present."""
    return int((now or datetime.now(UTC)).timestamp())
