"""The files for Langfuse's SDKs: what is in them, and when they come and go."""

import json
from pathlib import Path
from typing import Any

import pytest

from builder.model.routes import LANGFUSE
from builder.model.settings import Settings
from builder.pipeline.build import build, compare
from builder.pipeline.take_off import take_off
from tests.support.catalogues import (
    read_tree,
    settings_in,
    write_label,
    write_version,
    write_withdrawn,
)

FOLDER = LANGFUSE.removeprefix("/")
CHAT = '{{role "system"}}\nSpeak {{language}}.\n{{role "user"}}\n{{question}}\n'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)._replace(langfuse=True)


@pytest.fixture
def root(settings: Settings) -> Path:
    root = Path(settings.content)
    write_version(root, "ann", "story", "1.0.0", "---\ntitle: A\n---\nOne {{a}}\n", tags=["x"],
                  parameters={"seed": 1}, changelog="First")  # fmt: skip
    write_version(root, "ann", "story", "1.1.0", "Two {{a}}\n")
    # Its name begins with the other's.
    write_version(root, "ann", "story-2", "1.0.0", CHAT)
    return root


def names_of(settings: Settings, repo: str) -> set[str]:
    """Suffixes of a repo's files, after the name of the repo."""
    found = [file for file in read_tree(settings.out) if file.startswith(f"{FOLDER}/{repo}")]
    rest = [file.removeprefix(f"{FOLDER}/{repo}") for file in found]
    return {name for name in rest if name[:1] in ("", "@")}


def read(settings: Settings, name: str) -> dict[str, Any]:
    return json.loads(Path(settings.out, FOLDER, name).read_bytes())


def test_a_text(settings, root):
    build(settings, index=False)
    assert names_of(settings, "ann/story") == {"", "@1", "@2", "@1.0.0", "@1.1.0", "@latest"}
    assert read(settings, "ann/story@1.0.0") == {
        "name": "ann/story", "version": 1, "type": "text", "prompt": "One {{a}}\n",
        "config": {"seed": 1}, "labels": [], "tags": ["x"], "commitMessage": "First",
    }  # fmt: skip
    assert read(settings, "ann/story")["labels"] == ["latest"]
    assert read(settings, "ann/story")["commitMessage"] is None


def test_labels_move_and_go(settings, root):
    write_label(root, "ann/story", 1, "production", "1.0.0")
    build(settings, index=False)
    assert read(settings, "ann/story")["version"] == 1
    assert read(settings, "ann/story@1")["labels"] == ["production"]
    write_label(root, "ann/story", 2, "production", "1.1.0")
    build(settings, index=False, changed=[("ann", "story")])
    assert read(settings, "ann/story@production")["version"] == 2
    assert read(settings, "ann/story@1")["labels"] == []
    write_label(root, "ann/story", 3, "production", None)
    build(settings, index=False, changed=[("ann", "story")])
    # At once: who has removed a label is not to find it.
    assert "@production" not in names_of(settings, "ann/story")
    assert read(settings, "ann/story")["labels"] == ["latest"]
    assert not any(compare(settings))


def test_a_withdrawn_version_is_gone_at_once(settings, root):
    write_label(root, "ann/story", 1, "production", "1.1.0")
    build(settings, index=False)
    write_withdrawn(root, "ann/story", "1.1.0", labels=["production"], label_number=2)
    build(settings, index=False, changed=[("ann", "story")])
    assert names_of(settings, "ann/story") == {"", "@1", "@1.0.0", "@latest"}
    assert read(settings, "ann/story")["prompt"] == "One {{a}}\n"
    # The file is removed even if the builder remembers nothing of the old site.
    secret = read_tree(settings.out)[f"{FOLDER}/ann/story@1"]
    stale = Path(settings.out, FOLDER, "ann/story@2")
    stale.write_bytes(secret)
    build(settings, index=False, full=True)
    assert not stale.exists()
    assert "" in names_of(settings, "ann/story-2")


def test_taken_off_without_a_build(settings, root):
    build(settings, index=False)
    take_off(
        settings.out, settings.state, "ann", "story", ["1.0.0"], []
    )  # fmt: skip
    assert names_of(settings, "ann/story") == set()
    assert "" in names_of(settings, "ann/story-2")
    write_withdrawn(root, "ann/story", "1.0.0")
    build(settings, index=False)
    assert not any(compare(settings))


def test_an_empty_hub_has_an_empty_list(settings):
    build(settings, index=False)
    meta = {"page": 1, "limit": 50, "totalItems": 0, "totalPages": 1}
    assert read(settings, "_/1.json") == {"data": [], "meta": meta}


def test_turned_on_and_off(settings, root):
    off = settings._replace(langfuse=False)
    build(off, index=False)
    without = read_tree(off.out)
    assert not any(file.startswith("langfuse") for file in without)
    build(settings, index=False)
    assert {file for file in read_tree(settings.out) if not file.startswith("langfuse")} == {
        *without
    }
    # Files without an object disappear one build later.
    build(off, index=False)
    build(off, index=False)
    assert read_tree(off.out) == without
