"""LangSmith's API of prompts, after its published schemas: the requests of an import."""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.support.fake_api import FakeApi, Request, Said, fake_api

KEY = "lsv2-a-key-of-nobody"
HANDLE = "acme"
# Names of authors, which no import may publish.
AUTHOR = "Grace Hopper"


class LangSmith:
    """A workspace."""

    def __init__(self) -> None:
        self.prompts: dict[str, dict[str, Any]] = {}

    def create(self, handle: str, *, is_public: bool = False, **repo: Any) -> None:
        self.prompts[handle] = {
            "repo": {
                "id": f"id-of-{handle}", "repo_handle": handle, "is_public": is_public,
                "owner": HANDLE if is_public else None, "is_archived": False,
                "repo_type": "prompt", "description": None, "readme": "About it.", "tags": [],
                "full_name": f"{HANDLE if is_public else '-'}/{handle}",
                "tenant_id": "workspace-1", "created_at": "2025-03-01T09:00:00.123456+00:00",
                "updated_at": "2025-03-01T09:00:00.123456+00:00", "num_likes": 0,
                "num_downloads": 0, "num_views": 0, **repo,
            },
            "commits": [],
            "tags": {},
        }  # fmt: skip

    def push(self, handle: str, manifest: dict[str, Any], *tags: str, about: str = "") -> str:
        """A further commit; returns its hash. Its tags leave the others."""
        prompt = self.prompts[handle]
        commits = prompt["commits"]
        parent = commits[-1]["commit_hash"] if commits else None
        text = json.dumps([parent, manifest])
        commits.append({
            "id": f"00000000-0000-4000-8000-{len(commits):012}",
            "commit_hash": hashlib.sha256(text.encode()).hexdigest(),
            "parent_commit_hash": parent, "description": about,
            # Two in a second.
            "created_at": f"2025-03-01T09:30:{len(commits) // 2:02}.123456+00:00",
            "full_name": AUTHOR, "manifest": manifest,
        })  # fmt: skip
        prompt["tags"] |= {tag: commits[-1]["commit_hash"] for tag in tags}
        return commits[-1]["commit_hash"]

    def answer(self, request: Request) -> Said:
        if request.headers.get("x-api-key") != KEY:
            return Said(401, {"detail": "Invalid token"})
        match request.path.strip("/").split("/"):
            case ["settings"]:
                return Said(200, {"id": "1", "display_name": "Acme", "tenant_handle": HANDLE})
            case ["repos"]:
                return self._list_repos(request.params)
            case ["repos", "-", handle, "tags"] if handle in self.prompts:
                tags = self.prompts[handle]["tags"].items()
                return Said(200, [{"tag_name": tag, "commit_hash": found} for tag, found in tags])
            case ["commits", "-", handle] if handle in self.prompts:
                hidden = {"manifest": None}
                commits = [one | hidden for one in self.prompts[handle]["commits"][::-1]]
                return _page("commits", commits, request.params)
            case ["commits", "-", handle, found] if handle in self.prompts:
                return self._commit(handle, found, request.params)
        return Said(404, {"detail": "Not found"})

    def _list_repos(self, params: dict[str, str]) -> Said:
        is_public = params["is_public"] == "true"
        if is_public and params.get("tenant_handle") != HANDLE:
            return Said(200, {"repos": [{"repo_handle": "of-a-stranger"}], "total": 1})
        repos = [
            prompt["repo"] | {"num_commits": len(prompt["commits"])}
            for prompt in self.prompts.values()
            if prompt["repo"]["is_public"] == is_public
            and (params.get("is_archived") != "false" or not prompt["repo"]["is_archived"])
        ]
        return _page("repos", repos, params)

    def _commit(self, handle: str, found: str, params: dict[str, str]) -> Said:
        for one in self.prompts[handle]["commits"]:
            if one["commit_hash"] == found:
                manifest = one["manifest"]
                if params.get("include_model") != "true":
                    manifest = manifest["kwargs"].get("first", manifest)
                return Said(200, {"commit_hash": found, "manifest": manifest, "examples": []})
        return Said(404, {"detail": "Commit not found"})


def _page(key: str, entries: list[Any], params: dict[str, str]) -> Said:
    limit, offset = int(params.get("limit", 20)), int(params.get("offset", 0))
    if not 1 <= limit <= 100:
        return Said(422, {"detail": [{"loc": ["query", "limit"], "msg": "at most 100"}]})
    return Said(200, {key: entries[offset : offset + limit], "total": len(entries)})


@contextlib.contextmanager
def langsmith_server() -> Iterator[tuple[LangSmith, FakeApi]]:
    """A live server at a free port of 127.0.0.1, in threads of this process."""
    langsmith = LangSmith()
    with fake_api(langsmith.answer) as api:
        yield langsmith, api
