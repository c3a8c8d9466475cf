"""Instructions for MCP clients: the endpoint's address, and how each client adds it.

Pure functions of the settings. The formats are those of the clients' own documentation in November
2026. No allowed site name or base URL can break their quoting.
"""

import json
import shlex
from typing import Any

from builder.model.service_urls import MCP_URL
from builder.model.settings import Settings
from builder.text.plain_words import plain_words

NAMELESS = "hub"
# With a prefix and a tool's name, some models accept fewer than 60 characters.
NAME_CHARS_MAX = 32

_VSCODE_INPUTS = [
    {"type": "promptString", "id": "hub-token", "description": "Token of the hub", "password": True}
]


def mcp_url(settings: Settings) -> str:
    """The address of the MCP endpoint, if the host has one: see ``Settings.queries``."""
    return settings.base_url + MCP_URL


def client_name(settings: Settings) -> str:
    """The name of this hub in clients: the site's name in words of a-z and 0-9 joined by hyphens.

    At least two characters, and at most NAME_CHARS_MAX.
    """
    name = plain_words(settings.site_name, NAME_CHARS_MAX, "-")
    return name if len(name) > 1 else NAMELESS


def snippets(settings: Settings) -> dict[str, str]:
    """The text to type or to paste in each client, to set up the endpoint under ``client_name``.
    Commands are lines for a POSIX shell. For a private hub it has a
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
    return {
        "claude_code": f"claude mcp add --transport http {named}{option}",
        "cursor": _json({"mcpServers": {name: {"url": url} | headers("${env:HUB_TOKEN}")}}),
        "vscode_command": shlex.join(["code", "--add-mcp", vscode]),
        "vscode": _json({"servers": {name: typed}} | inputs),
        "codex_command": shlex.join(["codex", "mcp", "add", name, "--url", url]) + codex_option,
        # A base URL has no character that a TOML string would escape.
        "codex": f'[mcp_servers.{name}]\nurl = "{url}"{codex_line}',
        "gemini_command": f"gemini mcp add --transport http{option} {named}",
        "gemini": _json({"mcpServers": {name: {"httpUrl": url} | headers("$HUB_TOKEN")}}),
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
