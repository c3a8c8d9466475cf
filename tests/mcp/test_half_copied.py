"""Answers of the tools over an incomplete site or state, none of which lasts once it is whole."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.mcp.catalogue import Hub, hub_over
from tests.support.catalogues import settings_in, write_small_catalogue

FRONT_OF_REVIEW = {"owner": "ann", "name": "review"}


class Part(NamedTuple):
    """A file of the site, and a call that needs it."""

    file: str
    tool: str
    arguments: dict[str, Any]


PARTS = {
    "repo": Part(
        BY_NAME["repo"].file_for(**FRONT_OF_REVIEW), "get_prompt", {"id": "ann/review"}
    ),
    "repo-of-versions": Part(
        BY_NAME["repo"].file_for(**FRONT_OF_REVIEW), "list_versions", {"id": "ann/review"}
    ),
    "version": Part(
        BY_NAME["version"].file_for(**FRONT_OF_REVIEW, version="1.0.0"),
        "get_prompt", {"id": "ann/review@1.0.0"},
    ),
    "versions": Part(
        BY_NAME["versions"].file_for(**FRONT_OF_REVIEW), "list_versions", {"id": "ann/review"}
    ),
    "tags": Part(BY_NAME["tags"].file, "list_tags", {}),
}  # fmt: skip


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garble(path: Path) -> None:
    path.write_bytes(bytes(byte ^ 0x80 for byte in path.read_bytes()))


def make_other(path: Path) -> None:
    path.write_text('{"data": [{"OBEY": 1}], "meta": {}}')


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link_to_itself(path: Path) -> None:
    # No user can read it, not even root.
    path.unlink()
    path.symlink_to(path)


DAMAGES = (remove, cut, empty, garble, make_other, make_folder, link_to_itself)
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A hub over a catalogue that tests may damage, as long as they repair it."""
    settings = settings_in(tmp_path_factory.mktemp("fragile"), queries=True)
    write_small_catalogue(settings.content)
    build(settings)
    with hub_over(settings) as hub:
        yield hub


@contextlib.contextmanager
def damaged(path: Path, damage: Damage) -> Iterator[None]:
    """The file is put back at once, as it was to its time and inode.

    A copy is damaged, as what is mapped into memory must not change.
    """
    kept = path.with_name(f"{path.name}.kept")
    path.rename(kept)
    shutil.copy2(kept, path)
    try:
        damage(path)
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        kept.replace(path)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("part", PARTS)
def test_a_damaged_file_is_reported_and_forgotten(fragile: Hub, part: str, damage: Damage):
    file, tool, arguments = PARTS[part]
    before = fragile.get(tool, **arguments)
    path = Path(fragile.settings.out, file)
    with damaged(path, damage):
        for _ in range(2):
            error = fragile.error(tool, **arguments)
            assert "ry again in a moment" in error
            # No answer denies the existence of files that are being copied.
            assert "no " not in error.lower()
    assert fragile.get(tool, **arguments) == before


@pytest.mark.parametrize("part", ["repo", "version"])
def test_a_record_of_an_earlier_release_is_no_failure(fragile: Hub, part: str):
    def make_older(path: Path) -> None:
        record = json.loads(path.read_bytes())
        del record["data"]["body"]
        path.write_text(json.dumps(record))

    file, tool, arguments = PARTS[part]
    with damaged(Path(fragile.settings.out, file), make_older):
        assert "ry again in a moment" in fragile.error(tool, **arguments)


def test_the_description_of_the_site_is_not_needed(fragile: Hub):
    with damaged(Path(fragile.settings.out, BY_NAME["hub"].file), remove):
        for _, tool, arguments in PARTS.values():
            fragile.get(tool, **arguments)
        with damaged(Path(fragile.settings.out, PARTS["tags"].file), remove):
            assert "not built yet" in fragile.error("list_tags")


@pytest.mark.parametrize("owner", ["owner-050", "eve"])
def test_an_owner_whose_profile_is_not_there_yet(hostile: Hub, owner: str):
    asked = {"owner": owner, "limit": 3}
    with damaged(Path(hostile.settings.out, BY_NAME["user"].file_for(owner=owner)), remove):
        assert "ry again" in hostile.error("search_prompts", **asked)
    assert hostile.get("search_prompts", **asked)["prompts"]


def test_it_is_one_of_many_prompts_that_is_not_there_yet(hostile: Hub):
    file = BY_NAME["repo"].file_for(owner="many", name="prompt-077")
    with damaged(Path(hostile.settings.out, file), remove):
        assert "ry again" in hostile.error("get_prompt", id="many/prompt-077")


@contextlib.contextmanager
def moved(folder: str) -> Iterator[None]:
    os.rename(folder, f"{folder}.moved")
    try:
        yield
    finally:
        os.rename(f"{folder}.moved", folder)


@pytest.mark.parametrize("instead", ["nothing", "an empty folder", "a file"])
def test_a_site_that_is_not_there(fragile: Hub, instead: str):
    out = Path(fragile.settings.out)
    before = [fragile.get(tool, **arguments) for _, tool, arguments in PARTS.values()]
    with moved(str(out)):
        if instead == "an empty folder":
            out.mkdir()
        elif instead == "a file":
            out.write_text("")
        for _, tool, arguments in PARTS.values():
            assert "ry again in a moment" in fragile.error(tool, **arguments)
        if instead == "an empty folder":
            out.rmdir()
        elif instead == "a file":
            out.unlink()
    assert before == [fragile.get(tool, **arguments) for _, tool, arguments in PARTS.values()]


def test_without_a_state_files_still_answer(fragile: Hub):
    lost: Settings = fragile.settings._replace(state=f"{fragile.settings.state}-lost")
    with hub_over(lost) as hub:
        for _, tool, arguments in PARTS.values():
            assert hub.get(tool, **arguments) == fragile.get(tool, **arguments)
        assert "ry again" in hub.error("search_prompts", query="story")
        assert "search_prompts" in hub.error("get_prompt", id="ann/revew")
