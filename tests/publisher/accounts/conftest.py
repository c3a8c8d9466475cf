from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from builder.model.errors import RequestError
from publisher.accounts.database import Database
from publisher.accounts.tokens import Accounts

NOW = datetime(2026, 1, 31, 9, 30, 15, 999_999, tzinfo=UTC)
NOW_SECONDS = 1_769_851_815


@pytest.fixture
def database(accounts_place: str) -> Iterator[Database]:
    with Database(accounts_place) as opened:
        yield opened


@pytest.fixture
def accounts(database: Database) -> Accounts:
    """Accounts with the owner ann."""
    made = Accounts(database)
    made.add_owner("ann", NOW)
    return made


def refusal(accounts: Accounts, text: str | None, now: datetime = NOW) -> RequestError:
    with pytest.raises(RequestError) as caught:
        accounts.authenticate(text, now)
    return caught.value
