"""Passwords: which are accepted, whose are right, and that their work reveals no handles."""

import itertools
import sys
import threading
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

import argon2
import pytest

from builder.model.errors import Detail, RequestError
from publisher.accounts.database import Database
from publisher.accounts.people.locks import lock, unlock
from publisher.accounts.people.passwords import (
    HASHES_AT_ONCE,
    PASSWORD_CHARS_MAX,
    PASSWORD_CHARS_MIN,
    WAITING_MAX,
    Passwords,
    check_password,
    hash_new,
)
from publisher.accounts.tokens import Accounts
from tests.support.held_hashes import HeldHashes
from tests.support.postgres import only_sqlite
from tests.support.servers import DEADLINE_SECONDS

GOOD = "violet otter lamp 7"
OLD_HASHER = argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
LONGEST = ("violet otter lamp 7 and more! " * 9)[:PASSWORD_CHARS_MAX]


@pytest.fixture
def passwords(database: Database) -> Passwords:
    """Passwords; ann has one, bob none."""
    for owner in ("ann", "bob"):
        Accounts(database).add_owner(owner)
    made = Passwords(database)
    made.put("ann", GOOD)
    return made


def refusal(password: str, *about: str) -> str:
    with pytest.raises(RequestError) as caught:
        check_password(password, *about)
    message = str(caught.value)
    assert caught.value.code == "validation_failed"
    assert caught.value.details == [Detail("password", message)]
    assert not password or password not in message
    return message


@pytest.mark.parametrize(
    "password",
    [
        GOOD,
        LONGEST,
        "x7!kQp2#mZ9w4rT",
        "zeitgeist-lampe",
        "四角い猫が丸い箱で眠る夜の三時",
        "🦦🔦🟣🌧️🚲🧊🪁🎻🥨🗿🧶🦔🌵🪐🧭",
    ],
)
def test_good_passwords(password: str):
    check_password(password, "ann")


@pytest.mark.parametrize(
    "password",
    [
        "password12345678", "iloveyou12345678", "qwertyuiop12345", "P@$$w0rdP@$$w0rd",
        "a" * 15, "1234567890" * 25, "ann-ann-ann-ann", "\udcff" * 15, "LiverpoolLiverpool",
    ],
)  # fmt: skip
def test_what_guessers_try_first(password: str):
    assert "easy to guess" in refusal(password, "ann")


def test_the_own_handle_is_easily_guessed():
    check_password("mara-okafor-lund!", "somebody-else")
    assert "your handle" in refusal("mara-okafor-lund!", "mara-okafor-lund")
    # The check for one handle does not affect the next.
    check_password("mara-okafor-lund!", "somebody-else")


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    seconds = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(seconds)


def test_what_is_said_about_one_is_not_used_for_another_at_the_same_time(hasty_threads: None):
    handles = [f"zyqx{n}kvw-jfbh{n}" for n in range(20)]

    def is_refused(password: str, handle: str) -> bool:
        try:
            check_password(password, handle)
        except RequestError:
            return True
        return False

    with ThreadPoolExecutor(8) as pool:
        own = pool.map(is_refused, [f"{handle}!" for handle in handles], handles)
        other = pool.map(is_refused, [f"{handle}!" for handle in handles], ["ann"] * 20)
        assert (list(own), list(other)) == ([True] * 20, [False] * 20)


def test_lengths_in_normal_form():
    assert "at least 15 characters" in refusal("")
    assert "at least 15" in refusal("x7!kQp2#mZ9w4r")
    assert len("x7!kQp2#mZ9w4r") == PASSWORD_CHARS_MIN - 1
    # Fifteen code points, which the normal form reduces to fourteen.
    assert "at least 15" in refusal("x7!kQp2#mZ9w4e\u0301")
    assert "at most 256" in refusal(LONGEST + "!")
    # Fourteen code points, which the normal form extends to more than 256.
    assert "at most 256" in refusal("\ufdfa" * 14 + "x7!kQp2#mZ9w")


