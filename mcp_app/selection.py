"""A part of the catalogue: ``/mcp?owner=ada``, ``/mcp?tags=sql,review``."""

from typing import NamedTuple

from builder.model import names
from builder.model.answers import RepoSummary
from builder.search.queries import parse_parameters, parse_tags
from mcp_app.unknown import unknown_argument


class Selection(NamedTuple):
    """The repos of one owner, those with all of some tags, or both; all repos by default."""

    owner: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return self == WHOLE

    def has(self, repo: RepoSummary) -> bool:
        return self.owner in (None, repo.owner) and set(self.tags) <= set(repo.tags)


WHOLE = Selection()


def parse_selection(query: bytes) -> Selection:
    """Read an endpoint's query. Raises RequestError ``invalid_parameter`` or ``invalid_name``.

    Rejects an unknown parameter: a mistyped one would open the whole catalogue.
    """
    if not query:
        return WHOLE
    parameters = parse_parameters(query, Selection._fields)
    if not parameters.keys() <= {*Selection._fields}:
        raise unknown_argument("address", parameters, Selection._fields, "query parameter")
    owner, tags = parameters.get("owner"), parameters.get("tags")
    return Selection(
        owner=names.check_owner(owner) if owner is not None else None,
        tags=parse_tags(tags, "tags") if tags is not None else (),
    )
