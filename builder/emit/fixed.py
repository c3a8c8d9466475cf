"""Writes the files that depend on code and settings alone."""

import os

from builder.model.answers import ErrorBody
from builder.model.envelopes import error_envelope
from builder.model.messages import MESSAGES
from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.render import clients, colours, feeds, openapi
from builder.render.pages import pages_of
from builder.render.picture import picture
from builder.search.rules import search_rules
from builder.store.site import Site

_ASSET_ROUTES = (
    "site_script",
    "search_script",
    "results_script",
    "prompt_script",
    "version_script",
    "compare_script",
    "changes_script",
    "account_script",
    "editor_script",
    "editor_files_script",
    "marked_text_script",
    "codemirror_script",
)


def write_fixed_files(settings: Settings, site: Site) -> None:
    """Write the API's document, pages without prompts, assets, and the clients."""
    pages = pages_of(settings)
    document = openapi.document(settings)
    site.write_fixed("openapi", document)
    site.write_fixed("robots", feeds.robots(settings))
    site.write_fixed("search_page", pages.render("search.html"))
    site.write_fixed("not_found_page", pages.render("404.html"))
    site.write_fixed("unavailable_page", pages.render("503.html"))
    for route, code in {"not_found_error": "not_found", "unavailable_error": "unavailable"}.items():
        site.write_fixed(route, error_envelope(ErrorBody(code, MESSAGES[code])))
    site.write_fixed("no_jekyll", b"")
    for route in _ASSET_ROUTES:
        name = os.path.basename(BY_NAME[route].file)
        site.write_fixed(route, colours.read_asset(name))
    rules = search_rules()
    shell, checksum = clients.shell_client(settings.base_url, rules)
    script, types = clients.script_client(settings.base_url)
    for route, data in {
        "stylesheet": colours.stylesheet(settings.accent),
        "icon": colours.icon(settings.accent),
        "picture": picture(settings.site_name),
        "catalogue_script": clients.search_script(rules),
        "client": shell,
        "client_release": shell,
        "client_checksum": checksum,
        "python_client": clients.python_client(settings.base_url),
        "script_client": script,
        "script_client_types": types,
    }.items():
        site.write_fixed(route, data)