def test_a_hostile_password_is_judged_by_its_beginning():
    # The estimate of a whole megabyte of letter substitutions would not end.
    hostile = "4@8({[<369|1!70$5+7%2" * 12
    check_password(hostile[:PASSWORD_CHARS_MAX])
    assert "at most" in refusal(hostile * 4000)


def test_a_password_of_12_characters_from_an_earlier_release_still_works(passwords: Passwords):
    passwords.put_hash("bob", OLD_HASHER.hash("x7!kQp2#mZ9w"))
    assert passwords.verify("bob", "x7!kQp2#mZ9w")


def test_verify(passwords: Passwords):
    assert passwords.has("ann") and not passwords.has("bob") and not passwords.has("nobody")
    assert passwords.verify("ann", GOOD)
    for wrong in ("", GOOD.upper(), GOOD + " ", GOOD[:-1], "\0", "\udcff", "x" * 300):
        assert not passwords.verify("ann", wrong)
    assert not passwords.verify("bob", GOOD)


def test_the_same_keys_on_another_device(passwords: Passwords):
    composed = unicodedata.normalize("NFC", "kühler Bärenöl-Süßstoff")
    decomposed = unicodedata.normalize("NFD", composed)
    assert composed != decomposed
    passwords.put("bob", decomposed)
    assert passwords.verify("bob", composed) and passwords.verify("bob", decomposed)


@only_sqlite
@pytest.mark.costly_hashes
def test_a_new_password_replaces_the_old(database: Database, passwords: Passwords):
    passwords.put("ann", LONGEST)
    assert passwords.verify("ann", LONGEST) and not passwords.verify("ann", GOOD)
    # All of it counts, not only what is judged.
    assert not passwords.verify("ann", LONGEST[:-1] + "?")
    with pytest.raises(RequestError):
        passwords.put("ann", "password1234")
    assert passwords.verify("ann", LONGEST)
    ((stored,),) = database.execute("SELECT hash FROM password")
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=")


@only_sqlite
@pytest.mark.costly_hashes
def test_the_same_work_for_handles_without_a_password(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
):
    real = argon2.PasswordHasher.verify
    work = []

    def verify(self: argon2.PasswordHasher, stored: str, password: bytes) -> bool:
        work.append((stored.rsplit("$", 2)[0], len(stored), password))
        return real(self, stored, password)

    passwords.verify("nobody", GOOD)
    monkeypatch.setattr(argon2.PasswordHasher, "verify", verify)
    hashes = []
    monkeypatch.setattr(argon2.PasswordHasher, "hash", lambda *args: hashes.append(args))
    handles = ("bob", "nobody", "", "a/b", "Ann", "\udcff", "\0", "api", "x" * 10_000, "' OR 1=1")
    for handle in ("ann", *handles):
        assert not passwords.verify(handle, "a wrong password")
    assert len(work) == 1 + len(handles) and len(set(work)) == 1
    assert hashes == []
    # A password that is too long is wrong without a hash, for every handle.
    work.clear()
    for handle in ("ann", *handles):
        assert not passwords.verify(handle, "x" * (PASSWORD_CHARS_MAX + 1))
    assert work == []


def test_what_was_verified_is_the_password_until_it_is_changed(
    database: Database, passwords: Passwords
):
    verified = passwords.verify("ann", GOOD)
    assert verified and passwords.is_still("ann", verified)
    assert not passwords.is_still("ann", None) and not passwords.is_still("bob", verified)
    assert passwords.is_still("bob", None)
    # The same password again is a new one, too.
    passwords.put("ann", GOOD)
    assert not passwords.is_still("ann", verified)
    assert passwords.is_still("ann", passwords.verify("ann", GOOD))


