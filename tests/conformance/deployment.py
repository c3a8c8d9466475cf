"""Facts about a deployment that are known before any request."""

from typing import NamedTuple

LEVELS = ("files", "queries", "full")
# Beside the others: a hub that only members read. Of other tests, those of these areas are run as
# well, as a member: they look at no header that is another one there.
PRIVATE = "private"
MEMBERS_AREAS = {"files", "raw text", "repos", "versions", "MCP", "client", "service", "health"}

# Capabilities that a host may lack by its nature or by choice. Tests that need one are marked with
# its name.
CAPABILITIES = {
    "gzip": "large texts are compressed for who accepts it",
    "langfuse": "Langfuse's SDKs can read prompts",
    "mcp": "MCP is spoken at /mcp",
    "publishing": "the publish service answers, if only that a token is missing",
    "token": "there is a token to publish with",
    "rate limit": "a limit of reads is in force, and may be used up",
}


class Deployment(NamedTuple):
    """A hub under test. ``base_url`` is the address for requests, without a slash at its end; the
    one in its files may differ.

    ``token`` publishes to ``publish_to``, a repo; ``member`` is one that reads a private hub.
    ``rate_limit``: reads a minute. ``sample``: the number of repos, tags and pages of a list to
    test, at most; 0 for all. ``may_lack_data``: True if a test may find nothing to test. ``level``
    comes from the table of hosts. ``upstream``: the address of the service behind a web server.
    """

    base_url: str
    token: str = ""
    publish_to: str = ""
    rate_limit: int = 0
    sample: int = 0
    may_lack_data: bool = False
    level: str = LEVELS[0]
    member: str = ""
    upstream: str = ""

    @property
    def has_queries(self) -> bool:
        """True if it is tested for more than its files."""
        return self.level != LEVELS[0]
