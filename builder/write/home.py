"""Renders and writes the first page of the site: the operator's words, tags, the top prompts."""

from builder.model.records import Tag
from builder.model.routes import SORTS
from builder.render.intro import intro
from builder.render.pages import Pages
from builder.store.site import Site
from builder.store.state import State

# Rows of three or two.
HOME_CARDS = 12
HOME_TAGS = 10


def write_home(state: State, site: Site, pages: Pages) -> None:
    """Write it as the state is now."""
    order = state.lists.order(None, SORTS[0], HOME_CARDS)
    cards = [card for _, card in state.repos.rows([key for key, _ in order])]
    tags = [Tag(name, count) for name, count in state.tags.counts()[:HOME_TAGS]]
    repos_count, _ = state.repos.totals()
    page = pages.render_list(
        "home.html", cards, intro=intro(state.home()[1]), tags=tags, repos_count=repos_count
    )
    site.write_fixed("home", page)
