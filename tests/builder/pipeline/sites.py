"""A site beside its content: what it answers, how content changes, and where a build ends."""

import json
import os
import shutil
from pathlib import Path

from builder.model.settings import Settings
from tests.support.catalogues import write_owner, write_version


def answer(settings: Settings, file: str):
    """A JSON file of the site."""
    return json.loads(Path(settings.out, file).read_bytes())


def stat_tree(root: str) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in Path(root).rglob("*")
    }


class Stopped(BaseException):
    """Stands for the end of the process: no code of ours may catch it."""


def stop_at(monkeypatch, name: str, number: int) -> None:
    """Let the ``number``-th call from now on of a function of ``os`` end the build."""
    function, calls = getattr(os, name), 0

    def call(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == number:
            raise Stopped
        return function(*args, **kwargs)

    monkeypatch.setattr(os, name, call)


def change_everything(root: str) -> None:
    """A new version, repo, owner and tag; a removed repo and tag; an edited profile."""
    write_version(root, "ann", "review", "1.2.0", "Review.\n", tags=["careful", "fresh"])
    write_version(root, "ann", "extra", "1.0.0", "More.\n", tags=["fresh"])
    write_version(root, "cyd", "first", "1.0.0", "First.\n")
    write_owner(root, "ann", name="Ann again")
    shutil.rmtree(f"{root}/bob")
