"""What a restore recovers from the site that readers had, and the drill of all of it."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from backup.places import FolderPlace
from builder.model.errors import OperatorError, RequestError
from builder.pipeline.build import build
from builder.store.check import check
from builder.store.labels import read_labels
from tests.backup.conftest import Hub
from tests.support.catalogues import edit_record, read_tree, write_owner
from tests.support.servers import in_thread


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _serving(hub: Hub, handler: type[_Quiet] = _Quiet) -> Iterator[str]:
    """The URL of the hub's site, as a host of plain files serves it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=hub.settings.out))
    with in_thread(server):
        yield f"http://127.0.0.1:{server.server_port}/"


def publish_more(hub: Hub) -> None:
    """All kinds of things that can happen after a backup."""
    hub.publish("story", "Tell a better story.", bump="minor", labels=["production"])
    hub.label("story", "canary", "1.1.0")
    hub.label("story", "canary", "1.0.0")
    hub.publish(
        "poem", "---\ntitle: Odes\nlicense: CC0-1.0\n---\nWrite an ode to {{whom}}.\n",
        changelog="Odes.", parameters={"temperature": 0.5},
    )  # fmt: skip
    hub.publish("poem", "Write an ode with a key, sk-1.")
    hub.withdraw("poem", "1.0.2")
    hub.withdraw("story", "1.0.0")
    hub.publish("new", "A new prompt.")


@pytest.fixture
def lost(hub: Hub, place: FolderPlace) -> dict[str, bytes]:
    """The site of a hub that published more after its backup, and then lost all but that."""
    hub.publish("gone", "Soon withdrawn.", labels=["production"])
    build(hub.settings, index=False)
    hub.back_up(place)
    publish_more(hub)
    hub.withdraw("gone", None)
    # A label that was new after the backup, and is gone again.
    hub.label("new", "beta", "1.0.0")
    hub.publish("new", "Another.")
    hub.withdraw("new", "1.0.0")
    for _ in range(2):
        build(hub.settings, index=False)
    shutil.rmtree(hub.settings.content)
    shutil.rmtree(hub.settings.state)
    return read_tree(hub.settings.out)


@pytest.mark.parametrize("kind", ["folder", "url"])
def test_the_drill(hub: Hub, lost: dict[str, bytes], place: FolderPlace, kind: str) -> None:
    """Publish, back up, publish, destroy, restore: the site is the same, byte by byte."""
    times = {
        path: path.stat().st_mtime_ns
        for path in Path(hub.settings.out).rglob("*")
        if path.is_file()
    }
    with _serving(hub) if kind == "url" else nullcontext(hub.settings.out) as site:
        report = hub.restore(place, site=site)
    moves = 6 if kind == "folder" else 4
    assert report.found[:4] == (3, 4, moves, False) and report.floor == 0
    assert [fault for fault in check(hub.settings.content) if not fault.is_warning] == []
    build(hub.settings, index=False)
    again = read_tree(hub.settings.out)
    differing = {file for file in again.keys() | lost.keys() if again.get(file) != lost.get(file)}
    # Who has only URLs cannot find a label that no list names any more.
    unknown = {file for file in differing if kind == "url" and "/new" in file}
    if unknown:  # and of which the digest of the prompt tells
        unknown |= {"api/v1/catalogue.jsonl", "api/v1/catalogue.jsonl.gz"}
    # Of a prompt that is withdrawn whole, the site tells the day.
    assert differing - unknown == {"ann/gone/withdrawn.html"}
    # What is the same was not written again, so ETags are as they were.
    same = {file: path for path in times if (file := os.path.relpath(path, hub.settings.out))}
    kept = [path for file, path in same.items() if file not in differing]
    assert all(path.stat().st_mtime_ns == times[path] for path in kept)
    # Numbers go on where readers saw them end.
    assert hub.publish("story", "The next.").version == "1.1.1"
    assert hub.publish("poem", "The next.").version == "1.0.3"
    assert read_labels(hub.settings.content, "ann", "story").versions() == {"production": "1.1.0"}
    with pytest.raises(RequestError, match="was withdrawn"):
        hub.publish("gone", "Again.")
    with pytest.raises(RequestError, match="was withdrawn"):
        hub.publish("poem", "Write an ode with a key, sk-1.")


