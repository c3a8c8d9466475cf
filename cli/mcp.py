"""``hubctl mcp``: the tool server alone."""

import contextlib

import click

from builder.model.errors import OperatorError
from builder.model.service_urls import MCP_URL
from builder.model.settings import Settings
from builder.store.site import read_hub
from cli.options import base_url_option, out_option, state_option
from cli.service_options import Listening, listening_options, mcp_origin_option
from cli.standard_error import say
from publisher.outside.private_way import is_loopback


@click.command()
@out_option
@state_option
@base_url_option("the one the site was built with")
@listening_options(8001)
@mcp_origin_option
def mcp(
    out: str, state: str, base_url: str, listening: Listening, mcp_origins: tuple[str, ...]
) -> None:
    """Serve only MCP, at /mcp, for a site that another process builds.

    Reads the site folder, and the search index in the state folder. Writes nothing, and notices
    new builds. You do not need it beside `hubctl serve`, which also serves MCP.

    \b
      hubctl mcp --out site_out --state var
    """
    # Loaded late: other commands import this module to read its options.
    from builder.search.query_thread import QueryThread
    from server.listening import address_of, listen, run
    from server.throttle import Throttle

    hub = read_hub(out)
    if hub and hub.private and not is_loopback(listening.host):
        raise OperatorError(
            f"The site in {out} is private, and `hubctl mcp` answers everyone. Leave --host at "
            "127.0.0.1, or run `hubctl serve --private`, which asks for a token."
        )
    with listen(listening.host, listening.port) as listener:
        address = address_of(listener, listening.host)
        settings = Settings(out=out, state=state, base_url=base_url or address)
        if hub:
            settings = settings._replace(
                base_url=base_url or hub.base_url, site_name=hub.name, search=hub.search
            )
        else:
            say(
                f"No site in {out} yet, so calls fail until it is built. Pass --base-url if its "
                f"address is not {address}."
            )
        # Loaded late: its library takes longer to load than all the rest.
        from mcp_app.alone import Alone
        from mcp_app.app import create_app

        with contextlib.closing(QueryThread(settings)) as queries:
            throttle = Throttle(listening.rate_limit) if listening.rate_limit else None
            endpoint = create_app(settings, queries, throttle, mcp_origins)
            where = f"{address}{settings.base_path}{MCP_URL}"
            app = Alone(endpoint, settings)
            say(f"Serving MCP at {where} (stop with Ctrl-C)")
            run(app, listener, listening.trusted_proxies, listening.access_log)
