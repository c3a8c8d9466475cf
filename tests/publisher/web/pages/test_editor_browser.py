"""Writing in a real browser: with scripts and without, by keyboard alone, and after a crash."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.publisher.web.pages.conftest import People, Visitor
from tests.site.browser import DESKTOP, PHONE, TIMEOUT_MS

NEW = "/account/prompts/new"
# The field of the form, which holds the text in both editors.
FIELD = "textarea[name=content]"


@pytest.fixture
def faults() -> Iterator[list[str]]:
    """Errors of pages; the test fails if there are any."""
    found: list[str] = []
    yield found
    assert found == []


def context_of(
    browser: Browser, people: People, guest: Visitor, faults: list[str], **options: object
) -> BrowserContext:
    """A browser in which a guest is signed in."""
    context = browser.new_context(**options)
    context.set_default_timeout(TIMEOUT_MS)
    secret = guest.session.cookies.get("hub-account")
    url = f"{people.url}/account"
    context.add_cookies([{"name": "hub-account", "value": secret, "url": url}])
    context.on("console", lambda message: faults.append(message.text))
    context.on("weberror", lambda error: faults.append(str(error.error)))
    context.on("dialog", lambda dialog: faults.append(dialog.message))
    return context


@pytest.fixture
def context(
    browser: Browser, people: People, owner: Visitor, faults: list[str]
) -> Iterator[BrowserContext]:
    context = context_of(browser, people, owner, faults, viewport=DESKTOP)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, people: People) -> Page:
    """A new prompt."""
    page = context.new_page()
    page.goto(people.url + NEW)
    return page


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_write_publish_correct_release_and_roll_back(
    browser: Browser, people: People, faults: list[str], scripts: bool
) -> None:
    guest = people.guest()
    context = context_of(browser, people, guest, faults, java_script_enabled=scripts)
    page = context.new_page()
    page.goto(f"{people.url}/account/prompts")
    page.get_by_role("link", name="New prompt").first.click()
    page.get_by_label("Title", exact=True).fill("Story")
    text_of(page, scripts).fill("Tell {{hero}} a story.")
    preview(page, scripts)
    open_variable(page, "hero")
    page.get_by_label("Example").fill("Ada")
    preview(page, scripts)
    expect(shown(page)).to_have_text("Tell Ada a story.")
    expect(page.locator("#address")).to_have_text(f"{guest.handle}/story")
    open_part(page, "Labels")
    page.get_by_label("Labels to move to this version").fill("production")
    sent = []
    page.on("request", lambda one: sent.append(one.method) if one.is_navigation_request() else 0)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Publish 1.0.0").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Story")
    assert sent == ["POST", "GET"], "Enter in a field sends nothing"
    page.get_by_role("link", name="See version 1.0.0").click()
    expect(page.locator("#prompt")).to_contain_text("a story.")
    page.goto(f"{people.url}/{guest.handle}/story")
    page.get_by_role("link", name="Edit", exact=True).click()
    text_of(page, scripts).fill("Tell {{hero}} and {{friend}} a story.")
    preview(page, scripts)
    expect(page.get_by_role("main")).to_contain_text("friend is a new required variable.")
    page.get_by_role("textbox", name="What changes").fill("A friend.")
    open_part(page, "Labels")
    page.get_by_label("production", exact=True).check()
    page.get_by_role("button", name="Publish 2.0.0").click()
    expect(page.locator(".lead")).to_contain_text("2.0.0 is published")
    page.get_by_role("link", name="My prompts", exact=True).first.click()
    story = page.get_by_role("listitem").filter(has_text="story")
    expect(story).to_contain_text("production")
    expect(story).to_contain_text("2.0.0")
    story.get_by_role("link", name="Labels").click()
    page.get_by_role("button", name="Roll back to 1.0.0: production").click()
    expect(page.get_by_role("row").filter(has_text="production")).to_contain_text("1.0.0")
    context.close()


def text_of(page: Page, scripts: bool = True) -> Locator:
    """The element for typing the text. A loaded script puts it over the field of the form."""
    return page.locator("#content .cm-content" if scripts else FIELD)


def preview(page: Page, scripts: bool = True) -> None:
    """Preview what the page has; a script does so by itself, and hides the button."""
    if scripts:
        page.locator("[value=preview]").first.evaluate("it => it.click()")
    else:
        page.get_by_role("button", name="Preview").click()
    expect(page.locator("[value=reads]")).to_be_checked()


def shown(page: Page) -> Locator:
    """The text as it reads."""
    return page.locator("#reads pre")


def open_variable(page: Page, name: str) -> None:
    """Open the form of a variable, once it is there."""
    page.locator(f".variable-row[data-name={name}] > summary").click()


def open_part(page: Page, name: str) -> None:
    """Open a closed part of the form."""
    page.locator("details.panel > summary").filter(has_text=name).click()


def test_by_keyboard_alone(page: Page) -> None:
    tab_to(page, "title")
    page.keyboard.type("Keys")
    tab_to(page, "content")
    page.keyboard.type("Typed {{x}}.")
    expect(shown(page)).to_have_text("Typed {{x}}.")
    tab_to(page, "variable-x")
    page.keyboard.press("Enter")
    tab_to(page, "variable-x-example")
    page.keyboard.type("here")
    expect(shown(page)).to_have_text("Typed here.")
    # In a field of one line, Enter loses nothing; after the title, the text follows.
    tab_to(page, "title")
    page.keyboard.press("Enter")
    page.keyboard.type("Now")
    expect(shown(page)).to_contain_text("Now")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Publish 1.0.0":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Keys")


def tab_to(page: Page, control: str) -> None:
    """Press Tab until a control has the focus, from the start of the page."""
    page.evaluate("document.activeElement.blur(); document.querySelector('.skip').focus()")
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == control:
            return
    raise AssertionError(f"Tab never comes to {control}")


def test_what_was_typed_survives_a_crash_and_a_sign_out(
    browser: Browser,
    people: People,
    owner: Visitor,
    faults: list[str],
    context: BrowserContext,
    page: Page,
) -> None:
    text_of(page).fill("Half a {{thought}}")
    open_variable(page, "thought")
    page.locator("#variable-thought-example").fill("dream")
    page.get_by_label("Title", exact=True).fill("Kept")
    expect_kept(page, "dream", "Kept")
    page.close()
    page = context.new_page()
    page.goto(people.url + NEW)
    expect(page.locator(FIELD)).to_have_value("")
    page.get_by_role("button", name="Use it").click()
    expect(page.locator(FIELD)).to_have_value("Half a {{thought}}")
    expect(page.get_by_label("Title", exact=True)).to_have_value("Kept")
    expect(shown(page)).to_have_text("Half a dream")
    # The session is over: the page keeps it, and so does the browser.
    context.clear_cookies()
    page.get_by_label("Title", exact=True).fill("Kept")
    expect(page.locator("#unsaved")).to_contain_text("You are signed out")
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You are signed out")
    expect(page.get_by_label("Your text")).to_have_value("Half a {{thought}}")
    faults[:] = [fault for fault in faults if "401" not in fault]
    again = context_of(browser, people, owner, faults, storage_state=context.storage_state())
    page = again.new_page()
    page.goto(people.url + NEW)
    page.get_by_role("button", name="Use it").click()
    expect(page.locator("#address")).to_have_text(f"{owner.handle}/kept")
    page.get_by_role("button", name="Publish 1.0.0").click()
    expect(page.locator(".lead")).to_contain_text("is published")
    # Publishing deletes the stored draft.
    page.goto(people.url + NEW)
    expect(page.locator("#unsaved")).to_be_hidden()
    assert not any("writing" in key for key in page.evaluate("Object.keys(localStorage)"))
    again.close()


def test_members_move_labels_and_withdraw_from_the_page_of_a_prompt(
    people: People, owner: Visitor, context: BrowserContext
) -> None:
    people.publish_story(owner, "Tell it.")
    page, story = context.new_page(), f"{people.url}/{owner.handle}/story"
    page.goto(story)
    expect(page.get_by_role("link", name="Edit")).to_be_visible()
    for link in ("Labels", "Withdraw"):
        expect(page.get_by_text(link, exact=True)).to_be_hidden()
    page.goto(people.url + NEW)
    page.goto(story)
    page.get_by_role("link", name="Withdraw").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Withdraw {owner.handle}/story")
    page.goto(story)
    page.get_by_role("link", name="Labels", exact=True).click()
    expect(page).to_have_url(f"{people.url}/account/prompts/{owner.handle}/story/labels")
    page.set_viewport_size(PHONE)
    page.goto(story)
    page.locator(".glance").get_by_role("link", name="Edit").click()
    expect(page).to_have_url(f"{people.url}/account/prompts/{owner.handle}/story")


def test_a_fault_goes_once_its_field_is_changed(page: Page, faults: list[str]) -> None:
    page.locator("#publish").click()
    fault, all_faults = page.locator("#content-wrong"), page.locator(".faults")
    expect(fault).to_be_visible()
    expect(all_faults).to_be_visible()
    page.locator(".cm-content").click()
    page.keyboard.type("Tell it.")
    expect(fault).to_have_count(0)
    expect(page.locator("#content")).not_to_have_attribute("aria-invalid", "true")
    for link in all_faults.get_by_role("link").all():
        expect(link).not_to_have_attribute("href", "#content")
    (refused,) = faults
    assert "422" in refused
    faults.clear()


def test_what_was_typed_last_is_sent_and_kept(page: Page) -> None:
    page.get_by_label("Title", exact=True).fill("Last")
    # In one step, so that no time passes between the last key and the script that reads the form.
    type_and = """async (it, act) => {
      document.execCommand("insertText", false, "Last words.");
      await null;
      if (act === "leave") location.href = "/account/prompts";
      else document.querySelector("[value=preview]").click();
    }"""
    text_of(page).focus()
    text_of(page).evaluate(type_and, "leave")
    expect(page.get_by_role("heading", level=1)).to_have_text("My prompts")
    page.locator("#kept").get_by_role("link", name="Last").click()
    page.get_by_role("button", name="Use it").click()
    expect(page.locator(FIELD)).to_have_value("Last words.")
    text_of(page).press("Control+End")
    text_of(page).evaluate(type_and, "send")
    expect(page.locator(FIELD)).to_have_value("Last words.Last words.")


def test_two_tabs_with_one_prompt_show_each_other(people: People, context: BrowserContext) -> None:
    first, second = context.new_page(), context.new_page()
    for page in (first, second):
        page.goto(people.url + NEW)
        text_of(page).fill("Mine.")
    expect_kept(second, "Mine.")
    expect(first.locator("#unsaved")).to_contain_text("in another tab")


def expect_kept(page: Page, *texts: str) -> None:
    """Wait until the browser keeps these texts."""
    for text in texts:
        page.wait_for_function("text => JSON.stringify(localStorage).includes(text)", arg=text)


def test_typing_in_a_long_text_waits_for_nothing_long(page: Page) -> None:
    """A long text is previewed when the user presses Preview, and not while they type."""
    page.locator(FIELD).evaluate(
        """it => {
          it.value = "A line of a long prompt.\\n".repeat(8000);
          it.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    expect(page.locator("#stale")).to_have_text("The preview is not up to date.")
    expect(page.get_by_role("button", name="Preview")).to_be_visible()
    expect(page.locator("#size")).to_contain_text("200,000 of 262,144 bytes")


def test_a_text_with_thousands_of_variables_arrives(page: Page, faults: list[str]) -> None:
    """A form has no more rows than a version may have variables, so the hub reads all of it."""
    text = "".join(f"{{{{v{number}}}}}" for number in range(1000))
    text_of(page).fill(text)
    expect(page.locator("#reads")).to_contain_text("200")
    page.locator("[value=preview]").first.evaluate("it => it.click()")
    expect(page.get_by_role("alert")).to_contain_text("200")
    expect(page.locator(FIELD)).to_have_value(text)
    faults[:] = [fault for fault in faults if "422" not in fault]
