"""Runs the whole hub on one port, for `hubctl serve`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from flask import Flask

from builder.model.errors import ContentError, HubError, OperatorError
from builder.model.metrics import Parts, Reading
from builder.model.service_urls import url_at
from builder.model.settings import Settings, check_folders
from builder.pipeline.build import Built
from builder.pipeline.rebuild import Outcome, Rebuilder
from builder.pipeline.watch import Watch
from builder.search.query_thread import QueryThread
from builder.store.content import check_folder
from builder.store.site import is_built
from builder.store.state.serving import Service, had_service
from cli.build import ON_WAIT, describe
from cli.options import open_hub
from cli.service_options import Following, Listening, Publishing
from cli.standard_error import Progress, say
from cli.stores import make_store, make_turn
from operate.deploy.follower import Deployer
from operate.deploy.run import Deployment, open_destination
from publisher.accounts.database import Database
from publisher.accounts.sqlite_engine import LateEngine
from publisher.log import configure_logging, log_build
from publisher.outside.private_way import is_loopback, is_private_way
from publisher.sizes import size_readings
from publisher.web.app import create_app
from publisher.web.members import reader_check
from publisher.web.readiness import Readiness
from publisher.write.durable import FolderStore
from server.app import ReadApp, RunningApp
from server.guard import Guard
from server.late import Late
from server.listening import count_connections, listen, run
from server.mount import Hub
from server.throttle import Throttle

if TYPE_CHECKING:
    from publisher.nodes.turn import Turn
    from server.metrics_port import MetricsPort


def serve_hub(
    settings: Settings,
    database_url: str | None,
    listening: Listening,
    publishing: Publishing,
    following: Following,
    metrics: tuple[str, int] | None,
    watch: bool,
) -> None:
    """Serve until a signal. An empty ``settings.base_url`` means the address at which the service
    listens. ``database_url``: of the database that nodes share; None: this is the only node. Raises
    HubError.
    """
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listen(listening.host, listening.port))
        monitor = _listen_for_metrics(stack, *metrics) if metrics else None
        address = url_at(listening.host, listener.getsockname()[1])
        settings = settings._replace(base_url=settings.base_url or address)
        check_folders(settings)
        _check_content(settings, database_url, watch)  # before the state folder is created
        configure_logging()
        where = f"{address}{settings.base_path}/"
        holding = _holding(settings, where, database_url, publishing.new_accounts)
        service, database = stack.enter_context(holding)
        if monitor:
            say(f"Metrics at {monitor.url}")
        _say_who_cannot_sign_in(settings.base_url, listener.getsockname()[0])
        first = _FirstBuild(settings, where, is_node=database.is_shared)
        followers = _Followers(first.tell, service.tell)
        quotas = publishing.limits.quotas
        running = _start(
            stack, settings, database, first, followers, following, has_quotas=any(quotas)
        )
        queries = QueryThread(settings, running.rebuilder.check_caches)
        stack.callback(queries.close)
        if watch:
            stack.enter_context(Watch(settings.content, running.rebuilder))
        connections = count_connections(listening.trusted_proxies)
        publish = running.publish_app(publishing, monitor, connections.readings)
        # Counted in this process: the event loop must not wait for other machines.
        throttle = Throttle(listening.rate_limit) if listening.rate_limit else None
        mcp = Late(partial(_make_mcp, settings, queries, throttle, publishing.sign_in.origins))
        check = reader_check(settings, database)
        guard = Guard(check, settings.base_path) if settings.private else None
        reads = ReadApp(settings, queries, throttle)
        hub = Hub(reads, publish, mcp, first.is_ready, guard, is_measured=metrics is not None)
        reached = listening.trusted_proxies, listening.access_log, settings.base_path
        run(hub, listener, *reached, first.has_failed, connections)
    if first.error:
        raise first.error


class _Running(NamedTuple):
    """``parts``: the statuses that /readyz and the metrics show, by name."""

    settings: Settings
    database: Database
    store: FolderStore
    rebuilder: Rebuilder
    parts: Parts

    def publish_app(
        self,
        publishing: Publishing,
        monitor: MetricsPort | None,
        *sources: Callable[[], Iterable[Reading]],
    ) -> Flask:
        """The publish service. ``monitor`` shows the metrics, which include those of ``sources``;
        None: no metrics.
        """
        readiness = Readiness(self.settings, self.rebuilder, self.database, self.parts)
        if monitor:
            sizes = partial(size_readings, self.settings)
            every = (self.rebuilder.readings, readiness.readings, sizes, *sources)
            monitor.show(every, self.parts)
        return create_app(
            self.settings,
            self.rebuilder,
            self.database,
            limits=publishing.limits,
            sign_in=publishing.sign_in,
            readiness=readiness,
            store=self.store,
        )


@contextlib.contextmanager
def _holding(
    settings: Settings, where: str, database_url: str | None, new_accounts: bool
) -> Iterator[tuple[Service, Database]]:
    """The hold of the state folder, and the accounts. Raises OperatorError."""
    may_create = new_accounts or not had_service(settings.state, settings.out)
    service = Service(settings, where)
    with service.held():
        if not database_url:
            open_hub(settings)
        make_engine = partial(LateEngine, may_create=may_create)
        with Database(database_url or settings.state, make_engine) as database:
            yield service, database


def _listen_for_metrics(stack: contextlib.ExitStack, host: str, port: int) -> MetricsPort:
    # Loaded late: its library is slow to load, and few hubs need it.
    from server.metrics_port import MetricsPort

    return stack.enter_context(contextlib.closing(MetricsPort(host, port)))


def _make_mcp(
    settings: Settings, queries: QueryThread, throttle: Throttle | None, origins: tuple[str, ...]
) -> RunningApp:
    # Loaded late: its library takes longer to load than all the rest.
    from mcp_app.app import create_app as create_mcp

    return create_mcp(settings, queries, throttle, origins)


def _start(
    stack: contextlib.ExitStack,
    settings: Settings,
    database: Database,
    first: _FirstBuild,
    followers: _Followers,
    following: Following,
    *,
    has_quotas: bool,
) -> _Running:
    """Start publishing and building, and the followers of builds. Raises OperatorError."""
    opened, rebuilder, parts = make_store(
        settings,
        database,
        partial(Rebuilder, settings, followers.tell, first.show_progress, first.say_waiting),
        has_quotas=has_quotas,
    )
    followers.parts |= parts
    rebuilder.request(None)
    store = stack.enter_context(opened)
    # Followers end after the last build, which they still handle.
    turn = make_turn("deploy", database)
    stack.enter_context(followers.deploying(settings, following, turn))
    stack.enter_context(rebuilder)
    return _Running(settings, database, store, rebuilder, followers.parts)


class _Followers:
    """The followers of a service's builds. They are notified in the build's thread, so they must
    return at once. ``parts``: the status of each for /readyz and the metrics, by name.
    """

    def __init__(self, *listeners: Callable[[Outcome], None]) -> None:
        self.parts: dict[str, Callable[[], dict]] = {}
        self._listeners = [*listeners]

    def tell(self, outcome: Outcome) -> None:
        for follower in self._listeners:
            follower(outcome)

    @contextlib.contextmanager
    def deploying(
        self, settings: Settings, following: Following, turn: Turn | None
    ) -> Iterator[None]:
        """Deploy after each build, if a destination is set; of several nodes, the one that has the
        turn. Raises OperatorError.
        """
        if not following.deploy:
            yield
            return
        if settings.private:
            raise OperatorError(
                "This hub is private, and anyone who can read the destination of --deploy can read "
                "all of it. Leave out --deploy (HUB_DEPLOY)."
            )
        destination = open_destination(following.deploy, (settings.out, settings.state))
        files_only = following.deploy_files_only
        site = Deployment(settings.out, settings.state, destination, files_only=files_only)
        with Deployer(site, turn) as deployer:
            self._listeners.append(deployer.tell)
            self.parts["deploy"] = deployer.status
            yield


class _FirstBuild:
    """Reports the first build of a service, which runs while the service listens already. Later
    builds are in the log; this one is reported on the terminal. If it fails and no earlier site can
    be served, the service ends. A node continues: its content may have faults for a moment, while
    other nodes publish and withdraw. Methods may be called from another thread.
    """

    def __init__(self, settings: Settings, where: str, *, is_node: bool) -> None:
        self.error: Exception | None = None
        self._search = settings.search
        self._serving = f"Serving {settings.out} at {where}"
        self._has_site = is_built(settings.out)
        self._is_node = is_node
        self._is_over = False
        self._progress = Progress()
        if self._has_site:
            say(f"{self._serving}. The previous site is shown until the build ends.")
        else:
            say(f"Building {settings.out}. {where} answers 503 until the build ends.")

    def is_ready(self) -> bool:
        """True if there is a whole site."""
        return self._has_site

    def has_failed(self) -> bool:
        return self.error is not None

    def show_progress(self, what: str, done: int, total: int) -> None:
        if not self._is_over:
            self._progress(what, done, total)

    def say_waiting(self) -> None:
        if not self._is_over:
            ON_WAIT()

    def tell(self, outcome: Outcome) -> None:
        if self._is_over:
            log_build(outcome)
            return
        self._progress.close()
        if self._is_node and not self._has_site and isinstance(outcome, ContentError):
            say(f"{outcome}\nThe node tries again.")
            return
        self._is_over = True
        if isinstance(outcome, Built):
            say(describe(outcome, self._search))
        elif self._has_site:
            log_build(outcome)
            cause = outcome if isinstance(outcome, HubError) else "The build failed."
            say(f"{cause}\nServing the previous site. The build is tried again.")
        else:
            self.error = outcome
            return
        self._has_site = True
        say(f"{self._serving} (stop with Ctrl-C)")


def _check_content(settings: Settings, database_url: str | None, watch: bool) -> None:
    """Raises OperatorError if there is no content to read, or if options contradict each other."""
    if not database_url:
        check_folder(settings.content)
    elif watch:
        raise OperatorError(
            "--watch and --database exclude each other: the content folder is a copy of the "
            "database, and nothing else may write there. Leave out --watch; other nodes' "
            "publications are built without it."
        )


def _say_who_cannot_sign_in(base_url: str, host: str) -> None:
    if not is_private_way(base_url):
        who = "nobody can sign in"
    elif base_url.startswith("https:") or is_loopback(host):
        return
    else:
        who = "people can sign in only on this machine"
    say(
        f"The address is {base_url}, so {who}: without https, passwords would be sent unencrypted. "
        "For accounts, serve the hub over https and pass that address with --base-url."
    )
