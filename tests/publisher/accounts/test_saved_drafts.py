"""Drafts that owners have saved."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from builder.model.errors import RequestError
from publisher.accounts.database import Database
from publisher.accounts.saved_drafts import (
    DRAFT_BYTES_MAX,
    DRAFT_SECONDS,
    DRAFTS_PER_AUTHOR_MAX,
    SavedDrafts,
)
from publisher.accounts.tokens import Accounts

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def drafts(accounts_place: str) -> Iterator[SavedDrafts]:
    with Database(accounts_place) as database:
        for owner in ("ada", "bob"):
            Accounts(database).add_owner(owner, NOW)
        yield SavedDrafts(database)


def test_save_again_and_discard(drafts: SavedDrafts) -> None:
    first = drafts.save("ada", ("ada", "story"), "One", b"1", now=NOW)
    later = NOW + timedelta(hours=1)
    second = drafts.save("ada", ("ada", "story"), "Two", b"2", over=first, now=later)
    assert (second.id, second.revision) == (first.id, 2)
    assert drafts.find("ada", first.id, later) == (second, b"2")
    assert drafts.find("bob", first.id, later) is None
    assert (
        drafts.of("ada", "ada", "story", later) == [second]
        and drafts.of("ada", None, "", later) == []
    )
    assert not drafts.discard("bob", first.id) and not drafts.discard("ada", first.id, 1)
    assert drafts.discard("ada", first.id, 2) and drafts.of("ada", None, None, later) == []


def test_what_another_window_has_saved_is_not_replaced(drafts: SavedDrafts) -> None:
    first = drafts.save("ada", ("ada", ""), "One", b"1", now=NOW)
    drafts.save("ada", ("ada", ""), "Two", b"2", over=first, now=NOW)
    third = drafts.save("ada", ("ada", ""), "Three", b"3", over=first, now=NOW)
    assert third.id != first.id
    data = [drafts.find("ada", one.id, NOW)[1] for one in drafts.of("ada", None, None, NOW)]
    assert sorted(data) == [b"2", b"3"]


def test_a_draft_is_kept_for_so_long_after_its_last_change(drafts: SavedDrafts) -> None:
    kept = timedelta(seconds=DRAFT_SECONDS)
    old = drafts.save("ada", ("ada", ""), "Old", b"", now=NOW)
    used = drafts.save("ada", ("ada", ""), "Used", b"", now=NOW)
    used = drafts.save("ada", ("ada", ""), "Used", b"", over=used, now=NOW + timedelta(days=1))
    assert drafts.of("ada", None, None, NOW + kept) == [used]
    assert drafts.find("ada", old.id, NOW + kept) is None
    # The next draft of another user removes expired ones from the disk.
    drafts.save("bob", ("bob", ""), "New", b"", now=NOW + kept)
    assert drafts.of("ada", None, None, NOW) == [used]


def test_limits(drafts: SavedDrafts) -> None:
    for number in range(DRAFTS_PER_AUTHOR_MAX):
        last = drafts.save("ada", ("ada", ""), f"Draft {number}", b"", now=NOW)
    with pytest.raises(RequestError, match="50 drafts, which is the limit"):
        drafts.save("ada", ("ada", ""), "One more", b"", now=NOW)
    drafts.save("ada", ("ada", ""), "Again", b"", over=last, now=NOW)
    drafts.save("bob", ("bob", ""), "Other", b"x" * DRAFT_BYTES_MAX, now=NOW)
    with pytest.raises(RequestError, match="524,288 is the limit"):
        drafts.save("bob", ("bob", ""), "Large", b"x" * (DRAFT_BYTES_MAX + 1), now=NOW)
