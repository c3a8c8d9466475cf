"""Writes the files that depend on code and settings alone."""

from builder.model.answers import ErrorBody
from builder.model.envelopes import error_envelope
from builder.model.messages import MESSAGES
from builder.model.routes import SCRIPTS
from builder.model.settings import Settings
from builder.render import clients, colours, feeds, openapi
from builder.render.pages import pages_of
from builder.render.picture import picture
from builder.search.rules import search_rules
from builder.store.site import Site


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
    for name in SCRIPTS:
        site.write_fixed(f"{name}_script", colours.read_asset(f"{name}.js"))
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
