"""Takes free handles without an invitation: signing up, where the operator allows it, and teams.

A handle is taken if it belongs to an owner or has a folder in the content tree: its new owner could
change the prompts in that folder.
"""

import contextlib
from collections.abc import Iterable
from datetime import datetime

from builder.model import names
from builder.model.errors import Detail, OperatorError, RequestError
from builder.store.content import list_owners
from builder.text.plain_words import plain_words
from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.owners import skeleton
from publisher.accounts.people.identities import Identities
from publisher.accounts.people.passwords import Passwords, hash_new
from publisher.accounts.teams import MAINTAINED_MAX, MAINTAINER, Teams
from publisher.accounts.tokens import Accounts

_RESERVED = {skeleton(handle): handle for handle in sorted(names.RESERVED_OWNERS)}


def check_free_handle(handle: str, taken: Iterable[str]) -> str:
    """Returns ``handle`` if a new owner may take it. ``taken``: the handles of existing owners.

    Raises RequestError ``invalid_name``, ``name_reserved``; ``validation_failed``, with the field
    ``handle`` as its detail, if it is taken, or looks like one that is taken or reserved.
    """
    names.check_new_owner(handle)
    look = skeleton(handle)
    if look in _RESERVED:
        raise _refusal(
            f"{handle} looks like {_RESERVED[look]}, which the site uses itself. Choose "
            "another handle."
        )
    alike = {other for other in taken if skeleton(other) == look}
    if handle in alike:
        raise _refusal(f"{handle} is taken. Choose another handle.")
    if alike:
        raise _refusal(
            f"{handle} looks too much like {min(alike)}, which is taken. Choose another handle."
        )
    return handle


def _refusal(message: str) -> RequestError:
    return RequestError("validation_failed", message, [Detail("handle", message)])


def sign_up(
    database: Database,
    content_root: str,
    handle: str,
    password: str,
    *,
    now: datetime | None = None,
) -> None:
    """Adds an owner who signs in with a password.

    Raises RequestError ``invalid_name``, ``name_reserved``; ``validation_failed`` for a handle that
    is taken or a weak password; ``unavailable`` where the content tree has faults.
    """
    folders = _folders_like(content_root, handle)
    # The hash is made before the transaction, as all other writers would wait for it. It is not
    # made for a handle that is taken anyway.
    _check_free(database, handle, folders)
    password_hash = hash_new(handle, password)
    with database.transaction():
        _add(database, handle, folders, now)
        Passwords(database).put_hash(handle, password_hash, now)


def sign_up_identity(
    database: Database,
    content_root: str,
    handle: str,
    issuer: str,
    subject: str,
    *,
    now: datetime | None = None,
) -> None:
    """Adds an owner who signs in with an OpenID identity.

    Raises as ``sign_up``; ``validation_failed`` also for an identity of another account.
    """
    folders = _folders_like(content_root, handle)
    with database.transaction():
        _add(database, handle, folders, now)
        Identities(database).add(handle, issuer, subject, now=now)


def propose_handle(database: Database, content_root: str, name: str) -> str:
    """Returns a handle for a person of this name that is free now; empty if none was found."""
    plain = plain_words(name.partition("@")[0], names.OWNER_CHARS_MAX - 3, "-")
    for handle in (plain, *(f"{plain}-{number}" for number in range(2, 10))):
        with contextlib.suppress(RequestError):
            _check_free(database, handle, _folders_like(content_root, handle))
            return handle
    return ""


def create_team(database: Database, content_root: str, team: str, person: str) -> None:
    """Creates a team with its first maintainer. Raises as ``sign_up``; ``rate_limited`` for a
    person who maintains too many.
    """
    folders, teams = _folders_like(content_root, team), Teams(database)
    with database.transaction():
        _check_free(database, team, folders)
        maintained = [role for role in teams.of(person).values() if role == MAINTAINER]
        if len(maintained) >= MAINTAINED_MAX:
            raise RequestError(
                "rate_limited",
                f"You maintain {len(maintained)} teams, which is the limit. Leave one first.",
            )
        teams.create(team, person)


def _folders_like(content_root: str, handle: str) -> list[str]:
    """Returns the owners in the content tree whose handles look like this one. The search reads all
    of them and takes long, so it comes before any transaction.
    """
    look = skeleton(handle)
    try:
        return [owner for owner in list_owners(content_root) if skeleton(owner) == look]
    except OperatorError as error:
        # A fault hides folders, so it is unknown which handles are taken.
        raise RequestError(
            "unavailable",
            "Sign-up is closed because the content of this hub has faults. The operator can "
            "run `hubctl check` to see them. Try again later.",
        ) from error


def _add(database: Database, handle: str, folders: list[str], now: datetime | None) -> None:
    _check_free(database, handle, folders)
    Accounts(database).add_owner(handle, now)
    Events(database).note(handle, "signed_up", now=now)


def _check_free(database: Database, handle: str, folders: list[str]) -> None:
    check_free_handle(handle, [*Accounts(database).look_like(handle), *folders])
