"""Renders and writes an owner's record, feed and page."""

from collections.abc import Iterator

from builder.model.answers import User
from builder.model.objects import id_of
from builder.model.routes import ROUTES
from builder.model.settings import Settings
from builder.render import derive, envelopes, feeds, skills
from builder.render.pages import pages_of
from builder.store import content
from builder.store.site import Site
from builder.store.state import State

# An owner's page lists the latest of more prompts; the record lists all of them.
ROWS_MAX = 500


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
    site.put({"owner": owner}, files_of_owner(settings, user, rows, found))
    state.owners.put(owner, mark)


def files_of_owner(
    settings: Settings, user: User, rows: list[tuple[bytes, bytes]], found: list[bytes]
) -> Iterator[tuple[str, bytes]]:
    """The files of an owner. ``rows``: summary and card of each repo, latest updated first;
    ``found``: their skills, the most used first.
    """
    summaries = [summary for summary, _ in rows]
    yield "user", envelopes.single(envelopes.user_bytes(user, summaries))
    yield "owner_feed", feeds.owner_feed(settings, user, summaries)
    yield "owner_skill_index", skills.owner_index(found)
    yield "marketplace", skills.marketplace(user, found)
    cards = [card for _, card in rows[:ROWS_MAX]]
    page = pages_of(settings).render_list("owner.html", cards, user=user, listed_count=len(cards))
    yield "owner_page", page


def owner_files(owner: str) -> list[str]:
    """The files that an owner may have, whatever the state knows."""
    return [route.file_for(owner=owner) for route in ROUTES if route.scope == "owner"]
