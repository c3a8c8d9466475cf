"""Pages of a prompt with several versions: their list, and a page to compare them."""

import os
import re
from pathlib import Path

import pytest

from builder.model.settings import Settings
from builder.pipeline.build import build, compare
from builder.render import derive
from tests.support.catalogues import build_files, write_version


@pytest.fixture
def one(empty: Settings, settled: None) -> Settings:
    """A prompt with one version; files count as settled at once."""
    write(empty, "1.0.0")
    return empty


def write(settings: Settings, version: str, **fields: str) -> None:
    write_version(settings.content, "ann", "x", version, f"Say {version}.\n", **fields)


def built(settings: Settings) -> dict[str, bytes]:
    return build_files(settings, changed=[("ann", "x")])


def test_what_leads_there_is_there_with_them_alone(one):
    site = build_files(one)
    assert b"/ann/x/compare" not in site["ann/x.html"]
    assert b'href="/ann/x#versions">All versions' in site["ann/x/1.0.0.html"]
    write(one, "1.1.0")
    site = built(one)
    assert b'href="/ann/x/compare"' in site["ann/x.html"]
    assert b'href="/ann/x/versions">All versions' in site["ann/x/1.1.0.html"]


def test_a_new_version_writes_neither_the_page_that_compares_nor_older_versions(one):
    write(one, "1.1.0")
    build_files(one)
    out = Path(one.out, "ann/x")
    kept = [out / "compare.html", out / "1.0.0.html", out / "1.1.0.html"]
    before = [path.stat() for path in kept]
    write(one, "1.2.0")
    built(one)
    assert [path.stat() for path in kept] == before
    assert "1.2.0" in (out / "versions.html").read_text()


def test_a_publication_looks_at_no_file_of_older_versions(one, monkeypatch):
    write(one, "1.1.0")
    build(one)
    write(one, "1.2.0")
    looked: set[str] = set()
    lstat = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path, **more: looked.add(path) or lstat(path, **more))
    build(one, changed=[("ann", "x")], edited=False)
    folder = f"{one.content}/ann/x"
    looked = {path for path in looked if path.startswith(f"{folder}/1.")}
    assert looked == {f"{folder}/1.2.0.md", f"{folder}/1.2.0.json"}


def test_an_edit_beside_a_publication_is_found_by_the_next_look(one):
    write(one, "1.1.0", changelog="Old.")
    build(one)
    write(one, "1.1.0", changelog="Edited.")
    write(one, "1.2.0")
    build(one, changed=[("ann", "x")], edited=False)
    assert b"Edited." in build_files(one)["ann/x/1.1.0.html"]
    assert compare(one).differing == []


def test_the_page_that_compares_has_the_names_of_its_prompt(one):
    write(one, "1.1.0")
    for version in ("1.0.0", "1.1.0"):
        write_version(one.content, "bob", "name", version, f"{version}\n")
    site = build_files(one)
    page, other = site["ann/x/compare.html"].decode(), site["bob/name/compare.html"].decode()
    assert "\0" not in page
    assert 'data-list="/api/v1/repos/ann/x/versions.json"' in page
    swapped = page.replace("ann/x", "bob/name").replace('href="/ann"', 'href="/bob"')
    swapped = swapped.replace(">ann</a>", ">bob</a>").replace(">x</a>", ">name</a>")
    assert swapped == other


def test_the_table_shows_the_first_line_of_a_changelog(one):
    write(one, "1.1.0", changelog="\n  Now <b>this</b>\u202e.  \nMore of it.\n")
    page = build_files(one)["ann/x/versions.html"].decode()
    assert 'Now &lt;b&gt;this&lt;/b&gt;<span class="invisible"' in page
    assert "More of it" not in page and "No changelog" in page


def test_the_table_and_the_prompt_show_the_newest_versions(one, monkeypatch):
    monkeypatch.setattr(derive, "VERSIONS_SHOWN_MAX", 15)
    for number in range(1, 20):
        write(one, f"1.0.{number}")
    site = build_files(one)
    table = re.findall(
        r'<p class="ver"><a href="/ann/x/([^"]+)"', site["ann/x/versions.html"].decode()
    )
    assert table == [f"1.0.{number}" for number in range(19, 4, -1)]
    assert "The newest 15 are listed here" in site["ann/x/versions.html"].decode()
    listed = re.findall(r'<li.*><a href="/ann/x/([^"]+)"><code>', site["ann/x.html"].decode())
    assert listed == [f"1.0.{number}" for number in range(19, 15, -1)]
    assert b">16 older<" in site["ann/x.html"]
