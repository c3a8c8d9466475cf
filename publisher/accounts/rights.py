"""Checks that an actor may do something for an owner now: with this token, in this role; and the
protected labels: only their owner, signed in, or a token that names them can move them.

The methods raise RequestError: ``not_owner``, ``insufficient_scope``, and neither reveals which
repos exist; ``storage_unavailable`` as the database does.
"""

from collections.abc import Collection

from builder.model import names
from builder.model.errors import Detail, RequestError, validation_failed
from builder.model.plural import some_of
from publisher.accounts.database import Database
from publisher.accounts.events import Events
from publisher.accounts.teams import MAINTAINER, Actor, Teams
from publisher.accounts.token import LABEL, PUBLISH
from publisher.accounts.tokens import Accounts

PROTECTED_MAX = 1000
_NAMES_SHOWN = 5


class Rights:
    """The rights that a database gives."""

    def __init__(self, database: Database) -> None:
        self._accounts = Accounts(database)
        self._protected = ProtectedLabels(database)
        self._teams = Teams(database)

    def check_may_publish(self, actor: Actor, name: str, labels: Collection[str] = ()) -> None:
        """Checks that an actor may publish to this repo, which need not exist, and move these
        ``labels`` with it.
        """
        if actor.token and PUBLISH not in actor.token.rights:
            raise RequestError(
                "insufficient_scope",
                "This job only moves labels. To publish, add a trusted publisher that publishes."
                if actor.token.trusted_publisher
                else "This token cannot publish. Use a token that has the right `publish`; create "
                "one in your account.",
            )
        self._check_repo(actor, name)
        if labels:
            self.check_may_label(actor, name, labels)

    def check_may_label(self, actor: Actor, name: str, labels: Collection[str]) -> None:
        """Checks that an actor may change these labels of a repo; none of them need exist."""
        token = actor.token
        if token and LABEL not in token.rights:
            raise RequestError(
                "insufficient_scope",
                "This token cannot move labels. Use a token that has the right `label`; create "
                "one in your account.",
            )
        self._check_repo(actor, name)
        if token and token.labels and not set(labels) <= set(token.labels):
            raise RequestError(
                "insufficient_scope",
                f"This token moves only these labels: {', '.join(token.labels)}. Create a token "
                "for more labels in your account.",
            )
        locked = self._protected.in_repo(actor.owner, name.lower()) & set(labels)
        if locked:
            self.check_maintains(actor, f"move {min(locked)}, which is protected")
        if token and not locked <= set(token.labels):
            (label, *_) = sorted(locked - set(token.labels))
            raise RequestError(
                "insufficient_scope",
                f"The label {label} is protected: only a token that names it moves it. Create one "
                f"that is limited to the label {label}, or move it in your account.",
            )

    def check_maintains(self, actor: Actor, what: str) -> None:
        """Checks that an actor maintains the owner's prompts. ``what``: what the actor wants to do,
        in words.
        """
        self.check_has_role(actor)
        if actor.role != MAINTAINER:
            who = some_of(self._teams.maintainers(actor.owner), _NAMES_SHOWN)
            raise RequestError(
                "insufficient_scope",
                f"You cannot {what}: {actor.name} is a writer of {actor.owner}. Ask a maintainer: "
                f"{who}.",
            )

    def check_has_role(self, actor: Actor) -> None:
        """Checks that an actor may act for the owner."""
        if actor.role:
            return
        if actor.token:
            raise RequestError(
                "insufficient_scope",
                f"{actor.name} may not publish for {actor.owner}. If this is a team, ask one of "
                "its maintainers to add you.",
            )
        raise RequestError(
            "not_owner",
            f"This belongs to {actor.owner}, and you are signed in as {actor.name}. You can change "
            "your own prompts and those of your teams: open one under My prompts.",
        )

    def _check_repo(self, actor: Actor, name: str) -> None:
        token, owner, repo = actor.token, actor.owner, name.lower()
        if token and not token.reaches(owner):
            whose = " and ".join(dict.fromkeys(whose for whose, _ in token.scopes))
            raise RequestError(
                "not_owner",
                f"This token publishes only for {whose}. Publish to {whose}/NAME, or use a token "
                "of the other owner.",
            )
        self.check_has_role(actor)
        if token and not token.reaches(owner, repo):
            limits = [one for whose, one in token.scopes if whose in ("*", owner)]
            raise RequestError(
                "insufficient_scope",
                f"This token is limited to these prompts of {owner}: "
                f"{some_of(limits, _NAMES_SHOWN)}. Create a token for more prompts in your "
                "account.",
            )
        is_personal = token and token.trusted_publisher is None
        if is_personal and repo in self._accounts.trusted_only(owner):
            raise RequestError(
                "insufficient_scope",
                f"{owner}/{repo} accepts only trusted publishers. Publish from their CI job, or "
                "allow tokens in your account.",
            )


class ProtectedLabels:
    """The protected labels of a database. ``repo`` is empty for all of the owner's."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._events = Events(database)

    def of(self, owner: str) -> list[tuple[str, str]]:
        """Returns the repo and the label of all that an owner protects, sorted."""
        return self._database.execute(
            "SELECT repo, label FROM protected_label WHERE owner = ? ORDER BY repo, label", (owner,)
        )

    def in_repo(self, owner: str, repo: str) -> set[str]:
        """Returns the labels that are protected in a repo."""
        rows = self._database.execute(
            "SELECT label FROM protected_label WHERE owner = ? AND repo IN ('', ?)", (owner, repo)
        )
        return {label for (label,) in rows}

    def set(self, owner: str, repo: str, label: str, is_on: bool) -> bool:
        """Protects a label, or stops protecting it. True if that changed anything.

        Raises RequestError ``invalid_name``, ``invalid_label``, ``name_reserved``;
        ``validation_failed`` for one label too many.
        """
        if repo:
            names.check_repo(repo)
        names.check_new_label(label)
        with self._database.transaction():
            there = self.of(owner)
            if is_on == ((repo, label) in there):
                return False
            if is_on and len(there) >= PROTECTED_MAX:
                message = f"is one too many: an owner protects at most {PROTECTED_MAX:,} labels"
                raise validation_failed(Detail("label", message))
            self._database.execute(
                "INSERT INTO protected_label VALUES (?, ?, ?)"
                if is_on
                else "DELETE FROM protected_label WHERE owner = ? AND repo = ? AND label = ?",
                (owner, repo, label),
            )
            note = f"{label} of {owner}/{repo or '*'}"
            kind = "label_protected" if is_on else "label_unprotected"
            self._events.note(owner, kind, subject=note, note=note)
        return True
