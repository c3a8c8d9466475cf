"""Hashes that cost nothing."""

from collections.abc import Iterator

import argon2
import pytest

from publisher.accounts.people import passwords as passwords_module


@pytest.fixture
def costly_hashes() -> None:
    """Hashes cost what they cost a hub."""


@pytest.fixture(autouse=True)
def _hashes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hashes cost nothing, but to tests of their cost."""
    if "costly_hashes" not in request.fixturenames:
        hasher = argon2.PasswordHasher(time_cost=1, memory_cost=128, parallelism=1)
        monkeypatch.setattr(passwords_module, "_hasher", hasher)
    passwords_module._dummy.cache_clear()
    yield
    passwords_module._dummy.cache_clear()
