"""Makes small content trees and sites for tests, in the format of ``builder.store.content``.

Writes the files itself, byte by byte, so that tests of the reader do not depend on the product's
writer.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from builder.model.settings import Settings
from builder.model.version_files import media_type
from builder.pipeline.build import build
from builder.text.prompts import variable_names

BASE_URL = "https://hub.example"


def wait_for_tick(folder: str) -> None:
    """Wait until the clock of the file system has advanced, so that a change shows in a file's
    time.
    """
    probe = Path(folder, "probe")
    probe.write_bytes(b"")
    before = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == before:
        time.sleep(0.001)
        probe.write_bytes(b"")


def moment(hours: float) -> str:
    """A time, so many hours after the start of 2025."""
    time = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def version_hours(version: str) -> int:
    """Hours that grow with the version, so that default times are in order."""
    major, minor, patch = map(int, version.split("."))
    return major * 1000 + minor * 50 + patch


def write_owner(root: str | Path, owner: str, **fields: Any) -> Path:
    """Write ``owner.json``; fields left out get plain values."""
    path = Path(root, owner, "owner.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"name": owner.capitalize(), "joined_at": moment(0)} | fields)
    return path


def write_version(
    root: str | Path, owner: str, name: str, version: str, text: str | bytes,
    files: dict[str, bytes] | None = None, **fields: Any,
) -> Path:  # fmt: skip
    """Write one version's files by their paths, its text, then its record; fields left out get
    plain values. Returns the record's path.
    """
    data = text.encode() if isinstance(text, str) else text
    folder = Path(root, owner, name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{version}.md").write_bytes(data)
    listed = write_files(folder, version, files or {})
    record = {
        "publisher": owner,
        "published_at": moment(version_hours(version)),
        "sha256": hashlib.sha256(data).hexdigest(),
        "title": f"The {name} prompt",
        "variables": [
            {"name": found} for found in variable_names(data.decode(errors="replace"))
        ],
    }  # fmt: skip
    path = folder / f"{version}.json"
    write_json(path, record | listed | fields)
    return path


def write_files(folder: Path, version: str, files: dict[str, bytes]) -> dict[str, Any]:
    """Write the files of a version in a repo's folder, which has its text. Returns the fields of
    its record. Paths that end with ``.sh`` are executable.
    """
    shutil.rmtree(folder / f"{version}.files", ignore_errors=True)
    listed = []
    for path, raw in sorted(files.items()):
        place = folder / f"{version}.files" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(raw)
        listed.append({
            "path": path, "size": len(raw), "sha256": hashlib.sha256(raw).hexdigest(),
            "media_type": media_type(path), "executable": path.endswith(".sh"),
        })  # fmt: skip
    if not listed:
        return {}
    lines = [(hashlib.sha256((folder / f"{version}.md").read_bytes()).hexdigest(), " -")] + [
        (one["sha256"], "*" * one["executable"] + " " * (not one["executable"]) + one["path"])
        for one in listed
    ]
    whole = "".join(f"{sha256} {path}\n" for sha256, path in lines)
    return {"files": listed, "content_sha256": hashlib.sha256(whole.encode()).hexdigest()}


def write_label(
    root: str | Path, repo: str, number: int, label: str, version: str | None, **fields: Any
) -> Path:
    """Write one change of a label of ``owner/name``; fields left out get plain values."""
    path = Path(root, repo, "labels", f"{number}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    event = {"label": label, "version": version, "at": moment(10_000 + number), "by": "ann"}
    write_json(path, event | fields)
    return path


def write_withdrawn(root: str | Path, repo: str, version: str | None = None, **fields: Any) -> Path:
    """Withdraw a version of ``owner/name``, or all existing ones; omitted fields get plain values.
    A label that names a version has to be among the fields.
    """
    folder = Path(root, repo)
    gone = [version] if version else sorted(path.stem for path in folder.glob("*.json"))
    versions = {}
    for one in gone:
        text, record = folder / f"{one}.md", folder / f"{one}.json"
        fields_of = json.loads(record.read_text(encoding="utf-8"))
        kept = ("publisher", "published_at", "sha256", "ordinal", "labels", "label_number")
        remains = {key: fields_of[key] for key in kept if key in fields_of}
        versions[one] = remains | {"size": text.stat().st_size}
        text.unlink()
        record.unlink()
    path = folder / "withdrawn" / f"{version or 'all'}.json"
    path.parent.mkdir(exist_ok=True)
    withdrawn = {"at": moment(20_000), "by": "ann", "reason": "secret"}
    write_json(path, {"withdrawn": withdrawn | fields, "versions": versions})
    return path


def edit_record(path: Path, **fields: Any) -> None:
    """Rewrite a record in place with other values of some fields."""
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | fields)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def write_small_catalogue(root: str | Path) -> None:
    """Two owners, three repos, four versions, two tags."""
    write_owner(root, "ann", bio="Writes prompts.", url="https://ann.example")
    write_version(root, "ann", "review", "1.0.0", "Review {{code}}.\n", tags=["code"])
    write_version(
        root, "ann", "review", "1.1.0", "Review {{code}} with care.\n",
        tags=["code", "careful"], description="A careful review.", changelog="With care.",
    )  # fmt: skip
    write_version(root, "ann", "story", "1.0.0", "Tell a story.\n")
    write_version(root, "bob", "sql", "1.0.0", "Write SQL for {{question}}.\n", tags=["code"])


def settings_in(folder: str | Path, base_url: str = BASE_URL, **fields: Any) -> Settings:
    """Content, site and state as three folders of one; makes the content folder."""
    settings = Settings(
        f"{folder}/content", f"{folder}/site", f"{folder}/state", base_url, **fields
    )
    os.makedirs(settings.content, exist_ok=True)
    return settings


def build_files(settings: Settings, **options: Any) -> dict[str, bytes]:
    """Build without the search index; returns the site."""
    build(settings, index=False, **options)
    return read_tree(settings.out)


def freshly_built(settings: Settings) -> dict[str, bytes]:
    """The files that a full build of the same content and pull counts writes to an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = settings._replace(out=f"{folder}/site", state=f"{folder}/state")
        os.mkdir(fresh.state)
        for path in Path(settings.state).glob("pulls.sqlite3*"):
            shutil.copy(path, fresh.state)
        return build_files(fresh)


def read_tree(root: str | Path) -> dict[str, bytes]:
    """Every file's bytes, by its path relative to ``root``."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in Path(root).rglob("*")
        if path.is_file()
    }
