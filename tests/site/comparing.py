"""The page that compares two versions."""

from playwright.sync_api import Page, expect

from tests.site.catalogue import RELEASED

COMPARE = f"/{RELEASED}/compare"


def expect_compared(page: Page, before: str, after: str) -> None:
    """Until these versions are on the page, with what changed."""
    expect(page.locator("h1")).to_contain_text(f" {before} → {after}")
    expect(page.locator("table.changes").first).to_be_visible()
