"""Checks that an actor may do something for an owner now: with this token, in this role.

The methods raise RequestError: ``not_owner``, ``insufficient_scope``, and neither reveals which
repos exist; ``storage_unavailable`` as the database does.
"""

from collections.abc import Collection

from builder.model.errors import RequestError
from builder.model.plural import some_of
from publisher.accounts.actors import MAINTAINER, Actor
from publisher.accounts.database import Database
from publisher.accounts.protected import ProtectedLabels
from publisher.accounts.teams import Teams
from publisher.accounts.token import LABEL, PUBLISH
from publisher.accounts.tokens import Accounts

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
