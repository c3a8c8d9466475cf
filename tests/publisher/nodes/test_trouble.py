"""Nodes whose database has another history or is unreachable, or whose disk refuses."""

import errno
import os

import pytest

from builder.model.errors import RequestError
from builder.model.settings import Settings
from builder.pipeline.build import build
from publisher.nodes import commits as commits_module
from publisher.nodes import store as store_module
from publisher.nodes.commits import StoreUnavailable
from tests.publisher.nodes.conftest import LONG, Nodes
from tests.publisher.nodes.publishing import meet, put
from tests.support.catalogues import read_tree


def restore_before(nodes: Nodes, serial: int) -> None:
    """Leave the database as a restore to an earlier moment does."""
    nodes.execute(
        f"DELETE FROM change WHERE serial > {serial}", f"UPDATE hub SET serial = {serial}"
    )


def test_nodes_whose_folder_was_moved_away_build_what_a_new_one_builds(nodes: Nodes):
    def build_site(name: str) -> Settings:
        folders = (str(nodes.root / f"{name}{suffix}") for suffix in ("", "-out", "-state"))
        settings = Settings(*folders, base_url="https://hub.example")
        build(settings)
        return settings

    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    put(two, "lost\n", name="lost")
    meet(nodes, one, two)
    for name in ("one", "two"):
        build_site(name)
        nodes.stop(name)
    restore_before(nodes, 2)
    nodes.start("three")
    new = read_tree(build_site("three").out)
    assert new and not [file for file in new if "lost" in file]
    for name in ("one", "two"):
        (nodes.root / name).rename(nodes.root / f"{name}.lost")
        nodes.start(name)
        build_site(name)  # what is gone is removed one build later
        assert read_tree(build_site(name).out) == new


def test_a_killed_node_notices_another_history_by_what_it_had_written(nodes: Nodes):
    one = nodes.start("one")
    put(one, "first\n")
    put(one, "second\n")
    nodes.stop("one")
    mark = nodes.root / "one" / ".hub-store"
    mark.write_bytes(mark.read_bytes().replace(b'"applied":3', b'"applied":1'))
    restore_before(nodes, 2)
    one = nodes.begin("one")
    with pytest.raises(StoreUnavailable, match="another history"):
        one._commits.wait_current()


def test_without_the_database_nothing_is_saved_and_it_says_so(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
):
    one = nodes.start("one")
    put(one, "first\n")
    monkeypatch.setattr(commits_module, "FAILING_PATIENCE_SECONDS", 0.05)
    nodes.postgres.stop()
    try:
        for text in ("second\n", "first\n"):
            with pytest.raises(RequestError) as caught:
                put(one, text)
            assert caught.value.code == "storage_unavailable"
            assert "127.0.0.1" not in str(caught.value)
    finally:
        nodes.postgres.start()
    monkeypatch.setattr(commits_module, "FAILING_PATIENCE_SECONDS", LONG)
    assert put(one, "second\n").version == "1.0.1"
    assert not one.status()["failures"]


def test_a_disk_that_refuses_holds_nobody_for_ever(nodes: Nodes, monkeypatch: pytest.MonkeyPatch):
    one, two = nodes.start("one"), nodes.start("two")
    put(one, "first\n")
    meet(nodes, one, two)
    replace = os.replace

    def refuse(old: str, new: str) -> None:
        if new.startswith(f"{two.root}/ann/"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(old, new)

    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(store_module, "PATIENCE_SECONDS", 0.1)
    with pytest.raises(StoreUnavailable, match="behind the others"):
        put(two, "second\n")
    assert two.status()["failures"]
    monkeypatch.setattr(os, "replace", replace)
    meet(nodes, one, two)
    assert nodes.content("one") == nodes.content("two")
