"""``hubctl serve``: the whole hub on one port."""

import contextlib
import os
import signal
import socket

import click
import uvicorn

from builder.build import build as build_site
from builder.errors import ContentError, OperatorError
from builder.rebuild import PATIENCE_SECONDS, Rebuilder
from builder.routes import BY_NAME
from builder.serve import ReadApp
from builder.settings import Settings
from builder.watch import Watch
from cli.build import describe, say_waiting
from cli.mount import Hub
from cli.options import base_url_option, folder_options, name_option
from cli.progress import Progress
from publisher.accounts import Accounts
from publisher.app import PUBLISH_LIMIT, create_app
from publisher.database import Database
from publisher.log import configure_logging, log_build

CONNECTIONS_WAITING_MAX = 2048
# A publication that is under way is answered.
GRACE_SECONDS = int(PATIENCE_SECONDS) + 5


@click.command()
@folder_options
@base_url_option("http://HOST:PORT")
@name_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
    help="Port to listen on; 0 takes a free one.",
)  # fmt: skip
@click.option(
    "--rate-limit", type=click.IntRange(0), metavar="N", default=120, show_default=True,
    help="Reads a minute for each client address; 0 for no limit.",
)  # fmt: skip
@click.option(
    "--trusted-proxy", "trusted_proxies", multiple=True, metavar="ADDRESS",
    help="Address or network of a reverse proxy whose X-Forwarded-For tells the client's "
    "address. May be given several times.",
)  # fmt: skip
@click.option(
    "--publish-limit", type=click.IntRange(0), metavar="N", default=PUBLISH_LIMIT,
    show_default=True, help="Publications a minute for each token; 0 for no limit.",
)  # fmt: skip
@click.option("--watch", is_flag=True, help="Build again whenever the content changes.")
def serve(
    content: str, out: str, state: str, base_url: str | None, site_name: str, host: str, port: int,
    rate_limit: int, trusted_proxies: tuple[str, ...], publish_limit: int, watch: bool,
) -> None:  # fmt: skip
    """Build the site, then serve everything on one port.

    Pages for people, the API, searches, and publishing over HTTP with the tokens that `hubctl
    token` makes. /healthz tells how the builds are doing. Logs publications and builds as lines
    of JSON on standard error. Stops at Ctrl-C or SIGTERM, after the requests that are under way.
    """
    with _listen(host, port) as listener:
        address = _address(host, listener.getsockname()[1])
        settings = Settings(content, out, state, base_url or address, site_name, queries=True)
        is_built = _build(settings)
        configure_logging()
        with Database(state) as database, Rebuilder(settings, log_build) as rebuilder:
            if not is_built:
                rebuilder.request(None)
            publisher = create_app(
                settings, rebuilder, Accounts(database), database, publish_limit=publish_limit
            )
            config = uvicorn.Config(
                Hub(ReadApp(settings, rate_limit), publisher),
                loop="uvloop",
                http="httptools",
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=bool(trusted_proxies),
                forwarded_allow_ips=list(trusted_proxies),
                backlog=CONNECTIONS_WAITING_MAX,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
            with Watch(content, rebuilder) if watch else contextlib.nullcontext():
                where = f"{address}{settings.base_path}/"
                _run(uvicorn.Server(config), listener, f"Serving {out} at {where}")


def _run(server: uvicorn.Server, listener: socket.socket, told: str) -> None:
    """Serve until a signal. Once all is answered, uvicorn raises the signal again, which would
    end the process as if it had failed.
    """
    # Before uvicorn listens to signals itself, an interrupt could get lost in what it starts.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    click.echo(f"{told} (stop with Ctrl-C)", err=True)
    server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    """Take the port before anything else, so that a wrong one is told at once."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS_WAITING_MAX)
    except OSError as error:
        raise OperatorError(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another with --port or "
            "--host."
        ) from None


def _address(host: str, port: int) -> str:
    """The URL by which a browser on this machine finds the server."""
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _build(settings: Settings) -> bool:
    """Build before serving. With faults in the content, a site that is there is served as it
    is; then False.
    """
    try:
        with Progress() as progress:
            report = build_site(settings, progress=progress, on_wait=say_waiting)
    except ContentError as error:
        if not os.path.exists(f"{settings.out}/{BY_NAME['hub'].file}"):
            raise
        click.echo(f"{error}\nServing the site as it was built before.", err=True)
        return False
    click.echo(describe(report), err=True)
    return True
