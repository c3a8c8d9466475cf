"""Password hashes that take no time, for tests of the code around passwords.

As a program, this is `hubctl` with such hashes.
"""

import functools
from collections.abc import Iterator

import argon2
import pytest

CHEAP = {"time_cost": 1, "memory_cost": 128, "parallelism": 1}


@pytest.fixture
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hashes of this process cost nothing."""
    from publisher.accounts.people import passwords

    passwords._dummy.cache_clear()  # the hash compared for unknown users
    monkeypatch.setattr(passwords, "_hasher", argon2.PasswordHasher(**CHEAP))
    yield
    passwords._dummy.cache_clear()


if __name__ == "__main__":
    argon2.PasswordHasher = functools.partial(argon2.PasswordHasher, **CHEAP)
    from cli.hubctl import main

    main()
