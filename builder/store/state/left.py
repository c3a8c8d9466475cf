"""Finds the files that a site has, whatever the state knows: after a crash, for a withdrawal, and
where no state is known.
"""

from collections.abc import Iterator
from functools import lru_cache

from builder.model.matching import Match, match_file
from builder.model.objects import objects_of
from builder.model.routes import HOST_FILES, ROUTES
from builder.store.site import Site
from builder.store.state import State

# A repo's files are below these folders of its owner, and have its name.
_FOLDERS = sorted({route.file.partition("{name}")[0] for route in ROUTES if "{name}" in route.file})
# A walk through a site meets most files of an object one after the other.
_OBJECTS_KEPT = 64


def files_left(site: Site, owner: str, name: str) -> Iterator[tuple[str, Match]]:
    """The files of a repo on the site, each with its route."""
    for template in _FOLDERS:
        folder = template.format(owner=owner)
        for file in site.files_named(folder, name):
            match = match_file(file)
            if match and (match.params.get("owner"), match.params.get("name")) == (owner, name):
                yield file, match


def is_urgent(match: Match) -> bool:
    """True if a file that is not wanted is removed at once: a removed label must not be found."""
    return "label" in match.params or "ref" in match.params


class Wanted:
    """The files that belong on the site, by the state."""

    def __init__(self, state: State) -> None:
        self._of = lru_cache(_OBJECTS_KEPT)(state.files.of)

    def __contains__(self, file: str) -> bool:
        match = match_file(file)
        if not match:
            return file in HOST_FILES
        if not match.params and match.route.scope != "langfuse":
            return True  # Some of these are written after the orphans are removed.
        return any(file in self._of(one) for one in objects_of(match))
