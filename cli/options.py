"""The options that several commands share, so that they mean the same on each."""

import functools
import os
import shlex
from collections.abc import Callable
from typing import Any

import click

from builder.model.errors import OperatorError
from builder.model.settings import (
    DEFAULT_BASE_URL,
    DEFAULT_SEARCH,
    SEARCH_ENGINES,
    parse_base_url,
)
from builder.store.site import read_hub
from operate.deploy.job import Job
from operate.deploy.options import Options
from operate.deploy.receiver import SECRET_VARIABLE as NOTICE_SECRET_VARIABLE
from operate.deploy.receiver import make_receiver
from operate.git.options import parse_git_options
from publisher.accounts.postgres_url import parse_postgres_url
from publisher.openid.provider import SECRET_VARIABLE, make_provider
from publisher.trusted.issuers import DEFAULT_ISSUERS, parse_issuers
from publisher.web.environment import secret_from
from publisher.write.quotas import OPEN_SIGNUP_QUOTAS, PUBLISH_LIMIT, default_quotas
from server.access import parse_address, parse_origin

# Where `hubctl serve` listens.
DEFAULT_PORT = 8000
_DEFAULT_ISSUERS = tuple(f"{issuer.kind}={issuer.url}" for issuer in DEFAULT_ISSUERS)

content_option = click.option(
    "--content", metavar="DIR", default="content", show_default=True, envvar="HUB_CONTENT",
    show_envvar=True, help="Folder of the prompts.",
)  # fmt: skip
init_option = click.option(
    "--init", is_flag=True, help="Create the content folder if it does not exist."
)
out_option = click.option(
    "--out", metavar="DIR", default="site_out", show_default=True, envvar="HUB_OUT",
    show_envvar=True, help="Folder of the generated site.",
)  # fmt: skip
state_option = click.option(
    "--state", metavar="DIR", default="var", show_default=True, envvar="HUB_STATE",
    show_envvar=True, help="State folder: accounts, pull counts, build cache, search index.",
)  # fmt: skip
database_option = click.option(
    "--database", "database_url", metavar="URL", envvar="HUB_DATABASE", show_envvar=True,
    callback=lambda context, option, value: parse_postgres_url(value) if value else None,
    help="PostgreSQL database of everything that is published and of the accounts, for hubs of "
    "several nodes, like postgresql://hub@db.example.org/hub. The content folder is a copy of it "
    "then. Keep its password out of hub.toml: put the URL with it into the variable, or the "
    "password into ~/.pgpass. [default: the content folder, and a file in the state folder]",
)  # fmt: skip
name_option = click.option(
    "--site-name", metavar="NAME", default="Hub", show_default=True, envvar="HUB_SITE_NAME",
    show_envvar=True, help="Name of the hub, shown on its pages and in hub.json.",
)  # fmt: skip
rate_limit_option = click.option(
    "--rate-limit", type=click.IntRange(0), metavar="N", default=120, show_default=True,
    envvar="HUB_RATE_LIMIT", show_envvar=True,
    help="Reads per minute and client address; an IPv6 address counts as its /64. 0: no limit.",
)  # fmt: skip
search_option = click.option(
    "--search", type=click.Choice(SEARCH_ENGINES), default=DEFAULT_SEARCH, envvar="HUB_SEARCH",
    show_envvar=True,
    help="Search engine. Whoosh is pure Python, but slower: use it for small hubs. [default: "
    "tantivy if installed, else whoosh]",
)  # fmt: skip
queries_option = click.option(
    "--queries/--no-queries", default=False, show_default=True, envvar="HUB_QUERIES",
    show_envvar=True,
    help="Announce that the host answers searches (q), several tags at once and MCP, because "
    "it forwards them to `hubctl serve`. Plain file hosts cannot.",
)  # fmt: skip
langfuse_option = click.option(
    "--langfuse/--no-langfuse", default=False, show_default=True, envvar="HUB_LANGFUSE",
    show_envvar=True, help="Also write files from which Langfuse's SDKs read prompts.",
)  # fmt: skip
owner_option = click.option(
    "--owner",
    "--default-owner",  # its key in hub.toml, where [owner.invite] is a table
    "owner",
    metavar="HANDLE",
    envvar="HUB_DEFAULT_OWNER",
    show_envvar=True,
    help="Owner of prompts that are named without one. [default for imports: imported]",
)
private_option = click.option(
    "--private/--no-private", default=None, envvar="HUB_PRIVATE", show_envvar=True,
    help="Let only members read: people who are signed in, and programs with a token. See "
    "docs/operate/private.md.",
)  # fmt: skip
publish_limit_option = click.option(
    "--publish-limit", type=click.IntRange(0), metavar="N", default=PUBLISH_LIMIT,
    show_default=True, envvar="HUB_PUBLISH_LIMIT", show_envvar=True,
    help="Publications per minute and owner; 0: no limit.",
)  # fmt: skip
limits_option = click.option(
    "--limits", metavar="URL", envvar="HUB_LIMITS", show_envvar=True,
    help="Count limits on publishing and signing in together with other nodes, in the Redis or "
    "Valkey at URL: redis://, rediss://, valkey:// or unix://. Use the variable if the URL has a "
    "password. [default: each process counts for itself]",
)  # fmt: skip
mcp_origin_option = click.option(
    "--mcp-origin", "mcp_origins", multiple=True, metavar="ORIGIN", envvar="HUB_MCP_ORIGINS",
    show_envvar=True,
    callback=lambda context, option, values: tuple(map(parse_origin, values)),
    help="Additional address at which /mcp and /account answer, and whose web pages may call "
    "/mcp, like https://app.example.org. * allows any address for /mcp only. Can be repeated; "
    "in the variable, separate by spaces.",
)  # fmt: skip
trusted_issuer_option = click.option(
    "--trusted-issuer", "issuers", multiple=True, metavar="KIND=URL",
    envvar="HUB_TRUSTED_ISSUERS", show_envvar=True,
    default=_DEFAULT_ISSUERS, show_default=" ".join(_DEFAULT_ISSUERS),
    callback=lambda context, option, values: parse_issuers(values),
    help="Issuer of ID tokens whose CI jobs may publish without a stored token. KIND is github or "
    "gitlab. Replaces the default issuers. Can be repeated; in the variable, separate by spaces.",
)  # fmt: skip