def test_one_who_is_locked_out_has_no_right_password(database: Database, passwords: Passwords):
    lock(database, "ann")
    assert passwords.verify("ann", GOOD) is None
    unlock(database, "ann")
    assert passwords.verify("ann", GOOD)


def test_two_at_once_who_renew_a_hash(database: Database, passwords: Passwords):
    passwords.put_hash("bob", OLD_HASHER.hash(GOOD))
    with ThreadPoolExecutor(4) as pool:
        verified = list(pool.map(lambda _: passwords.verify("bob", GOOD), range(4)))
    assert len(set(verified)) == 1 and passwords.is_still("bob", verified[0])


@pytest.mark.costly_hashes
def test_hashes_of_older_parameters_are_renewed(database: Database, passwords: Passwords):
    old = OLD_HASHER.hash(GOOD)
    passwords.put_hash("bob", old)

    def stored() -> str:
        return database.execute("SELECT hash FROM password WHERE owner = 'bob'")[0][0]

    assert not passwords.verify("bob", "a wrong password") and stored() == old
    assert passwords.verify("bob", GOOD)
    renewed = stored()
    assert renewed.startswith("$argon2id$v=19$m=65536,t=3,p=")
    assert passwords.verify("bob", GOOD) == stored() == renewed


@only_sqlite
@pytest.mark.costly_hashes
def test_at_most_two_hashes_at_a_time(passwords: Passwords, monkeypatch: pytest.MonkeyPatch):
    passwords.verify("no", GOOD)  # the first call makes the hash for unknown handles
    turn = threading.Lock()
    running, seen = 0, []

    def counted(real):
        def call(*args):
            nonlocal running
            with turn:
                running += 1
                seen.append(running)
            try:
                return real(*args)
            finally:
                with turn:
                    running -= 1

        return call

    for name in ("hash", "verify"):
        real = getattr(argon2.PasswordHasher, name)
        monkeypatch.setattr(argon2.PasswordHasher, name, counted(real))
    with ThreadPoolExecutor(HASHES_AT_ONCE + WAITING_MAX) as pool:
        verified = [pool.submit(passwords.verify, handle, GOOD) for handle in ["ann", "no"] * 2]
        put = [pool.submit(passwords.put, "bob", GOOD) for _ in range(2)]
        assert [bool(done.result()) for done in verified] == [True, False] * 2
        assert [done.result() for done in put] == [None] * 2
    assert len(seen) == 6 and max(seen) == 2


@pytest.mark.parametrize("refused", [1, 10])
def test_at_most_four_wait_for_a_hash(passwords: Passwords, held_hashes: HeldHashes, refused: int):
    places = HASHES_AT_ONCE + WAITING_MAX
    assert (HASHES_AT_ONCE, WAITING_MAX) == (2, 4)
    work = [
        lambda: passwords.verify("ann", GOOD), lambda: passwords.verify("nobody", GOOD),
        lambda: passwords.put("bob", GOOD), lambda: hash_new("bob", GOOD),
    ]  # fmt: skip
    with ThreadPoolExecutor(places + refused) as pool:
        jobs = [pool.submit(work[n % len(work)]) for n in range(places + refused)]
        # The others are held, so these are all that are answered.
        ended = itertools.islice(as_completed(jobs, DEADLINE_SECONDS), refused)
        errors = [one.exception() for one in ended]
        assert {(error.code, str(error)) for error in errors} == {("unavailable", str(errors[0]))}
        # All handles are refused alike here, so the refusal reveals none.
        for handle in ("ann", "bob", "nobody", "a/b", ""):
            with pytest.raises(RequestError) as caught:
                passwords.verify(handle, GOOD)
            assert str(caught.value) == str(errors[0])
        held_hashes.let_go()
        assert len([one for one in jobs if one.exception() is None]) == places
    # Every place is free again.
    with ThreadPoolExecutor(places) as pool:
        assert all(pool.map(passwords.verify, ["ann"] * places, [GOOD] * places))
