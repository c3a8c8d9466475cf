"""OpenAI's Responses API on this machine, as far as an import asks it: after the published OpenAPI
description, and the messages of its errors.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from tests.support.fake_api import Asked, FakeApi, Said, fake_api

KEY = "sk-proj-a-key-of-one-test"
CREATED = 1_760_000_000

SUPPORT = "pmpt_68b0c29740048196bd3a6e6ac3c4d0e20ed9a13f0d15bf5e"
LETTER = "pmpt_690069ca73ac8190a17467e9d9850aec0f5728a89768fdc9"
OLD = "pmpt_6a11aa00000081908888888888888888aaaaaaaaaaaaaaaa"

# By id: the current version, and the messages of each; version 2 of SUPPORT was deleted.
PROMPTS: dict[str, tuple[str, dict[str, list[tuple[str, str]]]]] = {
    SUPPORT: ("3", {
        "1": [("developer", "You answer {{customer_name}}.")],
        "3": [("developer", "You answer {{customer_name}} kindly."),
              ("user", "I am {{customer_name}}. My {{ product }} is broken."),
              ("assistant", "I am sorry.")],
        "4": [("developer", "A draft for {{customer_name}}.")],
    }),
    LETTER: ("1", {"1": [("developer", "Write a letter.")]}),
    OLD: ("1", {"1": [("developer", "Asked of a model that has ended.")]}),
}  # fmt: skip
TOOLS = [
    {"type": "function", "name": "look_up", "parameters": {"type": "object"}, "strict": True},
    {"type": "mcp", "server_label": "orders", "server_url": "https://mcp.example",
     "authorization": "secret-of-a-server", "require_approval": "never"},
]  # fmt: skip


def make_response(
    prompt_id: str, version: str, messages: list[tuple[str, str]],
    variables: dict[str, Any] | None = None, **fields: Any,
) -> dict[str, Any]:  # fmt: skip
    """A response with these variables filled in."""
    values = variables or {}
    return {
        "id": f"resp_{prompt_id[5:20]}{version}",
        "object": "response",
        "created_at": CREATED,
        "status": "incomplete",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"},
        "instructions": [
            {"type": "message", "role": role,
             "content": [{"type": "input_text", "text": _fill(text, values)}]}
            for role, text in messages
        ],
        "max_output_tokens": None,
        "model": "gpt-5-2025-08-07",
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt": {"id": prompt_id, "variables": values, "version": version},
        "reasoning": {"effort": "low", "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": TOOLS,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 30,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 16,
            "output_tokens_details": {"reasoning_tokens": 16},
            "total_tokens": 46,
        },
        "metadata": {},
    } | fields  # fmt: skip


@contextlib.contextmanager
def openai_server(busy: int = 0) -> Iterator[FakeApi]:
    """The API, which says at first so many times that it is busy."""

    def answer(asked: Asked) -> Said:
        if asked.headers["Authorization"] != f"Bearer {KEY}":
            return _error(401, "Incorrect API key provided: sk-p***.", code="invalid_api_key")
        if (asked.method, asked.path) != ("POST", "/v1/responses"):
            return _error(404, f"Invalid URL ({asked.method} {asked.path})")
        if len(api.asked) <= busy:
            said = _error(429, "Rate limit reached.", code="rate_limit_exceeded")
            return said._replace(headers={"Retry-After": "3"})
        return _respond(asked.body)

    with fake_api(answer) as api:
        yield api


def _respond(body: dict[str, Any]) -> Said:
    if body.get("max_output_tokens", 16) < 16:
        return _error(400, "Invalid 'max_output_tokens': integer below minimum value.",
                      "max_output_tokens", "integer_below_min_value")  # fmt: skip
    prompt = body["prompt"]
    if prompt["id"] not in PROMPTS:
        return _error(404, f"Prompt with id '{prompt['id']}' not found.")
    current, versions = PROMPTS[prompt["id"]]
    version = prompt.get("version") or current
    if version not in versions:
        return _error(404, f"Prompt with id '{prompt['id']}' and version '{version}' not found.")
    if prompt["id"] == OLD and "model" not in body:
        return _error(
            400, "The requested model 'gpt-4' does not exist.", "model", "model_not_found"
        )
    values = prompt.get("variables", {})
    names = {name for _, text in versions[version] for name in _names(text)}
    if missing := sorted(names - values.keys()):
        return _error(400, f"Missing prompt variables: {', '.join(missing)}", "prompt.variables")
    if unknown := sorted(values.keys() - names):
        return _error(400, f"Unknown prompt variables: {', '.join(unknown)}", "prompt.variables")
    fields = {
        key: body[key] for key in ("max_output_tokens", "tool_choice", "model") if key in body
    }
    return Said(200, make_response(prompt["id"], version, versions[version], values, **fields))


def _error(status: int, message: str, param: str | None = None, code: str | None = None) -> Said:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Said(status, {"error": error})


def _names(text: str) -> list[str]:
    return re.findall(r"\{\{\s*(\w+)\s*\}\}", text)


def _fill(text: str, values: dict[str, Any]) -> str:
    return re.sub(
        r"\{\{\s*(\w+)\s*\}\}", lambda found: str(values.get(found[1], found[0])), text
    )  # fmt: skip
