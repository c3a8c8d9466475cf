"""What time it is, as the accounts database has it."""

from datetime import UTC, datetime


def seconds(now: datetime | None) -> int:
    """An aware moment in whole epoch seconds; None is the present."""
    return int((now or datetime.now(UTC)).timestamp())
