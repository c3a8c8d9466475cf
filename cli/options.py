"""The options that several commands share, so that they mean the same on each."""

from collections.abc import Callable
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from builder.model.service_urls import url_at
from builder.model.settings import (
    DEFAULT_BASE_URL,
    DEFAULT_SEARCH,
    READS_PER_MINUTE,
    SEARCH_ENGINES,
    Settings,
    parse_base_url,
)
from builder.model.version_files import BYTES_HARD_MAX, BYTES_MAX
from builder.render.colours import check_accent
from builder.store import privacy
from cli.groups import grouped, in_order, setting
from cli.standard_error import say
from publisher.accounts.postgres_url import parse_postgres_url

# The port at which `hubctl serve` listens by default.
DEFAULT_PORT = 8000

content_option = setting(
    "--content", metavar="DIR", default="content", help="Folder of the prompts."
)
out_option = setting(
    "--out", metavar="DIR", default="site_out", help="Folder of the generated site."
)
state_option = setting(
    "--state",
    metavar="DIR",
    default="var",
    help="State folder: accounts, pull counts, build cache, search index.",
)
folder_options = in_order(content_option, out_option, state_option)
database_option = setting(
    "--database",
    "database_url",
    metavar="URL",
    callback=lambda context, option, value: parse_postgres_url(value) if value else None,
    help="PostgreSQL database of everything that is published and of the accounts, for hubs of "
    "several nodes, like postgresql://hub@db.example.org/hub. The content folder is a copy of it "
    "then. Keep its password out of hub.toml: put the URL with it into the variable, or the "
    "password into ~/.pgpass. [default: the content folder, and a file in the state folder]",
)
owner_option = setting(
    "--owner",
    "--default-owner",  # its key in hub.toml, where [owner.invite] is a table
    "owner",
    metavar="HANDLE",
    variable="HUB_DEFAULT_OWNER",
    help="Owner of prompts that are named without one. [default for imports: imported]",
)
private_option = setting(
    "--private/--no-private",
    default=None,
    show_default=False,
    help="Let only members read: people who are signed in, and programs with a token. See "
    "docs/operate/private.md.",
)
queries_option = setting(
    "--queries/--no-queries",
    default=False,
    help="Announce that the host answers searches (q), several tags at once and MCP, because "
    "it forwards them to `hubctl serve`. Plain file hosts cannot.",
)


class Places(NamedTuple):
    """The places of a hub's data: its folders, and its database if it has one."""

    content: str
    out: str
    state: str
    database_url: str | None = None

    @property
    def folders(self) -> tuple[str, str, str]:
        return self.content, self.out, self.state


# Parameter ``places``: Places.
places_options = grouped("places", Places, folder_options, database_option)
# Parameter ``accounts``: the state folder, or the URL of the database that has the accounts.
accounts_options = grouped(
    "accounts", lambda state, database_url: database_url or state, state_option, database_option
)


def base_url_option(default: str = DEFAULT_BASE_URL) -> Callable:
    """The address of the site for readers, checked, as ``base_url``; empty if not given."""
    return setting(
        "--base-url",
        metavar="URL",
        callback=lambda context, option, value: parse_base_url(value) if value else "",
        help=f"Address of the site for readers; may include a path. [default: {default}]",
    )


def site_options(default_url: str, *more: Callable) -> Callable:
    """All options that define a site, with ``more`` fields of Settings, as ``settings``: Settings
    whose ``base_url`` is empty and whose ``private`` is None if they are not given.
    """
    return grouped(
        "settings",
        Settings,
        folder_options,
        base_url_option(default_url),
        setting(
            "--site-name",
            metavar="NAME",
            default="Hub",
            help="Name of the hub, shown on its pages and in hub.json.",
        ),
        setting(
            "--accent",
            metavar="COLOUR",
            callback=lambda context, option, value: check_accent(value) if value else "",
            help="Colour of links and of the main button of pages, such as #8a2f6b. It must be "
            "dark enough to be read on white; dark pages get a lighter one.",
        ),
        *more,
        setting(
            "--search",
            type=click.Choice(SEARCH_ENGINES),
            default=DEFAULT_SEARCH,
            show_default=False,
            help="Search engine. Whoosh is pure Python, but slower: use it for small hubs. "
            "[default: tantivy if installed, else whoosh]",
        ),
        setting(
            "--langfuse/--no-langfuse",
            default=False,
            help="Also write files from which Langfuse's SDKs read prompts.",
        ),
        private_option,
        setting(
            "--file-bytes",
            type=click.IntRange(0, BYTES_HARD_MAX),
            metavar="N",
            default=BYTES_MAX,
            hidden=True,
            help=f"Bytes of the files of a version, at most {BYTES_HARD_MAX:,}.",
        ),
    )


def rate_limit_option(name: str) -> Callable:
    """The limit of reads, as parameter ``name``."""
    return setting(
        "--rate-limit",
        name,
        type=click.IntRange(0),
        metavar="N",
        default=READS_PER_MINUTE,
        help="Reads per minute and client address; an IPv6 address counts as its /64. 0: no limit.",
    )


def settings_of_serve(context: click.Context) -> dict[str, Any]:
    """The parameters of `hubctl serve` by the environment and hub.toml."""
    root = context.find_root()
    command = root.command.get_command(root, "serve")
    with command.make_context("serve", [], root, resilient_parsing=True) as serve:
        return serve.params


def url_of_serve(context: click.Context) -> str:
    """The URL at which `hubctl serve` listens by its settings, as this machine reaches it."""
    serve = settings_of_serve(context)
    return url_at(serve["host"], serve["port"] or DEFAULT_PORT)


def said_private(private: bool | None) -> bool | None:
    """The option --private or --no-private; None if it is left out, or if only a variable or
    hub.toml says no.
    """
    source = click.get_current_context().get_parameter_source("private")
    return private if private or source is ParameterSource.COMMANDLINE else None


def settle_private(content: str, out: str, private: bool | None) -> bool:
    """True if only members may read: by --private, by the mark in the content, or because the site
    in ``out`` is private. Only --no-private on the command line opens such a hub; a variable or
    hub.toml does not.
    """
    if (said := said_private(private)) is not None:
        return said
    is_private = privacy.is_private(content, out)
    if is_private and private is False:
        say(
            "This hub stays private: its content or site is marked so. To open it, pass "
            "--no-private on the command line once."
        )
    return is_private


def open_hub(settings: Settings) -> None:
    """Remove the mark of a private hub, which --no-private opens. Raises OperatorError."""
    if not settings.private and privacy.open_to_all(settings):
        say("This hub was private. From now on, everyone can read it.")


def split_repo(repo: str, owner: str | None = None) -> tuple[str, str]:
    """The owner and the name of an argument OWNER/NAME, or of NAME if it has an ``owner``. Raises
    click.BadParameter.
    """
    if owner and "/" not in repo:
        return owner, repo
    owner, slash, name = repo.partition("/")
    if not slash:
        raise click.BadParameter(
            f"{repo!r} has no slash. Give OWNER/NAME, like ann/story.", param_hint="OWNER/NAME"
        )
    return owner, name
