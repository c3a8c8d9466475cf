"""The holders of tokens, as the service finds them in its accounts."""

from publisher.accounts.rights import Rights
from publisher.accounts.teams import MAINTAINER, Actor
from publisher.accounts.token import Token
from publisher.accounts.tokens import Accounts


def holder(token: Token, owner: str) -> Actor:
    """Whoever has the token, for an owner who has no team."""
    owner = owner.lower()
    return Actor(token.owner, owner, MAINTAINER if owner == token.owner else "", token)


def rights_of(accounts: Accounts) -> Rights:
    """The checks of the rights that the database of these accounts gives."""
    return Rights(accounts._database)
