"""The tool server of a hub, put together."""

from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.search.query_thread import QueryThread
from mcp_app.calls import Calls
from mcp_app.endpoint import Endpoint
from mcp_app.reader import Catalogue
from mcp_app.server import make_server
from server.access import Access
from server.throttle import Throttle


def create_app(
    settings: Settings,
    queries: QueryThread,
    throttle: Throttle | None = None,
    origins: tuple[str, ...] = (),
) -> Endpoint:
    """The endpoint over a site. ``origins``: more origins whose pages may call it (see ``Access``).

    ``queries`` and ``throttle`` may be shared with the reads; the caller closes them.
    """
    catalogue = Catalogue(settings, queries)
    server = make_server(catalogue)
    return Endpoint(
        server,
        Access(settings.base_url, origins),
        calls=Calls(catalogue, server.server_info_stamp),
        throttle=throttle,
        connect_url=settings.base_url + BY_NAME["connect"].url,
    )
