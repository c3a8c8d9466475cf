"""How the text of a prompt reads, and how a prompt is used without scripts."""

import pytest
from playwright.sync_api import Page, expect

from tests.site.catalogue import (
    CRLF,
    FOLDER,
    INVISIBLE,
    JAPANESE,
    SQL_REVIEW,
)  # fmt: skip
from tests.site.test_prompt import body, raw_text


def test_headings_of_a_text_are_an_outline_and_every_character_stays(visits, hub):
    page = visits.open(f"/{JAPANESE}", scripts=False)
    assert page.locator("#prompt").text_content() == body(raw_text(hub, JAPANESE)).lstrip("\n")
    links = page.locator(".outline a")
    titles = links.all_inner_texts()
    assert (
        titles == [one.inner_text().strip() for one in page.locator("#prompt [role=heading]").all()]
        and len(titles) > 2
    )
    links.last.click()
    expect(page.locator("#prompt [role=heading]").last).to_be_in_viewport()


@pytest.mark.parametrize("repo", [JAPANESE, SQL_REVIEW, FOLDER])
def test_signs_of_markdown_are_seen_in_the_source(visits, hub, repo):
    page = visits.open(f"/{repo}", scripts=False)
    text = body(raw_text(hub, repo)).strip()
    assert page.locator("#prompt").text_content().strip() == text
    sign = page.locator("#prompt u").first
    expect(sign).to_be_hidden()
    page.get_by_role("radio", name="Source", exact=True).check()
    expect(sign).to_be_visible()
    assert selection(page).strip() == text


def selection(page: Page) -> str:
    return page.locator("#prompt").evaluate(
        "(one) => { getSelection().selectAllChildren(one); return getSelection().toString(); }"
    )


@pytest.mark.parametrize("repo", [INVISIBLE, CRLF])
def test_a_text_without_markdown_has_no_source(visits, repo):
    page = visits.open(f"/{repo}")
    expect(page.get_by_role("radio", name="Source", exact=True)).to_have_count(0)
    expect(page.locator("#prompt u")).to_have_count(0)


def test_without_scripts_the_text_is_edited(static_visits):
    page = static_visits.open(f"/{SQL_REVIEW}", scripts=False)
    expect(page.locator("#fill :is(select, input, textarea, button):visible")).to_have_count(0)
    expect(page.locator("#fill")).to_contain_text("Edit the text on this page")
    expect(page.locator("#fill")).to_contain_text(
        "SQL dialect Default: PostgreSQL Example: Snowflake"
    )
    expect(page.locator("#prompt u").first).to_be_hidden()
    page.locator("#prompt").get_by_text("{{purpose}}").dblclick()
    expect(page.locator("#prompt u").first).to_be_visible()
    page.keyboard.press("Delete")
    page.keyboard.type("a report")
    expect(page.locator("#prompt")).to_contain_text("a report")
    scripted = static_visits.open(f"/{SQL_REVIEW}")
    expect(scripted.locator("#left")).to_have_text("3 left to fill")
    expect(scripted.locator("[contenteditable]")).to_have_count(0)


def test_facts_are_shown(visits, hub):
    repo = hub.get(f"/api/v1/repos/{SQL_REVIEW}").json()["data"]
    main = visits.open(f"/{SQL_REVIEW}").get_by_role("main")
    for fact in ("title", "description", "license", "sha256"):
        expect(main).to_contain_text(repo[fact])
    for tag in repo["tags"]:
        expect(main.get_by_role("link", name=tag, exact=True)).to_be_visible()
    for variable in repo["variables"]:
        expect(main).to_contain_text(variable["description"])
    for version in hub.get(f"/api/v1/repos/{SQL_REVIEW}/versions").json()["data"]:
        expect(main.locator("ol.steps")).to_contain_text(version["version"])
