"""A skill with scripts, a picture and an empty file stays the same, byte for byte and bit for bit,
on every way in and out of a hub.
"""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from builder.model.matching import version_file
from builder.model.settings import Settings
from builder.store import content
from builder.store.check import check
from cli.hubctl import main
from tests.moving.importers.bringing import write_all
from tests.support.catalogues import settings_in

SKILL = """---
name: pdf-forms
description: Fills in the forms of PDF files. Use it when the user names a form.
license: Apache-2.0
allowed-tools: Bash(python3 *), Read
---

# PDF forms

Run `python3 scripts/fields.py FORM` to list the fields of a form.
"""
FILES: dict[str, str | bytes] = {
    "LICENSE.txt": "Apache License\r\nVersion 2.0\r\n",
    "assets/forms/blank.pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\0\xff\n",
    "references/fields.md": "# Fields\n\nNo line break at the end",
    "references/schema.json": '{"type": "object"}\n',
    "scripts/__init__.py": "",
    "scripts/fields.py": "#!/usr/bin/env python3\nprint('fields')\n",
    "scripts/lib/fill.sh": '#!/bin/sh\nexec python3 fill.py "$@"\n',
}
EXECUTABLE = {"scripts/fields.py", "scripts/lib/fill.sh"}
WHOLE = {
    path: (text.encode() if isinstance(text, str) else text, path in EXECUTABLE)
    for path, text in FILES.items()
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A hub into which the skill was imported."""
    source = write_all(tmp_path / "skills/pdf", {"SKILL.md": SKILL, **FILES})
    for path in EXECUTABLE:
        (source / path).chmod(0o755)
    monkeypatch.setattr(os, "sync", lambda: None)
    settings = settings_in(tmp_path / "hub")
    assert "1 prompt created" in hubctl(settings, "import", source.parent, "--owner", "ann")
    return settings


def hubctl(settings: Settings, *words: object) -> str:
    environment = {
        "HUB_CONTENT": settings.content, "HUB_OUT": settings.out, "HUB_STATE": settings.state,
        "HUB_CONFIG": "",
    }  # fmt: skip
    done = CliRunner().invoke(main, [*map(str, words)], env=environment)
    assert done.exit_code == 0, done.output
    return done.output


def text_of(settings: Settings) -> str:
    """The text of the skill's only version."""
    (version,) = content.list_versions(settings.content, "ann", "pdf-forms").versions
    return content.read_version(settings.content, "ann", "pdf-forms", version)[1]


def files_of(settings: Settings) -> dict[str, tuple[bytes, bool]]:
    """The bytes of the skill's files, and whether they are executable. The content has no fault."""
    assert [*check(settings.content)] == []
    (version,) = content.list_versions(settings.content, "ann", "pdf-forms").versions
    at = settings.content, "ann", "pdf-forms", version
    record = content.read_record(*at)
    listed, data = record.files or [], content.read_files(*at, record)
    return {one.path: (raw, one.executable) for one, raw in zip(listed, data, strict=True)}


def files_in(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """The files beside the SKILL.md of a folder."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file() and path.name != "SKILL.md"
    }


def test_by_an_import_a_build_and_an_export_into_another_hub(hub: Settings, tmp_path: Path) -> None:
    assert files_of(hub) == WHOLE
    hubctl(hub, "build")
    at = {"owner": "ann", "name": "pdf-forms", "version": "1.0.0"}
    for path, (data, _) in WHOLE.items():
        assert Path(hub.out, version_file(**at, path=path).file).read_bytes() == data
    hubctl(hub, "export", "--as", "skill", tmp_path / "out")
    assert files_in(tmp_path / "out/ann/pdf-forms") == WHOLE
    other = settings_in(tmp_path / "other")
    hubctl(other, "import", tmp_path / "out", "--owner", "ann")
    assert (files_of(other), text_of(other)) == (WHOLE, text_of(hub))
    hubctl(other, "export", "--as", "skill", tmp_path / "again")
    for folder in ("out", "again"):
        assert (tmp_path / folder / "ann/pdf-forms/SKILL.md").read_text() == SKILL


def test_by_a_backup_and_a_restore(hub: Settings, tmp_path: Path) -> None:
    os.makedirs(hub.state, exist_ok=True)
    hubctl(hub, "backup", tmp_path / "hub.tar")
    other = settings_in(tmp_path / "other")
    os.rmdir(other.content)
    hubctl(other, "restore", "--complete", tmp_path / "hub.tar")
    assert (files_of(other), text_of(other)) == (WHOLE, text_of(hub))