def test_a_site_that_is_older_changes_nothing(hub: Hub, place: FolderPlace, other: Hub) -> None:
    build(hub.settings, index=False)
    publish_more(hub)
    hub.back_up(place)
    report = other.restore(place, site=hub.settings.out)
    assert report.found[:4] == (0, 0, 0, False) and report.floor == 0
    assert read_tree(other.settings.content) == read_tree(hub.settings.content)
    # Where it may lack the newest versions, numbers are skipped as well.
    report = other.restore(place, site=hub.settings.out, skip_numbers=True, replace=True)
    assert other.publish("new", "More.").version == f"1.0.{report.floor}" == "1.0.20000"


def test_all_versions_withdrawn_one_by_one(hub: Hub, place: FolderPlace, other: Hub) -> None:
    """The site does not tell their numbers any more, so they are passed over."""
    hub.back_up(place)
    hub.publish("poem", "An ode.")
    for version in ("1.0.0", "1.0.1"):
        hub.withdraw("poem", version)
    build(hub.settings, index=False)
    report = other.restore(place, site=hub.settings.out)
    assert report.found.has_unknown and report.floor
    assert other.publish("poem", "Another ode.").version == f"1.0.{report.floor}"


def test_another_hubs_site(hub: Hub, place: FolderPlace, other: Hub, tmp_path: Path) -> None:
    hub.back_up(place)
    other.publish("story", "Not this story.")
    other.publish("story", "Nor this.", labels=["production"])
    other.label("story", "canary", "1.0.0")
    build(other.settings, index=False)
    here = Hub(hub.settings._replace(content=f"{tmp_path}/c", state=f"{tmp_path}/v"))
    with pytest.raises(OperatorError, match=r"(?s)disagree.*story 1\.0\.0 has another text"):
        here.restore(place, site=other.settings.out)
    assert here.shown() == []
    with pytest.raises(OperatorError, match="No site in"):
        here.restore(place, site=str(tmp_path))
    here.restore(place, site=hub.settings.out if os.path.exists(hub.settings.out) else None)


@pytest.mark.parametrize("damage", ["text", "gone", "json", "title"])
def test_records_that_cannot_be(
    hub: Hub, lost: dict[str, bytes], place: FolderPlace, damage: str
) -> None:
    path = Path(hub.settings.out, "api/v1/repos/ann/story/versions/1.1.0.json")
    record = json.loads(path.read_bytes())
    if damage == "text":
        record["data"]["content"] = "Another."
    elif damage == "title":
        record["data"]["title"] = "two\nlines"
    path.write_text("{" if damage == "json" else json.dumps(record))
    if damage == "gone":
        path.unlink()
    told = {
        "text": "its record has another text", "gone": "its record is missing",
        "json": "is no record of a hub", "title": "no content can have",
    }[damage]  # fmt: skip
    with pytest.raises(OperatorError, match=told):
        hub.restore(place, site=hub.settings.out)
    assert hub.shown() == []
    # Without the site it goes on, and skips the numbers.
    assert hub.restore(place).floor > 0


def test_profiles_of_new_owners(hub: Hub, place: FolderPlace, other: Hub) -> None:
    hub.back_up(place)
    write_owner(hub.settings.content, "bob", bio="Writes.")
    shutil.copytree(
        Path(hub.settings.content, "ann", "poem"), Path(hub.settings.content, "bob", "poem")
    )
    edit_record(Path(hub.settings.content, "bob", "poem", "1.0.0.json"), publisher="bob")
    build(hub.settings, index=False)
    other.restore(place, site=hub.settings.out)
    profile = json.loads(Path(other.settings.content, "bob", "owner.json").read_bytes())
    assert (profile["name"], profile["bio"]) == ("Bob", "Writes.")


def test_a_site_that_limits_reads_and_fails(
    hub: Hub, lost: dict[str, bytes], place: FolderPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    answers = {"versions.json": [429, 429, 503, 200], "raw.txt": [], "hub.json": [200]}

    class Moody(_Quiet):
        def do_GET(self) -> None:
            due = answers.get(self.path.rpartition("/")[2])
            status = due.pop(0) if due else 200
            if status == 200:
                super().do_GET()
                return
            self.send_response(status)
            self.send_header("Retry-After", "7")
            self.send_header("Content-Length", "0")
            self.end_headers()

    with _serving(hub, Moody) as url:
        report = hub.restore(place, site=url, jobs=1)
        assert report.found.versions == 3 and [*filter(None, slept)] == [7, 7, 1]
        slept.clear()
        answers["catalogue.jsonl"] = [500] * 10
        with pytest.raises(OperatorError, match=r"catalogue\.jsonl: HTTP 500"):
            hub.restore(place, site=url, replace=True)
    assert [*filter(None, slept)] == [1, 2, 4, 8]
