"""The page that compares two versions."""

from playwright.sync_api import Page, expect

from tests.site.catalogue import RELEASED

COMPARE = f"/{RELEASED}/compare"


def expect_compared(page: Page, before: str, after: str) -> None:
    """Until these versions are on the page, with what changed."""
    expect(page.locator(".sides h2 a").nth(0)).to_have_text(before)
    expect(page.locator(".sides h2 a").nth(1)).to_have_text(after)
    expect(page.locator("table.changes").first).to_be_visible()
