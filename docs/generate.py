"""Writes the parts of the documents that follow from the code, between their markers.

    python docs/generate.py            rewrite them
    python docs/generate.py --check    exit status 1 if one is outdated

A part stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

import cli.service  # noqa: F401  defines all metrics
from builder.model import errors, names, records, request_bodies
from builder.model.caching import CACHE_CONTROL
from builder.model.content_tree import KINDS
from builder.model.errors import MESSAGE_CHARS_MAX, MESSAGES_MAX
from builder.model.metrics import METRICS
from builder.model.records import METADATA
from builder.model.request_bodies import PUBLICATION_BYTES_MAX
from builder.model.routes import BYTES, GZIP, READ_ROUTES, ROUTES
from builder.model.version_files import TEXT_SUFFIX
from builder.render.clients import SHELL_CLIENT
from builder.text.abilities import RULES
from cli.config import schema_of, variable_of
from cli.config_text import listed, shown_value, toml
from cli.hubctl import main as hubctl
from mcp_app.schemas import describe, schema
from mcp_app.tools import TOOLS, Tool
from publisher.accounts.tokens import EXPIRES_DAYS_DEFAULT, EXPIRES_DAYS_MAX
from publisher.limits import DEFAULT_LIMITS
from publisher.trusted.publishers import TrustedPublisher
from publisher.web.pages.snippets import workflow
from publisher.write.idempotency import KEPT_SECONDS

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    "docs/reference/endpoints.md", "docs/reference/hubctl.md", "docs/reference/content-format.md",
    "docs/use/publish-api.md", "docs/use/hub.md", "docs/use/mcp.md",
    "docs/use/publish-from-ci.md", "docs/use/skills.md", "docs/operate/own-hub.md",
    "docs/operate/monitoring.md",
]  # fmt: skip


def endpoints() -> str:
    """Returns the table of the public routes."""
    rows = ["| endpoint | file of the site | returns |", "|---|---|---|"]
    for route in ROUTES:
        if route.summary:
            url = f"`{route.query or route.url}`"
            files = f"`{route.file}`" + f", `{TEXT_SUFFIX}` for texts" * (route.media == BYTES)
            rows.append(f"| {url} | {files} | {route.summary} |")
    return "\n".join(rows)


def caching() -> str:
    """Returns the table of cache rules, with the public endpoints of each."""
    rows = ["| `Cache-Control` | endpoints |", "|---|---|"]
    for cache, header in CACHE_CONTROL.items():
        urls = [f"`{r.query or r.url}`" for r in ROUTES if r.summary and r.cache == cache]
        if urls:
            rows.append(f"| `{header}` | {', '.join(urls)} |")
    return "\n".join(rows)


def pages() -> str:
    """Returns the table of the routes that are pages."""
    rows = ["| page | file of the site |", "|---|---|"]
    rows += [f"| `{r.url}` | `{r.file}` |" for r in READ_ROUTES if not r.is_api and r.media != GZIP]
    return "\n".join(rows)


def statuses() -> str:
    """Returns the table of HTTP statuses, with the error codes of each."""
    rows = ["| status | codes |", "|---|---|"]
    for status in sorted(set(errors.STATUS.values())):
        codes = [f"`{code}`" for code, of in errors.STATUS.items() if of == status]
        rows.append(f"| {status} | {', '.join(codes)} |")
    return "\n".join(rows)


def reserved() -> str:
    """Returns the owners' names that the site uses itself."""
    return ", ".join(f"`{name}`" for name in sorted(names.RESERVED_OWNERS))


def content_tree() -> str:
    """Returns the table of the content tree."""
    rows = ["| file | contents | bytes at most | once written |", "|---|---|---|---|"]
    for kind in KINDS:
        then = "may be replaced" if kind.changes else "never changes"
        rows.append(f"| `{kind.path}` | {kind.meaning} | {kind.bytes_max:,} | {then} |")
    return "\n".join(rows)


def rules() -> str:
    """Returns the table of the rules that find what a version can do."""
    rows = ["| heading | what the rule finds |", "|---|---|"]
    return "\n".join(rows + [f"| {rule.title} | {rule.words} |" for rule in RULES])


def publish_fields() -> str:
    """Returns the table of the fields of a publication."""
    schema = msgspec.json.schema(request_bodies.Draft)["$defs"]["Draft"]
    rows = ["| field | value | left out |", "|---|---|---|"]
    for field, of in schema["properties"].items():
        if field in schema["required"]:
            default = "**required**"
        elif field in METADATA:
            default = "front matter, else as before"
        else:
            default = f"`{json.dumps(of['default'])}`" if "default" in of else "nothing"
        # JSON Schema counts characters, where publishing counts bytes.
        value = _value(of).replace("characters", "bytes") if field == "changelog" else _value(of)
        rows.append(f"| `{field}` | {value} | {default} |")
    return "\n".join(rows)


def _value(schema: dict[str, Any]) -> str:
    """Returns a description of the values that match a JSON schema, in a few words."""
    if "anyOf" in schema:
        return ", or ".join(_value(each) for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2].removeprefix("Draft").lower()
    if schema["type"] == "array":
        return f"list of at most {schema['maxItems']}: {_value(schema['items'])}"
    if schema["type"] != "string":
        return schema["type"]
    parts = [schema["description"]] if "description" in schema else []
    parts += [f'as `"{example}"`' for example in schema.get("examples", ())]
    if "maxLength" in schema:
        least = f"{schema['minLength']} to" if "minLength" in schema else "at most"
        parts.append(f"{least} {schema['maxLength']:,} characters")
    return ", ".join(["text", *parts])


