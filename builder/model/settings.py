"""The operator's settings of a site; everything else follows from the content."""

import os
import re
from importlib.util import find_spec
from typing import NamedTuple
from urllib.parse import urlsplit

from builder.model.errors import OperatorError
from builder.model.version_files import BYTES_MAX

DEFAULT_BASE_URL = "http://127.0.0.1:8000"
# The names of the libraries; the first that is installed is the default.
SEARCH_ENGINES = ("tantivy", "whoosh")
DEFAULT_SEARCH = next(filter(find_spec, SEARCH_ENGINES), SEARCH_ENGINES[0])
# The default limit for each client address; an IPv6 address counts as its /64.
READS_PER_MINUTE = 120


class Settings(NamedTuple):
    """The folders, and the settings that rendered files depend on beside the content.

    ``base_url`` has no slash at its end and may have a path. ``queries``: the host answers
    ``q``, several tags at once and MCP, which files alone cannot. ``search``: the engine for
    queries. ``words``: ``catalogue.jsonl`` has words of each text, for searches on hosts that
    answer no queries.
    ``file_bytes``: the most bytes of the files of a version that is published.
    ``langfuse``: Langfuse's SDKs can read the site. ``private``: only members read it. ``accent``:
    the colour of links and of the main button, as #rrggbb; by default the site's own.
    """

    content: str = "content"
    out: str = "site_out"
    state: str = "var"
    base_url: str = DEFAULT_BASE_URL
    site_name: str = "Hub"
    queries: bool = False
    search: str = DEFAULT_SEARCH
    words: bool = True
    langfuse: bool = False
    private: bool = False
    accent: str = ""
    file_bytes: int = BYTES_MAX

    @property
    def folders(self) -> dict[str, str]:
        """The path of each folder, by its name in readiness reports and metrics."""
        return {"content": self.content, "state": self.state, "site": self.out}

    @property
    def base_path(self) -> str:
        """The path of the base URL: empty, or with a leading slash and none at its end."""
        return urlsplit(self.base_url).path


def parse_base_url(text: str) -> str:
    """Check a base URL and drop a final slash. Raises OperatorError."""
    url = text.rstrip("/")
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        port_is_valid = False
    if (
        not port_is_valid
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
        or not re.fullmatch(r"[A-Za-z0-9._~:/\[\]-]+", url)
        or {".", ".."} & set(parts.path.split("/"))
        or "//" in parts.path
    ):
        raise OperatorError(
            f"Invalid base URL {text!r}. Give the address of the site without a query, like "
            "https://prompts.example.org or https://example.org/prompts."
        )
    return url


def check_folders(settings: Settings) -> None:
    """Refuse folders that contain each other. Raises OperatorError."""
    folders = {
        "--content": settings.content,
        "--out": settings.out,
        "--state": settings.state,
    }
    real = {option: os.path.realpath(path) for option, path in folders.items()}
    for option, path in real.items():
        for other, inside in real.items():
            if option != other and os.path.commonpath([path, inside]) == path:
                raise OperatorError(
                    f"{other} {folders[other]} is inside {option} {folders[option]}. Use three "
                    "separate folders for content, site and state."
                )
