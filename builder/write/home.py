"""Renders and writes the first page of the site: the best of each list, and the tags."""

from markupsafe import Markup

from builder.model.records import Tag
from builder.model.routes import SORTS
from builder.render.pages import Pages
from builder.store.site import Site
from builder.store.state import State

HOME_ROWS = 10
HOME_TAGS = 40


def write_home(state: State, site: Site, pages: Pages) -> None:
    """Write it as the state is now."""
    rows = {
        sort: state.repos.rows([key for key, _ in state.lists.order(None, sort, HOME_ROWS)])
        for sort in SORTS
    }
    cards = {sort: Markup(b"".join(card for _, card in rows[sort]).decode()) for sort in SORTS}
    tags = [Tag(name, count) for name, count in state.tags.counts()[:HOME_TAGS]]
    repos_count, _ = state.repos.totals()
    page = pages.render("home.html", cards=cards, tags=tags, repos_count=repos_count)
    site.write_fixed("home", page)
