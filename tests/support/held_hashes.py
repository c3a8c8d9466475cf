"""Delays the hashing of passwords, as many simultaneous sign-ins do."""

import threading
from collections.abc import Iterator

import argon2
import pytest

from tests.support.servers import DEADLINE_SECONDS


class HeldHashes:
    """While this exists, a hash ends only after ``let_go``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._is_over = threading.Event()
        self.let_go = self._is_over.set
        for name in ("hash", "verify"):
            monkeypatch.setattr(argon2.PasswordHasher, name, self._held(name))

    def _held(self, name: str):
        real = getattr(argon2.PasswordHasher, name)

        def call(*args):
            assert self._is_over.wait(DEADLINE_SECONDS)
            return real(*args)

        return call


@pytest.fixture
def held_hashes(passwords: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldHashes]:
    """Holds up all hashes except those of the fixture ``passwords``."""
    held = HeldHashes(monkeypatch)
    yield held
    held.let_go()
