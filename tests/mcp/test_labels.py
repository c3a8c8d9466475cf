"""Labels in the tools, on files as a build writes them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.model.routes import BY_NAME
from builder.model.settings import Settings
from builder.pipeline.build import build
from tests.mcp.catalogue import Hub, hub_over
from tests.support.catalogues import moment, settings_in, write_version

REPO = {"owner": "ann", "name": "story"}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A prompt whose label production names the older of two versions."""
    settings = settings_in(tmp_path, queries=True)
    for version, text in (("1.0.0", "Old {{what}}."), ("1.1.0", "New {{what}}.")):
        write_version(settings.content, *REPO.values(), version, text)
    build(settings)
    move(settings, "1.0.0")
    with hub_over(settings) as hub:
        yield hub


def move(settings: Settings, version: str) -> None:
    """Write the files of the label, and the list of versions, as of a build."""
    site = Path(settings.out)
    record = json.loads((site / BY_NAME["version"].file_for(**REPO, version=version)).read_bytes())
    record["data"] |= {"label": "production", "moved_at": moment(5)}
    write(site / BY_NAME["label"].file_for(**REPO, label="production"), record)
    row = {
        "label": "production", "version": version, "previous": None, "moved_at": moment(5),
        "moved_by": "ann", "note": "",
    }  # fmt: skip
    listed = site / BY_NAME["versions"].file_for(**REPO)
    versions = json.loads(listed.read_bytes())
    labels = versions | {"data": [row]}
    write(site / BY_NAME["labels"].file_for(**REPO), labels)
    for entry in versions["data"]:
        entry["labels"] = ["production"] if entry["version"] == version else []
    write(listed, versions)


def write(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value))
    new.replace(path)


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
    move(hub.settings, "1.1.0")
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
    outcome = hub.call("get_prompt", {"id": f"ann/story@{label}"})
    assert says in str(outcome)
