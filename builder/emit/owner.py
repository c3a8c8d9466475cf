"""Renders and writes an owner's record, feed and page."""

from builder.emit import files
from builder.model.objects import id_of
from builder.model.routes import ROUTES
from builder.model.settings import Settings
from builder.render import derive
from builder.store import content
from builder.store.site import Site
from builder.store.state import State


def write_owner(owner: str, settings: Settings, state: State, site: Site) -> None:
    """Write an owner's files, and store the mark of the profile that they were made from.

    An owner with neither profile nor repos is removed from the state. Raises ContentError.
    """
    mark = content.owner_mark(settings.content, owner)
    profile = content.read_owner(settings.content, owner)
    rows = state.repos.rows_of_owner(owner)
    if not profile and not rows:
        state.owners.remove(owner)
        state.files.remove(id_of({"owner": owner}))
        state.orphans.add(owner_files(owner))
        return
    user = derive.user_record(
        owner, profile, state.owners.joined_at(owner), len(rows), state.pulls.of_owner(owner)
    )
    found = state.repos.skills_of_owner(owner)
    site.put({"owner": owner}, files.of_owner(settings, user, rows, found))
    state.owners.put(owner, mark)


def owner_files(owner: str) -> list[str]:
    """The files that an owner may have, whatever the state knows."""
    return [route.file_for(owner=owner) for route in ROUTES if route.scope == "owner"]