# What `hubctl deploy` and `hubctl backup` say alike of how they reach another place.
_ENDPOINT_URL = {
    "metavar": "URL",
    "help": "Address of the S3 service: R2, MinIO and others. [default: AWS_ENDPOINT_URL, or AWS]",
}
_JOBS = {"metavar": "N", "type": click.IntRange(1, 256), "show_default": True}


def _in_order(*options: Callable) -> Callable:
    """A decorator that adds these options, which help shows in this order."""

    def decorate(command: Callable) -> Callable:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def destination_options(*prefixes: str) -> Callable:
    """How to deploy, as parameters ``endpoint_url``, ``jobs``, ``no_delete``, ``files_only`` and
    ``guarded``. ``prefixes``: how the flags begin; with the longest one they are settings.
    """

    def option(name: str, **rest: Any) -> Callable:
        flags = [f"--{prefix}{name}" for prefix in prefixes]
        variable = f"HUB_DEPLOY_{name.replace('-', '_').upper()}"
        return click.option(
            *flags, name.replace("-", "_"), envvar=variable, show_envvar=True, **rest
        )

    return _in_order(
        option("endpoint-url", **_ENDPOINT_URL),
        option("jobs", default=Options().jobs, help="Number of uploads at a time.", **_JOBS),
        option("no-delete", is_flag=True, help="Keep remote files that are no longer on the site."),
        option(
            "files-only", is_flag=True,
            help="Upload each file once, under its name, and not also under its URL without "
            "extension. For a CDN that maps URLs to files, and for services that cannot store "
            "both `a` and `a/b` (MinIO).",
        ),
        option(
            "guarded", is_flag=True,
            help="The destination keeps strangers out itself, so the site of a private hub may go "
            "there.",
        ),
    )  # fmt: skip


def following_options(command: Callable) -> Callable:
    """Where to deploy after each build, and who is told, as parameters ``deployment`` (a function
    from the folders to a ``Job``; None: nowhere) and ``receiver`` (None: nobody).
    """

    @click.option(
        "--deploy", metavar="DIR/URL", envvar="HUB_DEPLOY", show_envvar=True,
        help="Also deploy the site after each build, as `hubctl deploy` does: to a folder, or to "
        "s3://BUCKET/PREFIX.",
    )  # fmt: skip
    @destination_options("deploy-")
    @click.option(
        "--on-deployed", metavar="URL", envvar="HUB_ON_DEPLOYED", show_envvar=True,
        help="After each deployment, POST the changed paths to URL, for the purge of a CDN. Put "
        f"the secret that signs them into the environment variable {NOTICE_SECRET_VARIABLE}, or "
        f"into a file named by {NOTICE_SECRET_VARIABLE}_FILE.",
    )  # fmt: skip
    @functools.wraps(command)
    def with_deployment(
        *args: Any, deploy: str | None, endpoint_url: str | None, jobs: int, no_delete: bool,
        files_only: bool, guarded: bool, on_deployed: str | None, **params: Any,
    ) -> Any:  # fmt: skip
        if on_deployed and not deploy:
            raise click.UsageError("--on-deployed needs --deploy. Say where to deploy.")
        options = Options(jobs, delete=not no_delete, files_only=files_only, guarded=guarded)
        deployment = deploy and functools.partial(
            Job, destination=deploy, endpoint_url=endpoint_url, options=options
        )
        secret = secret_from(os.environ, NOTICE_SECRET_VARIABLE) if on_deployed else None
        receiver = make_receiver(on_deployed, secret)
        return command(*args, deployment=deployment, receiver=receiver, **params)

    return with_deployment


