"""What every host has to know of the table of routes, as regular expressions and answers.

Patterns are in what PCRE, RE2 and JavaScript have in common, but for the sign that begins a named
group. They have no anchors: what stands for the very end differs.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from builder.model import answer_headers
from builder.model.messages import MESSAGES
from builder.model.records import ErrorBody
from builder.model.routes import (
    CACHE_CONTROL,
    CHARS_MAX,
    GRAMMAR,
    GZIP,
    READ_ROUTES,
    ROUTES,
    SORTS,
    WELL_KNOWN,
    ZIP,
    Route,
    private_cache,
)
from builder.model.settings import DEFAULT_BASE_URL, READS_PER_MINUTE
from builder.render import envelopes

# Where an ACME authority asks, over http, for what shows who has a name. Its tokens are base64url.
CHALLENGE_PATTERN = r"/\.well-known/acme-challenge/[A-Za-z0-9_-]+"

# What is worth compressing.
TEXT_MEDIA = sorted({route.media for route in ROUTES} - {GZIP, ZIP})

# What a list's parameters are where they are not given.
LIST_DEFAULTS = {"sort": SORTS[0], "page": "1"}


class HostedSite(NamedTuple):
    """A site as a host's configuration sees it. ``out`` and ``state`` are absolute folders.

    ``listen``: host and port. ``upstream``: those of the `hubctl serve` that answers what files
    cannot; empty where there is none. ``reads_per_minute``: for each client address; 0 for no
    limit. ``trusted_proxies``: whose X-Forwarded-For tells the client's address. ``certificate``:
    the files of a certificate and its key, for TLS. ``redirect_from``: host and port from where
    readers are sent to https; empty for none. ``hsts_seconds``: how long browsers that have read
    over TLS read in no other way; 0 to tell them nothing. ``private``: only members read, which
    the service tells.
    """

    out: str
    state: str
    base_url: str = DEFAULT_BASE_URL
    listen: str = "127.0.0.1:8080"
    upstream: str = "127.0.0.1:8000"
    reads_per_minute: int = READS_PER_MINUTE
    trusted_proxies: tuple[str, ...] = ()
    certificate: tuple[str, str] | None = None
    redirect_from: str = ""
    hsts_seconds: int = 0
    private: bool = False

    @property
    def cache_control(self) -> dict[str, str]:
        """The values of Cache-Control, by cache class."""
        if not self.private:
            return CACHE_CONTROL
        return {name: private_cache(value) for name, value in CACHE_CONTROL.items()}

    @property
    def sharing(self) -> answer_headers.Headers:
        """Headers that say which other origins may read an answer."""
        return answer_headers.MEMBERS_ONLY if self.private else answer_headers.CORS

    @property
    def preflight(self) -> answer_headers.Headers:
        """What another origin is told that asks which requests it may send."""
        return [] if self.private else answer_headers.PREFLIGHT

    @property
    def challenges(self) -> str:
        """The folder where an ACME client such as certbot puts what its authority asks for."""
        return f"{self.state}/acme"

    @property
    def origin(self) -> str:
        """The base URL without its path."""
        return self.base_url.removesuffix(self.base_path)

    @property
    def base_path(self) -> str:
        """The path of the base URL: empty, or with a leading slash and none at its end."""
        return urlsplit(self.base_url).path


class Rule(NamedTuple):
    """Paths, relative to the base URL, that mean a file of a route: its URL and its file.

    ``paths`` are all of them where the route has no parameters, else none; ``pattern`` matches
    them whole, with a group for each parameter.
    """

    route: Route
    paths: tuple[str, ...]
    pattern: str


def rules(group: str = "?<{}>", *, limits: bool = False) -> Iterator[Rule]:
    """What each path means; the first rule that matches is right.

    Those without parameters come first, since no repo is at `/cli/hub`. ``group`` is how a named
    group begins. ``limits``: names are no longer than they may be, by a look ahead, which RE2
    does not have.
    """

    def pattern(template: str) -> str:
        parts = re.split(r"\{(\w+)\}", template)
        return "".join(
            f"({group.format(part)}{value_pattern(part) if limits else GRAMMAR[part]})"
            if index % 2
            else re.escape(part)
            for index, part in enumerate(parts)
        )

    for route in sorted(READ_ROUTES, key=lambda route: "{" in route.url):
        file = f"/{route.file}"
        if "{" not in file:
            paths = tuple(dict.fromkeys((route.url, file)))
            yield Rule(route, paths, "|".join(map(re.escape, paths)))
        elif file.startswith(f"{route.url}."):
            extension = re.escape(file.removeprefix(route.url))
            yield Rule(route, (), f"{pattern(route.url)}(?:{extension})?")
        else:
            for path in dict.fromkeys((route.url, file)):
                yield Rule(route, (), pattern(path))


def value_pattern(parameter: str) -> str:
    """What a parameter may be, with a look ahead to how long it is."""
    grammar = GRAMMAR[parameter]
    if parameter not in CHARS_MAX:
        return grammar
    return f"(?![a-z0-9-]{{{CHARS_MAX[parameter] + 1}}}){grammar}"


def parameter_pattern(parameters: tuple[str, ...]) -> str:
    """The pattern of queries that have one of these parameters."""
    return f"(?:^|&)(?:{'|'.join(parameters)})(?:[=&]|$)"


def open_patterns(group: str = "?<{}>") -> Iterator[str]:
    """Patterns of the paths that strangers read on a private hub, too."""
    return (rule.pattern for rule in rules(group) if rule.route.is_open)


def well_known_pattern(base: str) -> str:
    """The pattern of paths where programs look for metadata: below a base path and at the root of
    its address. Nothing is there, so strangers of a private hub may ask, too.
    """
    return f"(?:{re.escape(base)})?{re.escape(WELL_KNOWN)}.*"


def header_lines(headers: answer_headers.Headers) -> list[tuple[str, str]]:
    """Names, as configurations write them, and values."""
    return [(name.decode().title(), value.decode()) for name, value in headers]


def envelope(code: str, message: str = "") -> str:
    """The body of an error; its message is the one of MESSAGES unless given."""
    return envelopes.error_envelope(ErrorBody(code, message or MESSAGES[code])).decode()
