"""The four ways in a real browser, which keeps to what the pages' policy says."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.publisher.web.pages.openid.conftest import invite
from tests.publisher.web.pages.openid.provider import NAME
from tests.site.browser import TIMEOUT_MS
from tests.support.servers import Server


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_the_four_ways_in_a_browser(hub: Server, browser: Browser, scripts: bool) -> None:
    kind = "scripted" if scripts else "plain"
    context = browser.new_context(java_script_enabled=scripts)
    context.set_default_timeout(TIMEOUT_MS)
    errors: list[str] = []
    # The provider has no icon, which is no fault of the hub's.
    context.on(
        "console",
        lambda message: message.location["url"].startswith(hub.url) and errors.append(message.text),
    )
    page = context.new_page()

    page.goto(f"{hub.url}/account/signup")
    page.get_by_label("Handle").fill(f"{kind}-one")
    page.get_by_role("button", name=f"Use {NAME}").click()
    sign_in_there(hub, page, f"{kind}-1")
    expect(page.locator(".told").first).to_contain_text(f"Welcome, {kind}-one.")

    page.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_role("link", name=f"Sign in with {NAME}").click()
    # The provider still has a session, and signs the user in without a form.
    expect(page).to_have_url(f"{hub.url}/account/prompts")
    page.get_by_role("link", name="Security").click()
    page.context.clear_cookies(domain="localhost")
    page.get_by_role("button", name=f"Connect {NAME}").click()
    sign_in_there(hub, page, f"{kind}-2")
    expect(page.locator(".told")).to_contain_text("You can now sign in")
    page.get_by_role("button", name="Sign out", exact=True).click()

    page.context.clear_cookies(domain="localhost")
    code = invite(hub, f"{kind}-two")
    page.goto(f"{hub.url}/account/invitation#{code}")
    if not scripts:
        page.get_by_label("Invitation code").fill(code)
    page.get_by_role("button", name=f"Use {NAME}").click()
    sign_in_there(hub, page, f"{kind}-3")
    expect(page.locator(".told").first).to_contain_text(f"Welcome, {kind}-two.")
    assert not errors
    context.close()


def sign_in_there(hub: Server, page: Page, name: str) -> None:
    expect(page).to_have_url(re.compile(rf"{re.escape(hub.issuer)}/interaction/"))
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Continue").click()
