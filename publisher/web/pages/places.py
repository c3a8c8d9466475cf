"""The places of the account settings, and the pages to which a sign-in may lead."""

import re
from urllib.parse import unquote

from builder.model.matching import match_url
from builder.model.names import NAME_PATTERN
from builder.model.routes import HTML
from builder.model.service_urls import ACCOUNT_URL, LOGIN_URL
from builder.model.settings import Settings

# The places of the account settings, in the order in which they are shown.
PLACES = (
    ("prompts", "My prompts"),
    ("tokens", "Tokens"),
    ("publishers", "Trusted publishers"),
    ("labels", "Labels"),
    ("teams", "Teams"),
    ("profile", "Profile"),
    ("security", "Security"),
)
# Only operators see this one.
PEOPLE = ("people", "People")
LOGIN, START = LOGIN_URL.removeprefix(ACCOUNT_URL), f"/{PLACES[0][0]}"

# Other pages that a sign-in may lead to: those of one prompt, team or person, and of a draft.
_own_page = re.compile(
    rf"/prompts/(?:new|{NAME_PATTERN}/{NAME_PATTERN}(?:/[a-z]+)?)(?:\?draft=[0-9a-f]{{16}})?"
    rf"|/join|/teams/{NAME_PATTERN}|/people(?:/{NAME_PATTERN})?"
)

_page_query = re.compile(r"[A-Za-z0-9%=&+:@!$'()*,;~._/-]{1,1000}")


def after_login(path: str | None) -> str:
    """Returns the path to open after a sign-in: an account page, whatever a link names."""
    known = {f"/{place}" for place, _ in PLACES}
    return path if path and (path in known or _own_page.fullmatch(path)) else START


def site_page(settings: Settings, target: str) -> str | None:
    """Returns the URL, without host, of a page of the site, from a path and query as in a URL; None
    if the table of pages has no such page. It is rebuilt from the table, so it leads nowhere else.
    """
    path, _, query = target.partition("?")
    found = match_url(unquote(path).removeprefix(settings.base_path) or "/")
    if found is None or found.route.media != HTML:
        return None
    url = settings.base_path + found.url
    return f"{url}?{query}" if _page_query.fullmatch(query) else url
