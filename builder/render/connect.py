"""Instructions for MCP clients: the endpoint's address, how each client adds it, ``server.json``.

Pure functions of the settings. The formats are those of the clients' own documentation in November
2026. No allowed site name or base URL can break their quoting.
"""

import json
import re
import shlex
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from anyascii import anyascii

from builder import VERSION
from builder.model.routes import BY_NAME
from builder.model.service_urls import MCP_URL
from builder.model.settings import Settings

NAMELESS = "hub"
# With a prefix and a tool's name, some models accept fewer than 60 characters.
NAME_CHARS_MAX = 32

REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
REGISTRY_NAME_CHARS_MAX = 200
TITLE_CHARS_MAX = 100
DESCRIPTION = "Search and read the prompts of this hub, in all versions. Read-only, "


_VSCODE_INPUTS = [
    {"type": "promptString", "id": "hub-token", "description": "Token of the hub", "password": True}
]


class Snippets(NamedTuple):
    """The text to type or to paste, by client. Commands are lines for a POSIX shell."""

    claude_code: str
    cursor: str
    vscode_command: str
    vscode: str
    codex_command: str
    codex: str
    gemini_command: str
    gemini: str


def mcp_url(settings: Settings) -> str:
    """The address of the MCP endpoint, if the host has one: see ``Settings.queries``."""
    return settings.base_url + MCP_URL


def client_name(settings: Settings) -> str:
    """The name of this hub in clients: the site's name in words of a-z and 0-9 joined by hyphens.

    At least two characters, as the registry requires, and at most NAME_CHARS_MAX.
    """
    words = re.findall("[a-z0-9]+", anyascii(settings.site_name).lower())
    name = "-".join(words)[:NAME_CHARS_MAX].rstrip("-")
    return name if len(name) > 1 else NAMELESS


def snippets(settings: Settings) -> Snippets:
    """The setup of the endpoint in each client, under ``client_name``. For a private hub it has a
    token from the environment variable HUB_TOKEN, or, in VS Code, from a prompt.
    """
    name, url = client_name(settings), mcp_url(settings)
    is_private = settings.private

    def headers(token: str) -> dict[str, Any]:
        return {"headers": {"Authorization": f"Bearer {token}"}} if is_private else {}

    typed = {"type": "http", "url": url} | headers("${input:hub-token}")
    inputs = {"inputs": _VSCODE_INPUTS} if is_private else {}
    vscode = json.dumps({"name": name} | typed | inputs)
    # Double quotes, so that the shell expands the token.
    option = ' --header "Authorization: Bearer $HUB_TOKEN"' if is_private else ""
    codex_option = " --bearer-token-env-var HUB_TOKEN" if is_private else ""
    codex_line = '\nbearer_token_env_var = "HUB_TOKEN"' if is_private else ""
    named = shlex.join([name, url])
    return Snippets(
        claude_code=f"claude mcp add --transport http {named}{option}",
        cursor=_json({"mcpServers": {name: {"url": url} | headers("${env:HUB_TOKEN}")}}),
        vscode_command=shlex.join(["code", "--add-mcp", vscode]),
        vscode=_json({"servers": {name: typed}} | inputs),
        codex_command=shlex.join(["codex", "mcp", "add", name, "--url", url]) + codex_option,
        # A base URL has no character that a TOML string would escape.
        codex=f'[mcp_servers.{name}]\nurl = "{url}"{codex_line}',
        gemini_command=f"gemini mcp add --transport http{option} {named}",
        gemini=_json({"mcpServers": {name: {"httpUrl": url} | headers("$HUB_TOKEN")}}),
    )


def server_json(settings: Settings) -> bytes:
    """The document with which the MCP registry lists this hub.

    A host with only files has no endpoint, so its document names none.
    """
    document = {
        "$schema": REGISTRY_SCHEMA,
        "name": registry_name(settings),
        "title": settings.site_name.strip()[:TITLE_CHARS_MAX].rstrip() or NAMELESS.capitalize(),
        "description": DESCRIPTION + ("for members." if settings.private else "no key needed."),
        "version": VERSION,
        "websiteUrl": settings.base_url + BY_NAME["home"].url,
    }
    if settings.queries:
        document["remotes"] = [{"type": "streamable-http", "url": mcp_url(settings)}]
        if settings.private:
            about = {"description": "Bearer and a token of this hub", "isRequired": True}
            document["remotes"][0]["headers"] = [
                {"name": "Authorization", "isSecret": True} | about
            ]
    return f"{_json(document)}\n".encode()


def registry_name(settings: Settings) -> str:
    """The hub's name in the registry, ``org.example.prompts/hub``: the host's labels in reverse
    order, then ``client_name``.

    An address or localhost also gives a valid name, but the registry lists no such host.
    """
    name = client_name(settings)
    host = urlsplit(settings.base_url).hostname or ""
    labels = re.findall("[a-z0-9]+(?:-+[a-z0-9]+)*", host)
    namespace = ".".join(reversed(labels)) or "localhost"
    # DNS names are shorter, but a base URL need not be one.
    return f"{namespace[: REGISTRY_NAME_CHARS_MAX - len(name) - 1].rstrip('.-')}/{name}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
