"""Labels in the tools."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.pipeline.build import build
from tests.mcp.catalogue import Hub, hub_over
from tests.support.catalogues import settings_in, write_label, write_version


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A prompt whose label production names the older of two versions."""
    settings = settings_in(tmp_path, queries=True)
    for version, text in (("1.0.0", "Old {{what}}."), ("1.1.0", "New {{what}}.")):
        write_version(settings.content, "ann", "story", version, text)
    write_label(settings.content, "ann/story", 1, "production", "1.0.0")
    build(settings)
    with hub_over(settings) as hub:
        yield hub


@pytest.mark.parametrize(
    "asked",
    [
        {"id": "ann/story@production"},
        {"id": "ann/story", "label": "production"},
        {"id": "ann/story@production", "label": "production"},
        {"owner": "ann", "name": "story", "label": "production"},
    ],
)
def test_the_version_that_a_label_names(hub: Hub, asked: dict[str, str]):
    told = hub.get("get_prompt", **asked, arguments={"what": "tale"})
    assert (told["version"], told["is_latest"], told["label"]) == ("1.0.0", False, "production")
    assert told["text"].startswith("Old tale.")


def test_latest_is_a_ref(hub: Hub):
    for asked in ({"id": "ann/story@latest"}, {"id": "ann/story", "label": "latest"}):
        told = hub.get("get_prompt", **asked)
        assert told["version"] == "1.1.0" and "label" not in told


def test_a_label_that_moves(hub: Hub):
    assert hub.get("get_prompt", id="ann/story@production")["version"] == "1.0.0"
    write_label(hub.settings.content, "ann/story", 2, "production", "1.1.0")
    build(hub.settings)
    assert hub.get("get_prompt", id="ann/story@production")["version"] == "1.1.0"


def test_versions_show_their_labels(hub: Hub):
    told = hub.get("list_versions", id="ann/story")["versions"]
    assert [(one["version"], one["labels"]) for one in told] == [
        ("1.1.0", []), ("1.0.0", ["production"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("prodution", "No label `prodution` of ann/story. Did you mean `production`?"),
        ("canary", "No label `canary` of ann/story. Its labels are production."),
    ],
)
def test_labels_that_are_not_there(hub: Hub, label: str, says: str):
    assert says in hub.error("get_prompt", id=f"ann/story@{label}")
