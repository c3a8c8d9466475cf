"""Renders and writes an owner's record, feed and page."""

from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.render import derive, envelopes, feeds, skills
from builder.render.pages import pages_of
from builder.store import content
from builder.store.site import Site
from builder.store.state import State
from builder.write.withdrawn import files_of

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
        state.orphans.add(files_of("owner", owner=owner))
        return
    user = derive.user_record(
        owner, profile, state.owners.joined_at(owner), len(rows), state.pulls.of_owner(owner)
    )
    summaries = [summary for summary, _ in rows]
    data = envelopes.single(envelopes.user_bytes(user, summaries))
    site.write(BY_NAME["user"].file_for(owner=owner), data)
    feed = feeds.owner_feed(settings, user, summaries)
    site.write(BY_NAME["owner_feed"].file_for(owner=owner), feed)
    found = state.repos.skills_of_owner(owner)
    site.write(BY_NAME["owner_skill_index"].file_for(owner=owner), skills.owner_index(found))
    site.write(BY_NAME["marketplace"].file_for(owner=owner), skills.marketplace(user, found))
    pages = pages_of(settings)
    cards = [card for _, card in rows[:ROWS_MAX]]
    page = pages.render_list("owner.html", cards, user=user, listed_count=len(cards))
    site.write(BY_NAME["owner_page"].file_for(owner=owner), page)
    state.owners.put(owner, mark)