def address_of_serve(context: click.Context) -> str:
    """HOST:PORT at which `hubctl serve` listens by its settings, as this machine reaches it."""
    root = context.find_root()
    command = root.command.get_command(root, "serve")
    with command.make_context("serve", [], root, resilient_parsing=True) as serve:
        host, port = serve.params["host"], serve.params["port"] or DEFAULT_PORT
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def settle_private(out: str, private: bool | None) -> bool:
    """Whether only members may read, by the option and the site in ``out``: what is private is not
    opened because an option was forgotten. Raises OperatorError.
    """
    hub = read_hub(out)
    if private is None and hub and hub.private:
        raise OperatorError(
            f"The site in {out} is private. To keep it so, pass --private or set HUB_PRIVATE=1; "
            "to let everybody read it, pass --no-private."
        )
    return bool(private)


def prepare_content(content: str, may_create: bool, command: str) -> None:
    """Create a missing content folder, or say how ``command`` would. Raises OperatorError."""
    if os.path.isdir(content):
        return
    if not may_create:
        where = "" if content == "content" else f" --content {shlex.quote(content)}"
        raise OperatorError(
            f"No content folder {content}. To create it, run `hubctl {command}{where} --init`. "
            "If your hub has another one, run this in the hub's folder, or pass --content DIR."
        )
    try:
        os.makedirs(content, exist_ok=True)
    except OSError as error:
        raise OperatorError(
            f"Cannot create the content folder {content}: {error.strerror}. Choose another with "
            "--content."
        ) from error


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


def folder_options(command: Callable) -> Callable:
    """The three folders, as parameters ``content``, ``out`` and ``state``."""
    return content_option(out_option(state_option(command)))


def base_url_option(default: str = DEFAULT_BASE_URL) -> Callable:
    """Where readers find the site, checked, as parameter ``base_url``."""
    return click.option(
        "--base-url", metavar="URL", envvar="HUB_BASE_URL", show_envvar=True,
        callback=lambda context, option, value: parse_base_url(value) if value else None,
        help=f"Address of the site for readers; may include a path. [default: {default}]",
    )  # fmt: skip


def backup_place_options(command: Callable) -> Callable:
    """How to reach a backup, as parameters ``endpoint_url`` and ``jobs``."""
    return _in_order(
        click.option(
            "--endpoint-url", envvar="HUB_ENDPOINT_URL", show_envvar=True, **_ENDPOINT_URL
        ),
        click.option(
            "--jobs", default=8, envvar="HUB_BACKUP_JOBS", show_envvar=True,
            help="Files at a time.", **_JOBS,
        ),
    )(command)  # fmt: skip


def listening_options(port: int) -> Callable:
    """Where to listen, whom to limit and where to log, as ``host``, ``port``, ``rate_limit``,
    ``trusted_proxies`` and ``access_log``.
    """
    return _in_order(
        click.option(
            "--host", metavar="ADDRESS", default="127.0.0.1", show_default=True,
            envvar="HUB_HOST", show_envvar=True, help="Address to listen on.",
        ),
        click.option(
            "--port", type=click.IntRange(0, 65535), default=port, show_default=True,
            envvar="HUB_PORT", show_envvar=True,
            help="Port to listen on; 0 picks a free one.",
        ),
        rate_limit_option,
        click.option(
            "--trusted-proxy", "trusted_proxies", multiple=True, metavar="ADDRESS",
            envvar="HUB_TRUSTED_PROXY", show_envvar=True,
            help="Address or network of a reverse proxy. Its X-Forwarded-For gives the client's "
            "address. Can be repeated; in the variable, separate by spaces.",
        ),
        click.option(
            "--access-log", metavar="FILE", envvar="HUB_ACCESS_LOG", show_envvar=True,
            help="Log each request to FILE, in the combined format. To rotate the log, move the "
            "file away. [default: none]",
        ),
    )  # fmt: skip


