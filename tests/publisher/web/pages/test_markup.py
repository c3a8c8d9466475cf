"""axe-core and the Nu checker find nothing to say of the account pages, in any state."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.publisher.web.pages.conftest import People, Visitor
from tests.site.browser import DESKTOP, PHONE, chromium
from tests.site.test_axe import COLOUR_RULES, axe, violations
from tests.site.test_html import check

__all__ = ["axe"]  # a fixture


@pytest.fixture(scope="module")
def browser(installed_tools: None) -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def member(people: People) -> Visitor:
    """Somebody of whom each page has something to show, also what is hostile."""
    visitor = people.member(agent="<b>Agent</b>")
    for name in ("gone", "laptop", "a <i>\N{RIGHT-TO-LEFT MARK}name"):
        visitor.get("/account/tokens")
        visitor.submit(name=name, expires="30")
    page = visitor.get("/account/tokens")
    revoke = next(form.action for form in page.forms if form.action.endswith("/revoke"))
    visitor.post(revoke, visitor.csrf())
    visitor.get("/account/publishers")
    visitor.submit(
        issuer=people.github.url, project="octo/prompts", workflow="publish.yml", repo="review"
    )
    visitor.get("/account/profile")
    visitor.submit(name="<b>Mara</b>", bio="Writes.\n\n<script>", url="https://example.org/?a&b")
    return visitor


def states(people: People, member: Visitor) -> Iterator[tuple[str, str]]:
    """The HTML of each page, also after a form that was wrong."""
    visitor = people.visitor()
    for name in ("login", "signup", "invitation"):
        yield name, visitor.get(f"/account/{name}").html
    yield "invitation-wrong", visitor.submit(code="x", password="short", again="other").html
    visitor.get("/account/login")
    yield "login-wrong", visitor.submit(handle="nobody", password="wrong").html
    yield "missing", visitor.get("/account/nowhere").html
    for name in ("tokens", "publishers", "labels", "profile", "security"):
        yield name, member.get(f"/account/{name}").html
    member.get("/account/tokens")
    wrong = member.submit(name="", expires="30")
    yield "tokens-wrong", wrong.html
    yield "token-made", member.submit(name="shown once", expires="30").html
    member.get("/account/publishers")
    yield "publishers-wrong", member.submit(project="x", workflow="y", repo="A B").html
    member.get("/account/profile")
    yield "profile-wrong", member.submit(name="", url="javascript:alert(1)").html


def test_the_checkers_find_nothing(
    people: People, member: Visitor, browser: Browser, axe: str, tmp_path: Path
):
    shown = dict(states(people, member))
    files = [tmp_path / f"{name}.html" for name in shown]
    for file, html in zip(files, shown.values(), strict=True):
        file.write_text(html, encoding="utf-8")
    assert check(*files) == []
    page = browser.new_page()
    found = {}
    for name, html in shown.items():
        show(page, people.url, html)
        page.evaluate(axe)
        for size, viewport in (("desk", DESKTOP), ("phone", PHONE)):
            page.set_viewport_size(viewport)
            page.emulate_media(color_scheme="light")
            found[name, size, "light"] = violations(page)
            page.emulate_media(color_scheme="dark")
            found[name, size, "dark"] = violations(page, *COLOUR_RULES)
    assert {at: told for at, told in found.items() if told} == {}


@pytest.mark.parametrize("place", ["tokens", "publishers", "security"])
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
    # Who cannot see it has a table all the same, and who can has the columns' names.
    assert table_of(page) == wide
    for cell in page.locator(".records td[data-name]").all():
        told = cell.evaluate("it => getComputedStyle(it, '::before').content")
        assert told.startswith(f'"{cell.get_attribute("data-name")}: "')
    page.close()


def table_of(page: Page) -> Counter[tuple[str, str]]:
    """What a screen reader finds of the tables of a page: roles, and names where they have some."""
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
