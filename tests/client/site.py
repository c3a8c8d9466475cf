"""The files of a hub whose prompts have labels, made by hand, and a host that serves them."""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from builder.model.records import StoredFile
from builder.model.version_files import content_sha256, media_type
from builder.text.prompts import parse_document
from tests.client.fake import Answer, Request, answer, tag

MOVED = "2026-10-01T09:30:00Z"
# The bytes of each file beside a text, by its path. Those that end with .sh are executable.
Files = Mapping[str, bytes]
NO_FILES: Files = {}


def sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def compact(data: Any, **meta: Any) -> bytes:
    """An answer of the API."""
    text = json.dumps({"data": data} | meta, ensure_ascii=False, separators=(",", ":"))
    return text.encode() + b"\n"


def listed(entries: list[dict[str, Any]]) -> bytes:
    return compact(entries, meta={"page": 1, "pages": 1, "total": len(entries)})


def stored(files: Files) -> list[StoredFile]:
    return [
        StoredFile(path, len(raw), sha256(raw), media_type(path), path.endswith(".sh"))
        for path, raw in sorted(files.items())
    ]


def packed(skill: bytes, files: Files) -> bytes:
    """The archive of a skill, as a build writes it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for path, raw in [("SKILL.md", skill), *sorted(files.items())]:
            file.writestr(zipfile.ZipInfo(path), raw)
    return archive.getvalue()


@dataclass
class Site:
    """``files`` are the bytes of each path below ``/api/v1/repos/``, or with a slash of any other.
    Without ``is_up`` each is a 503. ``gone``: why a path that begins so was withdrawn.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    is_up: bool = True
    gone: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._versions: dict[str, dict[str, dict[str, Any]]] = {}
        self._moves: dict[str, list[dict[str, Any]]] = {}

    def publish(self, repo: str, version: str, text: bytes, files: Files = NO_FILES) -> None:
        """As the latest version."""
        owner, name = repo.split("/")
        entry = {
            "version": version, "previous": None, "changelog": 'A ","sha256":"x" change.',
            "publisher": owner, "published_at": MOVED, "sha256": sha256(text), "size": len(text),
        }  # fmt: skip
        content = text.decode(errors="replace")
        body = parse_document(content).body
        more = {
            "owner": owner, "name": name, "content": content, "body": body, "variables": [],
        }  # fmt: skip
        versions = self._versions.setdefault(repo, {})
        versions[version] = entry | more | {"parameters": {"sha256": "0", "size": 1}}
        if files:
            versions[version] |= {
                "files": [to_builtins(one) for one in stored(files)],
                "content_sha256": content_sha256(sha256(text), stored(files)),
            }
        self.files[f"{repo}/versions/{version}.txt"] = text
        self._write_skill(repo, version, content, files)
        self.files[f"{repo}/versions/{version}.json"] = compact(versions[version])
        newest = [versions[each] | {"content": None} for each in reversed(versions)]
        self.files[f"{repo}/versions.json"] = listed(newest)
        self._write_repo(repo)

    def _write_skill(self, repo: str, version: str, content: str, files: Files) -> None:
        skill = f'---\nmetadata:\n  version: "{version}"\n---\n{content}'.encode()
        if files:
            self.files[f"{repo}/versions/{version}.skill.zip"] = packed(skill, files)
        self.files[f"{repo}/versions/{version}.skill.md"] = skill

    def move(
        self, repo: str, label: str, version: str | None, at: str = MOVED, note: str = "", **of: Any
    ) -> None:
        """Has a label name a version, or none."""
        moves = self._moves.setdefault(repo, [])
        record = {"label": label, "version": version, "previous": None}
        moves.append(record | {"moved_at": at, "moved_by": "ann", "note": note} | of)
        history = [move for move in reversed(moves) if move["label"] == label]
        self.files[f"{repo}/labels/{label}/history.json"] = listed(history)
        now = {move["label"]: move for move in moves}
        entries = [now[each] for each in sorted(now) if now[each]["version"]]
        self.files[f"{repo}/labels.json"] = listed(entries)
        for one in ("json", "txt"):
            self.files.pop(f"{repo}/labels/{label}.{one}", None)
        if version:
            its = self._versions[repo].get(version, {}) | {"label": label, "moved_at": at}
            self.files[f"{repo}/labels/{label}.json"] = compact(its)
        self._write_repo(repo)

    def _write_repo(self, repo: str) -> None:
        (*_, latest) = self._versions[repo].values()
        labels = {move["label"]: move["version"] for move in self._moves.get(repo, [])}
        data = {key: value for key, value in latest.items() if key != "version"}
        data |= {"latest_version": latest["version"], "labels": labels}
        self.files[f"{repo}.json"] = compact(data)

    def __call__(self, request: Request) -> Answer:
        body = self.files.get(request.path.removeprefix("/api/v1/repos/"))
        if not self.is_up:
            return answer(status=503)
        path = request.path.removeprefix("/api/v1/repos/")
        for begin, message in self.gone.items():
            if path.startswith(begin):
                error = {"code": "withdrawn", "message": message}
                return answer(json.dumps({"error": error}, separators=(",", ":")), 410)
        if body is None:
            return answer("<h1>Not found</h1>", 404)
        if request.headers.get("if-none-match") == tag(body):
            return answer(status=304, ETag=tag(body))
        return answer(body, ETag=tag(body))

    def write(self, folder: Path) -> None:
        """Puts the files into the site that a build has written there."""
        for path, body in self.files.items():
            target = folder / f"api/v1/repos/{path}".rpartition("//")[2]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body)


ONE, TWO, THREE = b"Review {{code}}.\n", b"Review {{code}} with care.\n", b"Review it all.\n"


def small_site() -> Site:
    """ann/review 1.0.0, 1.1.0 (production) and 2.0.0; and ann/story, which never had a label."""
    site = Site()
    site.publish("ann/story", "1.0.0", b"Tell a story.\n")
    for version, text in (("1.0.0", ONE), ("1.1.0", TWO), ("2.0.0", THREE)):
        site.publish("ann/review", version, text)
    # A label of the name of a key.
    site.move("ann/review", "sha256", "1.0.0", "2026-08-01T00:00:00Z")
    site.move("ann/review", "production", "1.0.0", "2026-09-01T10:00:00Z")
    site.move("ann/review", "production", None, "2026-09-10T10:00:00Z")
    site.move("ann/review", "production", "1.1.0", MOVED, 'Passed "all"\tchecks \\o/ ü')
    return site
