"""The repos that the pages offer an owner to choose from."""

import os

from builder.model.errors import OperatorError
from builder.store import content

# More are not offered one by one: one writes the names of those that are meant.
OFFERED_MAX = 100


def repos_of(root: str, owner: str) -> list[str] | None:
    """The names of an owner's repos, sorted; None where a fault in the content hides them."""
    if not os.path.isdir(f"{root}/{owner}"):
        return []
    try:
        return content.list_repos(root, owner)
    except OperatorError:
        return None
