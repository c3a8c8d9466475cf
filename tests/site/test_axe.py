"""axe-core finds no violation on any kind of page: light on a desk, and dark on a phone."""

import pytest
from playwright.sync_api import Page, expect

from tests.node import PACKAGES
from tests.site.browser import DESKTOP, PHONE
from tests.site.catalogue import PAGES, UNLIKE
from tests.support.depth import rotating

COLOUR_RULES = ("color-contrast", "link-in-text-block")

# Rules whose results may differ on a phone.
PHONE_RULES = (*COLOUR_RULES, "scrollable-region-focusable")
# A standard that is not among the rules by default.
SIZE_RULE = "target-size"

# The rules that are standards, and those that are merely wise.
RUN = """async (options) => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
  return violations.map(({ id, help, nodes }) =>
    `${id}: ${help}\\n` + nodes.map((node) => `  ${node.html.slice(0, 160)}\\n    ` +
      node.any.concat(node.all, node.none).map((check) => check.message).join("; ")).join("\\n"));
}"""


@pytest.fixture(scope="module")
def axe() -> str:
    script = PACKAGES / "axe-core" / "axe.min.js"
    assert script.exists(), "axe-core is not there; install it with: sh tests/install-tools"
    return script.read_text()


def violations(page: Page, *rules: str) -> list[str]:
    """Violations on a page that axe-core finds, by these rules or by its default ones."""
    return page.evaluate(RUN, {"runOnly": {"type": "rule", "values": rules}} if rules else {})


def violations_both_ways(page: Page, *more: str) -> list[str]:
    """Violations on a page that axe-core finds, in light mode on a desktop and in dark mode on a
    phone.

    On the phone only the rules run whose results may differ there, and ``more``.
    """
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")
    found = violations(page)
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    return found + violations(page, *PHONE_RULES, *more)


# A long line has the elements of other changes, and takes axe-core a fifth of its time.
@pytest.mark.parametrize("kind", rotating(kind for kind in UNLIKE if kind != "long line, changed"))
def test_no_violation(visits, axe, kind):
    page = visits.open(PAGES[kind])
    if kind == "search":
        expect(page.locator("#found li").first).to_be_visible()
    page.evaluate(axe)
    assert violations_both_ways(page, SIZE_RULE) == []


def test_no_violation_where_the_browser_compares_texts(static_visits, axe):
    page = static_visits.open(PAGES["folder, compared"])
    expect(page.locator("table.changes").first).to_be_visible()
    page.evaluate(axe)
    assert violations_both_ways(page, SIZE_RULE) == []


def test_no_violation_while_suggestions_are_shown(visits, axe):
    page = visits.open("/")
    page.locator("#q").fill("review")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.evaluate(axe)
    assert violations(page) == []


def test_no_violation_in_the_ways_to_use_a_prompt(visits, axe):
    for path in (PAGES["repo"], PAGES["version"]):
        page = visits.open(path, viewport=PHONE)
        page.evaluate(axe)
        for tab in ("Assistant", "Agents", "API", "Clients"):
            page.get_by_role("radio", name=tab).check()
            assert violations(page) == violations(page, SIZE_RULE) == [], tab
