"""The table of routes as regular expressions and responses, for all hosts.

The patterns use only syntax that PCRE, RE2 and JavaScript share, except for the sign that begins a
named group. They have no anchors, because the anchor for the very end differs.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from builder.model import answer_headers
from builder.model.answers import ErrorBody
from builder.model.caching import CACHE_CONTROL, private_cache
from builder.model.messages import MESSAGES
from builder.model.routes import (
    BYTES,
    CHARS_MAX,
    GRAMMAR,
    GZIP,
    PATHS,
    PNG,
    READ_ROUTES,
    ROUTES,
    SORTS,
    WELL_KNOWN,
    ZIP,
    Route,
)
from builder.model.settings import DEFAULT_BASE_URL, READS_PER_MINUTE
from builder.render import envelopes

# The path at which an ACME authority requests a token over http to verify control of a name (RFC
# 8555 §8.3). Tokens are base64url.
CHALLENGE_PATTERN = r"/\.well-known/acme-challenge/[A-Za-z0-9_-]+"

# Media types worth compressing.
TEXT_MEDIA = sorted({route.media for route in ROUTES} - {BYTES, GZIP, PNG, ZIP})

# Values of a list's parameters that the query does not give.
LIST_DEFAULTS = {"sort": SORTS[0], "page": "1"}


class HostedSite(NamedTuple):
    """A site as a host's configuration sees it. ``out`` and ``state`` are absolute folders.

    ``listen``: host and port. ``upstream``: host and port of the `hubctl serve` that answers
    requests which files cannot; empty if there is none. ``reads_per_minute``: for each client
    address; 0 for no limit. ``trusted_proxies``: proxies whose X-Forwarded-For header is trusted
    for the client's address. ``certificate``: the files of a certificate and its key, for TLS.
    ``redirect_from``: host and port from which readers are redirected to https; empty for none.
    ``hsts_seconds``: how long browsers that have read over TLS must use TLS; 0 sends no such
    header. ``private``: only members read, and the service decides who is one.
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
        """The answer to a CORS preflight request from another origin."""
        return [] if self.private else answer_headers.PREFLIGHT

    @property
    def challenges(self) -> str:
        """The folder where an ACME client such as certbot puts the tokens that its authority
        requests.
        """
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
    """Paths, relative to the base URL, that stand for a file of a route: its URL and its file.

    ``paths`` are all of them if the route has no parameters, otherwise empty. ``pattern`` matches a
    whole path, with a group for each parameter.
    """

    route: Route
    paths: tuple[str, ...]
    pattern: str


def rules(group: str = "?<{}>", *, limits: bool = False) -> Iterator[Rule]:
    """The rules of all paths; the first rule that matches applies.

    Rules without parameters come first, since no repo can be at `/cli/hub`. ``group`` is how a
    named group begins. ``limits``: limit the length of names by a lookahead, which RE2 does not
    have.
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
    """The pattern of a parameter's values, with a lookahead that limits their length."""
    grammar = GRAMMAR[parameter]
    if parameter not in CHARS_MAX or parameter in PATHS:
        return grammar
    return f"(?![a-z0-9-]{{{CHARS_MAX[parameter] + 1}}}){grammar}"


def parameter_pattern(parameters: tuple[str, ...]) -> str:
    """The pattern of queries that have one of these parameters."""
    return f"(?:^|&)(?:{'|'.join(parameters)})(?:[=&]|$)"


def open_patterns(group: str = "?<{}>") -> Iterator[str]:
    """Patterns of the paths of a private hub that can be read without access."""
    return (rule.pattern for rule in rules(group) if rule.route.is_open)


def well_known_pattern(base: str) -> str:
    """The pattern of paths where programs look for metadata (RFC 8615): below a base path and at
    the root of its address. No files exist there, so requests need no access to a private hub.
    """
    return f"(?:{re.escape(base)})?{re.escape(WELL_KNOWN)}.*"


def header_lines(headers: answer_headers.Headers) -> list[tuple[str, str]]:
    """Header names, capitalised as in configurations, and values."""
    return [(name.decode().title(), value.decode()) for name, value in headers]


def envelope(code: str, message: str = "") -> str:
    """The body of an error; its message is the one of MESSAGES unless given."""
    return envelopes.error_envelope(ErrorBody(code, message or MESSAGES[code])).decode()
