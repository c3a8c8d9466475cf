"""What a running hub counts: every metric with its name, its help and its buckets.

Counting needs no library and is always on, so any part may count; only ``hubctl serve --metrics``
shows it (``server.metrics_port``). Gauges are not counted but read when they are shown.

No label has a value that a stranger chose: no path, owner or token.

A part that follows builds adds what its ``status()`` says in two steps: `hubctl serve` puts that
method into ``parts`` under the part's name, and the table below gets a ``Gauge`` with this ``part``
and a ``key`` of the status. It is shown where the key's value is a number or a truth value.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

REQUEST_CLASSES = ("read", "page", "search", "publish", "account", "mcp", "other")
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx")
FOLDERS = ("content", "state", "site")
# Why a hub is not ready, see ``publisher.web.readiness``.
UNREADY_REASONS = (
    "no_site", "builds_failing", "content_not_writable", "state_not_writable",
    "site_not_writable", "disk_full", "accounts_unusable", "store_unavailable", "other_history",
)  # fmt: skip
# Upper bounds, in seconds.
REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
BUILD_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)

_turn = threading.Lock()

Labels = tuple[str, ...]
# By the names of parts that follow builds, what each is doing: small, for JSON. Called from any
# thread; never raises and never waits.
Parts = Mapping[str, Callable[[], dict[str, Any]]]


class Counter:
    """How often something happened, by the values of its labels, which are given in order."""

    kind = "counter"

    def __init__(self, name: str, help: str, **labels: Labels) -> None:
        self.name, self.help, self.labels = name, help, labels
        # From the start on, as an alert cannot see a series grow that begins with its first count.
        self._counts = {values: [0] for values in product(*labels.values())}

    def count(self, *values: str, by: int = 1) -> None:
        with _turn:
            self._counts[values][0] += by

    def cell(self, *values: str) -> list[int]:
        """A list whose only item is the count, for one thread that alone counts it, and often."""
        return self._counts[values]

    def samples(self) -> Iterator[tuple[Labels, int]]:
        """The counts with the values of their labels."""
        for values, cell in self._counts.items():
            yield values, cell[0]


class Histogram:
    """How long something took, in seconds."""

    kind = "histogram"

    def __init__(
        self, name: str, help: str, buckets: tuple[float, ...] = REQUEST_BUCKETS, **labels: Labels
    ) -> None:
        self.name, self.help, self.labels, self.buckets = name, help, labels, buckets
        # In each bucket alone, then of what is longer than all bounds; and the sum of seconds.
        self._cells = {
            values: [*[0] * (len(buckets) + 1), 0.0] for values in product(*labels.values())
        }

    def observe(self, seconds: float, *values: str) -> None:
        with _turn:
            self.put(self._cells[values], seconds)

    def cell(self, *values: str) -> list[float]:
        """What ``put`` takes, for one thread that alone observes these values, and often."""
        return self._cells[values]

    def put(self, cell: list[float], seconds: float) -> None:
        cell[bisect_left(self.buckets, seconds)] += 1
        cell[-1] += seconds

    def samples(self) -> Iterator[tuple[Labels, list[float], float]]:
        """The counts of each bucket alone, and the sum of seconds, with the values of labels."""
        for values, cell in self._cells.items():
            *counts, total = cell
            yield values, counts, total


class Gauge:
    """What is so at a moment. ``part`` and ``key``: of whose status it is."""

    kind = "gauge"

    def __init__(
        self, name: str, help: str, *, part: str = "", key: str = "", **labels: Labels
    ) -> None:
        self.name, self.help, self.labels = name, help, labels
        self.part, self.key = part, key


class Reading(NamedTuple):
    """The value of a gauge, with the values of its labels."""

    gauge: Gauge
    value: float
    values: Labels = ()


REQUESTS = Counter(
    "hub_requests_total",
    "Requests answered. read: the API's files; page: pages and their assets; search: `?q=`; "
    "publish: publications, label changes and token exchanges; other: health, and all requests "
    "before there is a site.",
    **{"class": REQUEST_CLASSES}, status=STATUS_CLASSES,
)  # fmt: skip
REQUEST_SECONDS = Histogram(
    "hub_request_duration_seconds",
    "Time from a request's head to the first byte of its answer.",
    **{"class": REQUEST_CLASSES},
)
CONNECTIONS = Gauge("hub_connections", "Open connections of clients and proxies.")
STALLED = Gauge(
    "hub_stalled_seconds", "Time since the server last got its turn; it answers nothing meanwhile."
)
LIMITS_HIT = Counter(
    "hub_limits_hit_total",
    "Requests refused by a limit. connections: of all clients; client-connections: of one "
    "address; head: size of a request's head; searches: waiting searches; quota: of an owner; "
    "the others: so many in a time.",
    limit=(
        "read", "publish", "failed-auth", "sign-in", "account", "openid", "connections",
        "client-connections", "head", "searches", "quota",
    ),
)  # fmt: skip
SEARCHES = Counter(
    "hub_searches_total",
    "Searches and other queries that no file answers, MCP's included. kept: answered from memory; "
    "refused: too many were waiting; failed: the state or the search index was unusable.",
    result=("computed", "kept", "refused", "failed"),
)
SEARCH_SECONDS = Histogram(
    "hub_search_duration_seconds", "Time of a computed search, with its wait for those before it."
)
PUBLICATIONS = Counter(
    "hub_publications_total",
    "Requests that publish, by the API or in the editor. unchanged: nothing new; refused: the "
    "client's fault; limited: a rate limit; failed: the server's fault.",
    kind=("version", "label", "withdrawal"),
    result=("done", "unchanged", "refused", "limited", "failed"),
)
PUBLICATIONS_LATE = Counter(
    "hub_publications_late_total",
    "Publications and other changes that were saved, but did not reach readers in time.",
)
BUILDS = Counter("hub_builds_total", "Builds of the site.", result=("succeeded", "failed"))
BUILD_SECONDS = Histogram(
    "hub_build_duration_seconds", "Time of a build that succeeded.", BUILD_BUCKETS
)
BUILD_FILES = Counter(
    "hub_build_files_total", "Files of the site that builds changed.", change=("written", "removed")
)
BUILD_FAILURES = Gauge("hub_build_failures_in_row", "Failed builds since the last that succeeded.")
BUILD_BEHIND = Gauge(
    "hub_build_behind_seconds", "Age of the oldest change that lists and search do not have."
)
BUILD_WAITING = Gauge("hub_build_waiting_prompts", "Prompts that wait for the next build.")
PROMPTS = Gauge("hub_prompts", "Prompts on the site, as of the last build of this process.")
VERSIONS = Gauge("hub_versions", "Versions of these prompts.")
SERIAL = Gauge("hub_serial", "Publications that the lists include.")
FAILED_SIGN_INS = Counter(
    "hub_failed_sign_ins_total",
    "Wrong passwords, tokens and ID tokens of CI jobs, and failed sign-ins with OpenID.",
    way=("password", "token", "ci_job", "openid"),
)
ACCOUNTS_ERRORS = Counter(
    "hub_accounts_errors_total", "Failed statements of the accounts database."
)
READY = Gauge("hub_ready", "1 if `/readyz` answers 200, else 0.")
UNREADY = Gauge("hub_unready", "1 for each reason in `/readyz`, else 0.", reason=UNREADY_REASONS)
DISK_FREE = Gauge(
    "hub_disk_free_bytes", "Free space of a folder's disk for this service.", folder=FOLDERS
)
DISK_SIZE = Gauge("hub_disk_size_bytes", "Size of a folder's disk.", folder=FOLDERS)
DATABASE_SIZE = Gauge(
    "hub_database_size_bytes", "Size of a database with its log.",
    database=("accounts", "pulls", "build"),
)  # fmt: skip
INDEX_SIZE = Gauge("hub_search_index_size_bytes", "Size of the search index.")
LIMITS_FAILURES = Gauge(
    "hub_limits_failures_in_row",
    "Failed attempts to count limits in Redis since the last success. Above 0, this node counts "
    "for itself.",
    part="limits", key="failures",
)  # fmt: skip
DEPLOY_BEHIND = Gauge(
    "hub_deploy_behind_seconds", "Age of the oldest build that `--deploy` has not deployed.",
    part="deploy", key="behind_seconds",
)  # fmt: skip
DEPLOY_FAILURES = Gauge(
    "hub_deploy_failures_in_row", "Failed deployments since the last that succeeded.",
    part="deploy", key="failures",
)  # fmt: skip
DEPLOY_TURN = Gauge(
    "hub_deploy_has_turn",
    "1 on the node that deploys, of several; on all of them 0: nobody does.",
    part="deploy", key="has_turn",
)  # fmt: skip
GIT_FAILURES = Gauge(
    "hub_git_failures_in_row", "Failed exchanges with the git repository since the last success.",
    part="git", key="failures",
)  # fmt: skip
GIT_BEHIND = Gauge(
    "hub_git_behind_seconds", "Age of the oldest change that was not pushed yet.",
    part="git", key="waiting_seconds",
)  # fmt: skip
GIT_PROBLEMS = Gauge(
    "hub_git_problems", "Prompts that cannot be pushed or taken in; the log names them.",
    part="git", key="problems_count",
)  # fmt: skip

Metric = Counter | Histogram | Gauge
METRICS: tuple[Metric, ...] = tuple(
    one for one in list(globals().values()) if isinstance(one, Counter | Histogram | Gauge)
)
