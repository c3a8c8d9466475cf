"""axe-core and the Nu checker find nothing to say of the account pages, in any state (axe-core:
a quarter of the states in each run).
"""

from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.publisher.web.pages.conftest import People, Visitor
from tests.publisher.web.pages.states import full_member, states
from tests.site.browser import DESKTOP, PHONE
from tests.site.fields import lost_keys
from tests.site.test_axe import axe, violations_both_ways
from tests.site.test_html import check
from tests.support.depth import some

__all__ = ["axe"]  # a fixture


@pytest.fixture(scope="module")
def member(people: People) -> Visitor:
    return full_member(people)


@pytest.fixture(scope="module")
def shown(people: People, member: Visitor) -> dict[str, str]:
    """The HTML of each state of the pages."""
    return {name: state.html for name, state in states(people, member)}


def test_the_checkers_find_nothing(
    people: People, shown: dict[str, str], browser: Browser, axe: str, tmp_path: Path
):
    files = [tmp_path / f"{name}.html" for name in shown]
    for file, html in zip(files, shown.values(), strict=True):
        file.write_text(html, encoding="utf-8")
    assert check(*files) == []
    page = browser.new_page()
    found = {}
    for name, html in some(shown.items()):
        show(page, people.url, html)
        page.evaluate(axe)
        found[name] = violations_both_ways(page)
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_no_key_leaves_a_field(people: People, shown: dict[str, str], browser: Browser):
    page = browser.new_page()
    lost = {}
    for name, html in shown.items():
        show(page, people.url, html)
        if page.locator("#other-field").count():
            page.locator(".cm-content").wait_for()  # the script replaces the field
        lost[name] = lost_keys(page)
    assert {name: fields for name, fields in lost.items() if fields} == {}


@pytest.mark.parametrize("place", ["tokens", "publishers", "security", "labels"])
def test_a_phone_has_all_of_a_table_in_sight(
    people: People, member: Visitor, browser: Browser, place: str
):
    page = browser.new_page(viewport=DESKTOP)
    show(page, people.url, member.get(f"/account/{place}").html)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    wide = table_of(page)
    assert {role for role, _ in wide} == {
        "table", "rowgroup", "row", "rowheader", "columnheader", "cell"
    }  # fmt: skip
    page.set_viewport_size(PHONE)
    assert page.locator(".scroll").count() == page.locator(".records").count() > 0
    for table in page.locator(".scroll").all():
        assert table.evaluate("it => it.scrollWidth <= it.clientWidth")
    for button in page.locator(".records button").all():
        box = button.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
    # The wide table's roles remain for screen readers, and each cell shows its column's name.
    assert table_of(page) == wide
    for cell in page.locator(".records td[data-name]").all():
        content = cell.evaluate("it => getComputedStyle(it, '::before').content")
        assert content.startswith(f'"{cell.get_attribute("data-name")}: "')
    page.close()


def table_of(page: Page) -> Counter[tuple[str, str]]:
    """Roles and names of the tables of a page, as a screen reader finds them."""
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")
    roles = ("table", "rowgroup", "row", "rowheader", "columnheader", "cell")
    shown = [node for node in tree["nodes"] if not node["ignored"]]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in shown]
    return Counter(
        # A cell is named by what stands in it: the column's name too, where that is in sight.
        (role, "" if role == "cell" else name)
        for role, name in named
        if role in roles
    )


def show(page: Page, url: str, html: str) -> None:
    """Open a page as it came, with the site's own style and scripts."""
    address = f"{url}/account/shown"
    page.unroute_all()
    page.route(address, lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it is too wide"