def publish_limits() -> str:
    """Returns the table of limits on publications."""
    limits = [
        ("publications a minute for each owner", DEFAULT_LIMITS.publications),
        ("checks a minute for each address", DEFAULT_LIMITS.checks),
        ("requests a minute without a valid token, for each address", DEFAULT_LIMITS.wrong_tokens),
        ("bytes of `content` as UTF-8", records.CONTENT_BYTES_MAX),
        ("bytes of the request's body", PUBLICATION_BYTES_MAX),
        ("versions of a repo", names.VERSIONS_PER_REPO_MAX),
        ("levels of lists and objects in `parameters`", records.NESTING_MAX),
        ("hours that an `Idempotency-Key` is known", KEPT_SECONDS // 3600),
        ("warnings or `details` in an answer", MESSAGES_MAX),
        ("characters of each of these", MESSAGE_CHARS_MAX),
        ("days until a token expires, by default", EXPIRES_DAYS_DEFAULT),
        ("days until a token expires, at most", EXPIRES_DAYS_MAX),
    ]
    rows = [f"| {what} | {limit:,} |" for what, limit in limits]
    return "\n".join(["| limit | |", "|---|---|", *rows])


def tools() -> str:
    """Returns the MCP tools with their arguments and results."""
    return "\n\n".join(_tool(tool) for tool in TOOLS.values())


def _tool(tool: Tool) -> str:
    takes, gives = schema(tool.takes), schema(tool.gives)
    rows = ["| argument | value | meaning |", "|---|---|---|"]
    for name, of in takes["properties"].items():
        value = describe(of)
        if "default" in of:
            value += f"; default {of['default']}"
        if name in takes["required"]:
            value += "; **required**"
        rows.append(f"| `{name}` | {value} | {of['description']} |")
    parts = []
    for name, of in gives["properties"].items():
        of_items = of.get("items", {}).get("properties", ())
        within = f" ({', '.join(f'`{item}`' for item in of_items)})" if of_items else ""
        absent = "" if name in gives["required"] else "?"
        parts.append(f"`{name}`{absent}{within}")
    table = "\n".join(rows)
    return f"### `{tool.name}`\n\n{tool.description}\n\n{table}\n\nReturns {', '.join(parts)}."


def commands() -> str:
    """Returns the help of every command of hubctl, as printed."""
    return "\n\n".join(_helps(hubctl, "hubctl", None))


def client() -> str:
    """Returns the help of the shell client and of each of its commands, as printed."""
    parts = []
    for command in (
        "", "pull", "cat", "search", "versions", "labels", "lock", "sync", "update", "check",
        "push", "label",
    ):  # fmt: skip
        done = subprocess.run(
            ["sh", SHELL_CLIENT, "help", *command.split()],
            capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        parts.append(f"### `hub {command}".rstrip() + f"`\n\n```text\n{done.stdout}```")
    return "\n\n".join(parts)


def metrics() -> str:
    """Returns the table of metrics, with their labels and values."""
    rows = ["| metric | labels | |", "|---|---|---|"]
    for metric in sorted(METRICS, key=lambda metric: metric.name):
        labels = "; ".join(
            f"`{label}`: {', '.join(values)}" for label, values in metric.labels.items()
        )
        rows.append(f"| `{metric.name}` ({metric.kind}) | {labels} | {metric.help} |")
    return "\n".join(rows)


def settings() -> str:
    """Returns the table of the keys of hub.toml."""
    rows = ["| table | key | variable | value | meaning |", "|---|---|---|---|---|"]
    for words, setting in listed(schema_of(hubctl)):
        table = f"`[{'.'.join(words)}]`" if words else ""
        help_text = (setting.option.help or "").replace("|", "\\|")
        rows.append(
            f"| {table} | `{setting.key}` | `{variable_of(setting.option)}` | "
            f"`{toml(shown_value(setting))}` | {help_text} |"
        )
    return "\n".join(rows)


def trusted_github() -> str:
    """Returns the workflow of GitHub Actions that needs no stored token, for the default branch of
    any name.
    """
    ada = TrustedPublisher(
        id="", owner="ada", repo="", issuer="", project="", project_id="", branch="",
        workflow="publish-prompts.yml", environment="hub", labels="staging", added_at=0,
        used_at=None,
    )  # fmt: skip
    return f"```yaml\n{workflow('https://prompts.example.org', 'github', ada)}```"


def _helps(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(
        command, info_name=name, parent=parent,
        max_content_width=90, terminal_width=90, help_option_names=["-h", "--help"],
    )  # fmt: skip
    yield f"## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _helps(command.get_command(context, each), each, context)


PARTS = {
    part.__name__: part
    for part in (
        endpoints, caching, pages, statuses, reserved, content_tree, rules, publish_fields,
        publish_limits, tools, commands, client, metrics, settings, trusted_github,
    )
}  # fmt: skip


def rewritten(text: str) -> str:
    """Returns a document with each part between markers generated again."""

    def replace(found: re.Match[str]) -> str:
        name = found[1]
        return f"<!-- begin {name} -->\n{PARTS[name]()}\n<!-- end {name} -->"

    return re.sub(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", replace, text, flags=re.DOTALL)


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    stale = []
    for document in DOCUMENTS:
        path = ROOT / document
        text = path.read_text()
        if rewritten(text) != text:
            stale.append(document)
            if not is_check:
                path.write_text(rewritten(text))
    if is_check and stale:
        print(f"Outdated: {', '.join(stale)}. Run: python docs/generate.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
