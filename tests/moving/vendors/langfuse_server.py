"""A server for Langfuse's prompts, after its published API, for imports and SDKs."""

import contextlib
import json
import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from tests.support.fake_api import Request, Said, fake_api

# The secret key of tests/langfuse; its SDKs each have a public key of their own.
SECRET_KEY = "sk-lf-unused"
ENVIRONMENT = {"LANGFUSE_PUBLIC_KEY": "pk-lf-test", "LANGFUSE_SECRET_KEY": SECRET_KEY}
PATH = "/api/public/v2/prompts"
# A name of the author, which no import may publish.
AUTHOR = "grace@example.com"

# Prompts of ``fill`` with the queries for them, and the values of variables.
REFS = {
    "movie-critic": [{"version": number} for number in (1, 3, 4)]
    + [{"label": label} for label in ("production", "canary_2", "latest")] + [{}],
    "support/greeting": [{"version": 1}, {"version": 2}, {"label": "latest"}, {}],
}  # fmt: skip
VALUES = {
    "movie": "Ran & <Rashomon>",
    "größe": "10",
    "language": "Welsh",
    "question": "Why {{not}}?",
}

_reference = re.compile(r"@@@langfusePrompt:name=(.*?)\|(label|version)=(.*?)@@@")


class LangfuseServer:
    """A running server, and the requests that it received.

    It does not answer for versions with the number ``broken_version``; the prompt ``gone`` appears
    only in the list.
    """

    url: str
    requests: list[Request]

    def __init__(self) -> None:
        self.broken_version = 0
        self.gone = ""
        self.prompts: dict[str, list[dict[str, Any]]] = {}

    def create(
        self,
        name: str,
        prompt: str | list[dict[str, str]],
        *,
        config: Any = None,
        labels: list[str] | None = None,
        tags: list[str] | None = None,
        commit_message: str | None = None,
    ) -> dict[str, Any]:
        """A further version. Its labels, and ``latest``, leave the others; all get its tags."""
        versions = self.prompts.setdefault(name, [])
        number = versions[-1]["version"] + 1 if versions else 1
        at = f"2025-03-01T{number:02}:30:00.123Z"
        kept = versions[-1]["tags"] if versions else []
        labels = [*(labels or []), "latest"]
        for one in versions:
            one["labels"] = [label for label in one["labels"] if label not in labels]
            one["tags"] = kept if tags is None else tags
        versions.append({
            "id": f"{name}-{number}", "createdAt": at, "updatedAt": at, "projectId": "project-1",
            "createdBy": AUTHOR, "prompt": prompt, "name": name, "version": number,
            "type": "text" if isinstance(prompt, str) else "chat", "isActive": None,
            "config": config or {}, "tags": kept if tags is None else tags, "labels": labels,
            "commitMessage": commit_message,
        })  # fmt: skip
        return versions[-1]

    def move(self, name: str, label: str, number: int) -> None:
        """Have a label name another version, which is no new version."""
        for one in self.prompts[name]:
            others = [text for text in one["labels"] if text != label]
            one["labels"] = [label, *others] if one["version"] == number else others

    def delete(self, name: str, number: int) -> None:
        """Delete a version, which leaves a gap."""
        self.prompts[name] = [one for one in self.prompts[name] if one["version"] != number]

    # Answers

    def answer(self, request: Request) -> Said:
        scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
        public, _, secret = b64decode(encoded).decode().partition(":")
        if scheme != "Basic" or not public.startswith("pk-lf-") or secret != SECRET_KEY:
            return _error(401, "UnauthorizedError", "Invalid credentials. Confirm your host.")
        if request.path == PATH:
            return self._list(request.params)
        name = request.path.removeprefix(f"{PATH}/")
        if name == request.path or "/" in name:
            return Said(404, b"<!DOCTYPE html><title>404</title>", {"Content-Type": "text/html"})
        return self._get(unquote(name), request.params)

    def _list(self, query: dict[str, str]) -> Said:
        page, limit = int(query.get("page", 1)), int(query.get("limit", 10))
        if page < 1 or not 1 <= limit <= 100:
            return _error(400, [{"path": ["limit"]}], "Invalid request data")
        there = sorted(name for name, versions in self.prompts.items() if versions)
        data = [self._meta(name) for name in there[(page - 1) * limit : page * limit]]
        meta = {
            "page": page, "limit": limit, "totalPages": -(-len(there) // limit),
            "totalItems": len(there),
        }  # fmt: skip
        return Said(200, {"data": data, "meta": meta, "pagination": meta})

    def _meta(self, name: str) -> dict[str, Any]:
        versions = self.prompts[name]
        latest = versions[-1]
        return {
            "name": name, "tags": latest["tags"], "lastUpdatedAt": latest["updatedAt"],
            "versions": [one["version"] for one in versions],
            "labels": sorted({label for one in versions for label in one["labels"]}),
            "type": latest["type"], "lastConfig": latest["config"],
        }  # fmt: skip

    def _get(self, name: str, query: dict[str, str]) -> Said:
        if "version" in query and "label" in query:
            return _error(400, "InvalidRequestError", "Cannot specify both version and label")
        key, value = next(
            ((key, query[key]) for key in ("version", "label") if key in query),
            ("label", "production"),
        )
        if key == "version" and int(value) == self.broken_version:
            return _error(400, "InvalidRequestError", "out of order")
        found = None if name == self.gone else self._find(name, key, value)
        if found is None:
            message = f"Prompt not found: '{name}' with {key} '{value}'"
            return _error(404, "LangfuseNotFoundError", message)
        shown = {**found, "resolutionGraph": None, "isActive": "production" in found["labels"]}
        if query.get("resolve", "true") == "true" and _reference.search(json.dumps(shown)):
            shown["prompt"] = self._resolve(shown["prompt"])
            shown["resolutionGraph"] = {"root": {"name": name}, "dependencies": {}}
        return Said(200, shown)

    def _find(self, name: str, key: str, value: str) -> dict[str, Any] | None:
        return next(
            (one for one in self.prompts.get(name, [])
             if (value in one["labels"] if key == "label" else str(one["version"]) == value)),
            None,
        )  # fmt: skip

    def _resolve(self, prompt: str) -> str:
        return _reference.sub(lambda found: self._find(*found.groups())["prompt"], prompt)


def fill(server: LangfuseServer) -> dict[str, str]:
    """Prompts of all kinds that a hub has as Langfuse has them; returns what an import calls them,
    by name.
    """
    server.create(
        "movie-critic", "Review {{movie}}.", config={"model": "m-1", "temperature": 0.2},
        tags=["film", "short"], commit_message="First",
    )  # fmt: skip
    server.create("movie-critic", "Deleted.", commit_message="Never read")
    # Two versions with the same text and settings, as a rollback leaves them.
    config = {"model": "m-2", "maxTokens": 900, "stop": ["é", None], "deep": {"a": [{"b": 0.5}]}}
    text = '\nAs {"movie": {"{{ movie }}": [{}]}}, é 語:\n  - {{unknown}} {{größe}} {{{movie}}}\n\n'
    for label in ("production", "canary_2"):
        server.create("movie-critic", text, config=config, labels=[label], commit_message="JSON")
    server.delete("movie-critic", 2)
    server.create("support/greeting", [
        {"role": "system", "content": "You speak {{language}}."},
        {"role": "user", "content": "{{question}}"},
    ], labels=["production"], commit_message="Chat")  # fmt: skip
    server.create("support/greeting", [
        {"role": "system", "content": "You speak {{language}}.\n\n  - Always."},
        {"role": "user", "content": "Who are you?"},
        {"role": "assistant", "content": 'A {"bot": 1}, in {{ language }}.'},
        {"role": "user", "content": "{{question}}"},
    ], commit_message="An example")  # fmt: skip
    return {"movie-critic": "movie-critic", "support/greeting": "support-greeting"}


def _error(status: int, error: Any, message: str) -> Said:
    return Said(status, {"message": message, "error": error})


@contextlib.contextmanager
def langfuse_server() -> Iterator[LangfuseServer]:
    """A live server at a free port of 127.0.0.1, in threads of this process."""
    server = LangfuseServer()
    with fake_api(server.answer) as api:
        server.url, server.requests = api.url, api.requests
        yield server
