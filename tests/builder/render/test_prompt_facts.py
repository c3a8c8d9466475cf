"""The facts of a version: in its margin, and in one line on narrow screens."""

import re

import pytest

from builder.model.settings import Settings
from builder.render.prompt_pages import PARAMETERS_MAX
from builder.render.prompt_text import OUTLINE_MAX
from builder.text.summary import first_sentence
from tests.stats.counting import count
from tests.support.catalogues import build_files, write_label, write_version


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


@pytest.mark.parametrize("page", ["ann/x.html", "ann/x/1.1.0.html"])
@pytest.mark.parametrize(("count", "rest"), [(2, "Label beta"), (10, "+9 labels")])
def test_ten_labels_are_one_line(empty: Settings, page: str, count: int, rest: str):
    for version in ("1.0.0", "1.1.0"):
        write_version(empty.content, "ann", "x", version, "Say it.\n", license="MIT")
    names = ["beta", "production", *(f"team-{number}" for number in range(8))][:count]
    for number, name in enumerate(names, 1):
        write_label(empty.content, "ann/x", number, name, "1.1.0")
    html = build_files(empty)[page].decode()
    (glance,) = re.findall(r'<p class="glance meta">(.*?)</p>', html)
    assert f"Label production {rest}" in text_of(glance) and "team" not in text_of(glance)
    (margin,) = re.findall(r'<aside id="facts".*?</aside>', html, re.DOTALL)
    facts = text_of(margin)
    assert facts.startswith(f"Version 1.1.0 Label production {rest} Published 13 Feb 2025 ")
    assert "Licence MIT" in facts


@pytest.mark.parametrize(
    ("text", "total", "first"),
    [
        ("# ====\n# A\n" + "## B\n" * 30, 31, "A"),
        ("# A\n" + "## B\n" * 50, OUTLINE_MAX, "A"),
        ("# A\n", 0, ""),
    ],
)
def test_a_text_has_an_outline_of_its_headings(empty: Settings, text: str, total: int, first: str):
    write_version(empty.content, "ann", "x", "1.0.0", text)
    html = build_files(empty)["ann/x.html"].decode()
    titles = re.findall(r'<li><a href="#part-\d+">(.*?)</a></li>', html)
    assert len(titles) == total and "".join(titles[:1]) == first
    for id in re.findall(r'href="#(part-\d+)"', html):
        assert f'id="{id}"' in html


def test_pulls_have_a_line_of_30_days(empty: Settings):
    write_version(empty.content, "ann", "x", "1.0.0", "Say it.\n")
    for day in range(40):
        count(empty, {"ann/x": 1 + day % 3}, day)
    html = build_files(empty)["ann/x.html"].decode()
    assert "<dt>Pulls</dt><dd>79<br><svg" in html
    assert "Pulls in the 30 days to" in html


@pytest.mark.parametrize("count_of_settings", [0, PARAMETERS_MAX, PARAMETERS_MAX + 1])
def test_many_model_settings_are_folded(empty: Settings, count_of_settings: int):
    settings = {f"setting{number}": number for number in range(count_of_settings)}
    write_version(empty.content, "ann", "x", "1.0.0", "Say it.\n", parameters=settings)
    html = build_files(empty)["ann/x.html"].decode()
    found = re.findall(r"<details( open)?><summary><h2>Model settings", html)
    assert found == {0: [], PARAMETERS_MAX: [" open"]}.get(count_of_settings, [""])


@pytest.mark.parametrize(("description", "is_shown"), [("Says it well.", True), ("", False)])
def test_only_a_description_of_its_own_is_above_the_text(
    empty: Settings, description: str, is_shown: bool
):
    text = "Say it in a few words.\n"
    description = description or first_sentence(text)
    write_version(empty.content, "ann", "x", "1.0.0", text, description=description)
    html = build_files(empty)["ann/x.html"].decode()
    assert ('<p class="lead"' in html) == is_shown


@pytest.mark.parametrize("title", ["Be kind", "Be short"])
def test_a_text_that_begins_with_its_title_is_marked_for_print(empty: Settings, title: str):
    write_version(empty.content, "ann", "x", "1.0.0", "# Be kind\n\n## Be short\n", title=title)
    site = build_files(empty)
    for page in ("ann/x.html", "ann/x/1.0.0.html"):
        assert (b'class="text titled"' in site[page]) == (title == "Be kind")
