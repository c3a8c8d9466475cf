"""The person who acts, the owner for whom, and the way."""

from typing import NamedTuple

from publisher.accounts.token import Token

# The roles of a team's members. People are maintainers of their own prompts.
MAINTAINER, WRITER = "maintainer", "writer"
ROLES = (WRITER, MAINTAINER)


class Actor(NamedTuple):
    """``name``: whom records name. That is a person; for tokens of the operator and of trusted
    jobs, the owner. ``role`` is one of ROLES, or empty: ``name`` may do nothing for ``owner``.
    ``token``: None in the browser.
    """

    name: str
    owner: str
    role: str
    token: Token | None = None

    @property
    def how(self) -> str:
        """The way in which the actor acts, for people: ``in the browser``."""
        if not self.token:
            return "in the browser"
        source = self.token.source
        return f"by a job of {source.project}" if source else f"with token {self.token.name}"