def signup_options(command: Callable) -> Callable:
    """Whether anyone may create an account, and the quotas of owners, as parameters
    ``open_signup`` and ``quotas``.
    """

    @click.option(
        "--open-signup", is_flag=True, envvar="HUB_OPEN_SIGNUP", show_envvar=True,
        help="Let anyone create an account. [default: only with `hubctl owner invite`]",
    )  # fmt: skip
    @_quota_option("repos", "Prompts per owner")
    @_quota_option("versions", "Versions per owner, in all prompts")
    @_quota_option("bytes", "Bytes of texts and records per owner")
    @functools.wraps(command)
    def with_quotas(*args: Any, open_signup: bool, **params: Any) -> Any:
        quotas = default_quotas(open_signup)
        given = {what: params.pop(f"quota_{what}") for what in quotas._fields}
        set_here = {what: limit for what, limit in given.items() if limit is not None}
        quotas = quotas._replace(**set_here)
        return command(*args, open_signup=open_signup, quotas=quotas, **params)

    return with_quotas


def _quota_option(what: str, help_text: str) -> Callable:
    default = getattr(OPEN_SIGNUP_QUOTAS, what)
    return click.option(
        f"--quota-{what}", type=click.IntRange(0), metavar="N", envvar=f"HUB_QUOTA_{what.upper()}",
        show_envvar=True,
        help=f"{help_text}; 0: no limit. [default: 0; with --open-signup {default:,}]",
    )  # fmt: skip


metrics_option = click.option(
    "--metrics", metavar="HOST:PORT", envvar="HUB_METRICS", show_envvar=True,
    callback=lambda context, option, value: parse_address(value) if value else None,
    help="Serve metrics for Prometheus at this address, under /metrics. Use one that only your "
    "monitoring reaches, like 127.0.0.1:9108. [default: none]",
)  # fmt: skip


def openid_options(command: Callable) -> Callable:
    """The OpenID provider with which people may sign in, as parameter ``openid``; None: none."""

    @click.option(
        "--openid-issuer", metavar="URL", envvar="HUB_OPENID_ISSUER", show_envvar=True,
        help="Also let people sign in with this OpenID Connect provider. Register the callback "
        "URL BASE_URL/account/openid/callback there.",
    )  # fmt: skip
    @click.option(
        "--openid-client-id", metavar="ID", envvar="HUB_OPENID_CLIENT_ID", show_envvar=True,
        help="Client ID that the provider gave this hub. Put the client secret into the "
        f"environment variable {SECRET_VARIABLE}, or into a file named by {SECRET_VARIABLE}_FILE.",
    )  # fmt: skip
    @click.option(
        "--openid-name", metavar="TEXT", envvar="HUB_OPENID_NAME", show_envvar=True,
        help="Name of the provider on the sign-in button. [default: its host]",
    )  # fmt: skip
    @functools.wraps(command)
    def with_provider(
        *args: Any, openid_issuer: str | None, openid_client_id: str | None,
        openid_name: str | None, **params: Any,
    ) -> Any:  # fmt: skip
        secret = secret_from(os.environ, SECRET_VARIABLE)
        openid = make_provider(openid_issuer, openid_client_id, openid_name, secret)
        return command(*args, openid=openid, **params)

    return with_provider


def git_options(command: Callable) -> Callable:
    """The branch that is kept the same as the content, as parameter ``git``; None: none."""

    @click.option(
        "--git", metavar="REMOTE", envvar="HUB_GIT", show_envvar=True,
        help="Commit and push what is published to this git repository, and take in what is merged "
        "there. REMOTE is a URL, a path, or a remote of the clone that the content is in.",
    )  # fmt: skip
    @click.option(
        "--git-branch", metavar="NAME", default="main", show_default=True,
        envvar="HUB_GIT_BRANCH", show_envvar=True, help="Branch of that repository.",
    )  # fmt: skip
    @click.option(
        "--git-folder", metavar="FOLDER", envvar="HUB_GIT_FOLDER", show_envvar=True,
        help="Folder of the prompts on that branch; . for the top. [default: content, or the same "
        "as in the clone]",
    )  # fmt: skip
    @functools.wraps(command)
    def with_git(
        *args: Any, git: str | None, git_branch: str, git_folder: str | None, **params: Any
    ) -> Any:
        options = parse_git_options(git, git_branch, git_folder) if git else None
        return command(*args, git=options, **params)

    return with_git
