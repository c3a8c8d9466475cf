"""Opik's API of prompts, after its published schemas: the requests of an import."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from tests.support.fake_api import FakeApi, Request, Said, fake_api

KEY = "a-key-of-nobody"
PATH = "/api/v1/private/prompts"
# A name of the author, which no import may publish.
AUTHOR = "grace@example.com"


class Opik:
    """A workspace. ``key`` is None if the server requires none."""

    def __init__(self) -> None:
        self.key: str | None = KEY
        self._prompts: dict[str, dict[str, Any]] = {}
        self._versions: dict[str, list[dict[str, Any]]] = {}

    def create(self, name: str, **fields: Any) -> str:
        """Returns the prompt's id."""
        key = f"0195c000-{len(self._prompts):04}-7000-8000-000000000000"
        self._prompts[key] = {
            "id": key, "name": name, "description": None, "tags": [], "project_id": "project-1",
            "template_structure": "text", "created_at": "2025-03-01T09:00:00.123456Z",
            "created_by": AUTHOR, "last_updated_by": AUTHOR, **fields,
        }  # fmt: skip
        self._versions[key] = []
        return key

    def add(self, key: str, template: Any, **fields: Any) -> None:
        """A further version."""
        versions = self._versions[key]
        number = len(versions) + 1
        is_chat = not isinstance(template, str)
        versions.append({
            "id": f"{key[:-4]}{number:04}", "prompt_id": key, "commit": f"c0ffee{number:02}",
            "version_number": f"v{number}", "version_type": "prompt_version",
            "template": json.dumps(template) if is_chat else template, "type": "mustache",
            "template_structure": "chat" if is_chat else "text", "metadata": None, "tags": [],
            "environments": [], "change_description": None, "created_by": AUTHOR,
            "created_at": f"2025-03-01T09:{number:02}:00.123456Z", **fields,
        })  # fmt: skip

    def answer(self, request: Request) -> Said:
        if self.key and request.headers.get("Authorization") != self.key:
            return Said(401, {"code": 401, "message": "API key should be provided"})
        match request.path.removeprefix(PATH).strip("/").split("/"):
            case [""]:
                counted = [
                    prompt | {"version_count": len(self._versions[key])}
                    for key, prompt in self._prompts.items()
                ]
                return _page(counted, request.params)
            case [key, "versions"] if key in self._versions:
                return _page(self._versions[key][::-1], request.params)
        return Said(404, {"errors": ["Prompt not found"]})

    def export(self, key: str) -> dict[str, Any]:
        """The output of ``opik export`` for a prompt."""
        history = [_exported(one) for one in self._versions[key][::-1]]
        current = history[0] | {"tags": self._prompts[key]["tags"]}
        return {
            "id": key, "name": self._prompts[key]["name"], "current_version": current,
            "history": history, "downloaded_at": "2025-04-01T09:00:00",
        }  # fmt: skip


def _exported(version: dict[str, Any]) -> dict[str, Any]:
    is_chat = version["template_structure"] == "chat"
    return {
        "prompt": json.loads(version["template"]) if is_chat else version["template"],
        "metadata": version["metadata"], "type": version["type"].upper(),
        "commit": version["commit"], "template_structure": version["template_structure"],
        "tags": version["tags"],
    }  # fmt: skip


def _page(entries: list[Any], params: dict[str, str]) -> Said:
    page, size = int(params.get("page", 1)), int(params.get("size", 10))
    content = entries[(page - 1) * size : page * size]
    return Said(
        200, {"page": page, "size": len(content), "total": len(entries), "content": content}
    )


@contextlib.contextmanager
def opik_server() -> Iterator[tuple[Opik, FakeApi]]:
    """A live server at a free port of 127.0.0.1, in threads of this process."""
    opik = Opik()
    with fake_api(opik.answer) as api:
        yield opik, api
