"""A chat prompt on its pages: as messages and as text, filled in and copied, exact to the byte."""

import re

import pytest
from playwright.sync_api import Page, expect

from builder.render.prompt_text import MESSAGES_SHOWN_MAX
from builder.text.messages import parse_messages
from builder.text.prompts import fill, parse_document
from tests.site.browser import PHONE, keep_notes
from tests.site.catalogue import (
    BREAKOUT,
    CHAT,
    CHAT_CRLF,
    COMMIT_MESSAGE,
    SQL_REVIEW,
    TALK,
    TALK_TURNS,
)  # fmt: skip
from tests.site.test_prompt import clipboard, raw_text
from tests.support.servers import Server, wait_until


def messages_of(hub: Server, repo: str) -> list[tuple[str, str]]:
    found = parse_messages(parse_document(raw_text(hub, repo)).body)
    return [(one.role, one.content) for one in found]


def copied_message(page: Page, number: int) -> str:
    keep_notes(page)
    page.evaluate("navigator.clipboard.writeText('')")
    button = page.locator(f"[data-message='{number - 1}']")
    expect(button).to_have_accessible_name(re.compile(f"Copy message {number}|Copied"))
    button.click()
    expect(button).to_have_text("Copied")
    # The button may say so still, of the copy before.
    wait_until(lambda: clipboard(page), "the copied message")
    return clipboard(page)


@pytest.mark.parametrize("version", ["", "/2.1.0"])
@pytest.mark.parametrize("scripts", [True, False])
def test_messages_are_shown_with_their_roles(visits, hub, scripts, version):
    page = visits.open(f"/{COMMIT_MESSAGE}{version}", scripts=scripts)
    items = page.locator(".messages > li")
    roles = [one.inner_text() for one in items.locator("h2").all()]
    # Without scripts, the places of variables stay; with them, defaults are filled in.
    values = {"style": "plain", "why": "", "recent_subjects": ""} if scripts else {}
    expected = messages_of(hub, COMMIT_MESSAGE)
    assert roles == [role.capitalize() for role, _ in expected]
    assert roles == ["System", "User", "Assistant", "User", "Assistant", "User"]
    contents = [one.text_content() for one in items.locator("pre").all()]
    assert contents == [fill(content, values) for _, content in expected]


@pytest.mark.parametrize("scripts", [True, False])
def test_the_exact_text_is_one_choice_away(visits, hub, scripts):
    page = visits.open(f"/{COMMIT_MESSAGE}", scripts=scripts)
    expect(page.locator("#prompt")).to_be_hidden()
    expect(page.get_by_role("heading", name="System")).to_be_visible()
    page.get_by_role("radio", name="Source", exact=True).check()
    expect(page.locator("#prompt")).to_be_visible()
    expect(page.locator("#prompt")).to_contain_text('{{role "assistant"}}')
    expect(page.get_by_role("heading", name="System")).to_be_hidden()
    page.get_by_role("radio", name="Messages", exact=True).check()
    expect(page.locator("#prompt")).to_be_hidden()


def test_variables_are_filled_in_in_both(visits):
    page = visits.open(f"/{COMMIT_MESSAGE}")
    control = page.locator("#fill [data-variable=diff]")
    control.fill("-one\n+two")
    marks = page.locator("mark.variable[data-name=diff]")
    assert marks.all_text_contents() == ["-one\n+two"] * 2
    expect(marks.first).to_have_class("variable current filled")
    control.fill("")
    assert marks.all_text_contents() == ["{{diff}}"] * 2


def test_a_message_is_copied_exactly_and_filled_in(visits, hub):
    page = visits.open(f"/{CHAT_CRLF}")
    assert copied_message(page, 1) == "Say {{what}}\r\nto {{whom}}."
    page.locator("#fill [data-variable=what]").fill("{{whom}}")
    assert copied_message(page, 1) == "Say {{whom}}\r\nto {{whom}}."
    assert copied_message(page, 2) == "\ttwo\r\nlines, {{what}}"


def test_messages_are_copied_on_a_host_with_files_alone_below_a_path(static_visits, hub):
    page = static_visits.open(f"/{COMMIT_MESSAGE}/2.1.0")
    for number, (_, content) in enumerate(messages_of(hub, COMMIT_MESSAGE)[:5], start=1):
        assert copied_message(page, number) == content


def test_a_page_shows_no_more_messages_than_it_has_room_for(visits, hub):
    page = visits.open(f"/{TALK}")
    assert 2 * TALK_TURNS > MESSAGES_SHOWN_MAX
    expect(page.locator(".messages > li")).to_have_count(MESSAGES_SHOWN_MAX)
    left = 2 * TALK_TURNS - MESSAGES_SHOWN_MAX
    expect(page.locator(".views")).to_contain_text(f"{left} more messages are in the text.")
    assert page.locator("#prompt").text_content() == raw_text(hub, TALK)
    page.locator("#fill [data-variable=what]").fill("yes")
    assert copied_message(page, MESSAGES_SHOWN_MAX - 1) == "Say yes."


def test_a_hostile_chat_is_shown_as_text(visits):
    """Markup stays text, hidden characters are marked, and a message of 144 KB is not there."""
    page = visits.open(f"/{CHAT}", viewport=PHONE)
    items = page.locator(".messages > li")
    assert items.locator("pre").first.text_content() == BREAKOUT
    expect(items.nth(1).locator(".invisible")).to_have_attribute("data-code", "U+202E")
    expect(items).to_have_count(2)
    expect(page.locator(".views")).to_contain_text("2 more messages are in the text.")


def test_messages_are_reading_matter_and_the_text_is_as_published(visits):
    page = visits.open(f"/{COMMIT_MESSAGE}", scripts=False)
    first = page.locator(".messages > li").first
    expect(first.locator("i").first).to_have_text(re.compile("- plain: imperative"))
    expect(first.locator("kbd").first).to_have_text("`type(scope): subject`")
    assert first.locator("kbd").first.inner_text() == "type(scope): subject"
    page.get_by_role("radio", name="Source", exact=True).check()
    expect(page.locator("#prompt.code")).to_be_visible()
    expect(page.locator("#prompt :is(i, kbd)")).to_have_count(0)


def test_other_prompts_have_no_messages(visits):
    page = visits.open(f"/{SQL_REVIEW}")
    expect(page.locator(".views, .messages")).to_have_count(0)
    expect(page.locator("#prompt")).to_be_visible()


def test_on_paper_there_is_what_the_page_shows(visits):
    page = visits.open(f"/{COMMIT_MESSAGE}")
    page.emulate_media(media="print")
    expect(page.locator(".messages")).to_be_visible()
    expect(page.locator("#prompt")).to_be_hidden()
    page.emulate_media(media="screen")
    page.get_by_role("radio", name="Source", exact=True).check()
    page.emulate_media(media="print")
    expect(page.locator(".messages")).to_be_hidden()
    expect(page.locator("#prompt")).to_be_visible()
