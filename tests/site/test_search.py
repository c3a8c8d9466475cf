"""Search as you type: by keyboard, with an address to share, on hosts that can and that cannot."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from builder.model.routes import PAGE_SIZE
from builder.model.settings import Settings
from tests.site.browser import DESKTOP, PHONE
from tests.site.catalogue import ECHOES, MARKUP, PAGES, SQL_REVIEW, UNLIKE
from tests.site.fields import lost_keys
from tests.support.servers import serving

PARTLY = re.compile("some words of each text")


def type_query(page: Page, text: str) -> None:
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type(text)


def await_results(page: Page, query: str) -> None:
    """Until the options are those of the whole query, and not of what was typed of it so far."""
    expect(page.locator("#search-status")).to_contain_text(f"“{query}”")


def titles(page: Page) -> list[str]:
    return page.locator("#found h3").all_inner_texts()


def test_by_keyboard_to_a_prompt(visits):
    page = visits.open("/tags")
    field, results = page.locator("#q"), page.locator("#results")
    expect(field).to_have_attribute("aria-expanded", "false")
    type_query(page, "sql revi")
    found = re.compile("^[1-9].* prompts? for “sql revi”")
    expect(page.locator("#search-status")).to_have_text(found)
    expect(results).to_be_visible()
    expect(field).to_have_attribute("aria-expanded", "true")
    options = page.get_by_role("option")
    assert page.get_by_role("option", selected=True).count() == 0

    page.keyboard.press("ArrowDown")
    expect(options.nth(0)).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", options.nth(0).get_attribute("id"))
    page.keyboard.press("ArrowUp")
    assert page.get_by_role("option", selected=True).count() == 0
    assert field.get_attribute("aria-activedescendant") is None
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(options.nth(0)).to_contain_text("SQL query review")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{SQL_REVIEW}")


@pytest.mark.parametrize("kind", UNLIKE)
def test_no_key_leaves_a_field(visits, kind):
    assert lost_keys(visits.open(PAGES[kind])) == []


def test_the_keys_of_an_input_method_are_its_own(visits):
    page = visits.open("/tags")
    type_query(page, "review")
    await_results(page, "review")
    composing = {"key": "ArrowDown", "isComposing": True, "bubbles": True}
    page.locator("#q").dispatch_event("keydown", composing)
    assert page.get_by_role("option", selected=True).count() == 0


def test_every_option_can_be_reached_and_only_one_is_selected(visits):
    page = visits.open("/")
    type_query(page, "review")
    await_results(page, "review")
    options = page.get_by_role("option")
    count = options.count()
    assert count > 2
    for number in range(count):
        page.keyboard.press("ArrowDown")
        chosen = page.get_by_role("option", selected=True)
        expect(chosen).to_have_count(1)
        expect(chosen).to_have_attribute("id", options.nth(number).get_attribute("id"))


def test_the_list_has_a_tag_and_ends_with_all_results(visits, hub):
    page = visits.open("/tags")
    type_query(page, "revie")
    await_results(page, "revie")
    total = hub.get("/api/v1/repos", params={"q": "revie"}).json()["meta"]["total"]
    options = page.get_by_role("option")
    expect(options.last).to_have_text(f"All {total} results")
    expect(options.first).to_contain_text("prompt · ")
    expect(page.get_by_role("option", name="review tag", exact=True)).to_be_visible()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=revie")


def test_the_reason_leads_to_its_line(visits):
    page = visits.open("/search?q=aggregate")
    link = page.locator("#found .why a").first
    assert re.search(r"/mara-okafor/sql-review#:~:text=[^-]+$", link.get_attribute("href"))
    link.click()
    page.wait_for_url(f"**/{SQL_REVIEW}**")


def test_escape_closes_and_then_clears(visits):
    page = visits.open("/")
    type_query(page, "review")
    await_results(page, "review")
    expect(page.locator("#results")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#results")).to_be_hidden()
    expect(page.locator("#q")).to_have_value("review")
    expect(page.locator("#q")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Escape")
    expect(page.locator("#q")).to_have_value("")


def test_leaving_the_field_closes_the_list_and_a_click_on_an_option_goes_there(visits):
    page = visits.open("/")
    type_query(page, "sql review")
    await_results(page, "sql review")
    page.get_by_role("contentinfo").click()
    expect(page.locator("#results")).to_be_hidden()
    page.locator("#q").fill("sql query review")
    await_results(page, "sql query review")
    page.get_by_role("option").first.click()
    page.wait_for_url(f"**/{SQL_REVIEW}")


def test_a_slash_in_a_text_is_a_slash(visits):
    page = visits.open(f"/{SQL_REVIEW}")
    control = page.locator("#fill [data-variable=query]")
    control.focus()
    page.keyboard.type("a/b")
    expect(control).to_have_value("a/b")


def test_enter_shows_all_that_is_found_at_an_address_to_share(visits, hub):
    page = visits.open("/")
    type_query(page, "review & “sql”")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=*")
    expect(page.locator("#found li").first).to_be_visible()
    expect(page.locator("#q")).to_have_value("review & “sql”")
    answer = hub.get("/api/v1/repos", params={"q": "review & “sql”"}).json()
    assert titles(page) == [repo["title"] for repo in answer["data"]]

    shared = visits.open(page.url.removeprefix(visits.url))
    expect(shared.locator("#found li")).to_have_count(len(answer["data"]))
    assert titles(shared) == titles(page)
    expect(shared.locator("#search-status")).to_contain_text("for “review & “sql””")


def test_typing_on_the_search_page_keeps_the_address_right(visits):
    page = visits.open("/search?q=review")
    expect(page.locator("#found li").first).to_be_visible()
    entries = page.evaluate("history.length")
    page.locator("#q").fill("sql review")
    page.wait_for_url("**/search?q=sql+review")
    expect(page.locator("#search-status")).to_contain_text("“sql review”")
    expect(page.locator("#found li").first).to_contain_text("SQL query review")
    assert page.evaluate("history.length") == entries
    page.locator("#q").fill("")
    expect(page.locator("#found li")).to_have_count(0)
    page.wait_for_url(re.compile(r"/search$"))


def test_a_result_says_why_it_was_found(visits):
    page = visits.open("/search?q=review")
    first = page.locator("#found li").first
    expect(first.locator("h3 mark")).to_have_text("review")
    expect(first.locator(".path mark")).to_have_count(0)
    expect(first.get_by_role("img", name="prompt")).to_have_text("{}")
    # The tag is the only reason.
    last = page.locator("#found li", has_text="WCAG 2.2 accessibility audit")
    expect(last.locator(".why")).to_have_text(re.compile("^Tag: .*review"))
    expect(last.locator(".why mark")).to_have_text("review")
    # The word is only in the text of this one.
    page.locator("#q").fill("aggregate")
    expect(page.locator("#found h3").first).to_have_text("SQL query review")
    why = page.locator("#found li").first.locator(".why")
    expect(why.locator("mark").first).to_have_text(re.compile("aggregat", re.IGNORECASE))


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("host", ["visits", "static_visits", "ignoring_visits"])
def test_filters_narrow_the_results_and_are_in_the_address(request, host):
    page = request.getfixturevalue(host).open("/search?q=review")
    rows, chosen = page.locator("#found li"), page.locator("#chosen a")
    expect(rows.first).to_be_visible()
    count = rows.count()
    tag = page.locator("#facets a", has_text=re.compile("^code$"))
    shown = tag.locator("xpath=../span")
    expect(shown).to_be_visible()
    wanted = int(shown.inner_text())
    assert 0 < wanted < count
    tag.click()
    expect(rows).to_have_count(wanted)
    expect(page).to_have_url(re.compile(r"/search(\.html)?\?q=review&tag=code$"))
    expect(page.locator("#heading")).to_be_focused()
    expect(chosen).to_have_text(["tag code ×"])

    owner = page.locator("#facets a", has_text="sam-ferreira")
    owner.click()
    expect(page).to_have_url(re.compile(r"\?q=review&tag=code&owner=sam-ferreira$"))
    expect(chosen).to_have_text(["tag code ×", "owner sam-ferreira ×"])
    assert all("sam-ferreira/" in path for path in page.locator("#found .path").all_inner_texts())
    # A filter stays while the words change, and the browser's history has each of them.
    page.locator("#q").fill("diff")
    expect(page).to_have_url(re.compile(r"\?q=diff&tag=code&owner=sam-ferreira$"))
    page.go_back()
    expect(chosen).to_have_text(["tag code ×"])
    chosen.click()
    expect(rows).to_have_count(count)
    expect(chosen).to_have_count(0)


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("host", ["visits", "static_visits"])
def test_labels_are_filters_in_the_words(request, host):
    page = request.getfixturevalue(host).open("/search?q=history+production")
    rows, chosen = page.locator("#found > li"), page.locator("#chosen a")
    why = page.locator("#found li", has_text="many/history").locator(".why")
    expect(why).to_have_text("Label: production")
    expect(why.locator("mark")).to_have_text("production")
    expect(page.locator("#found small", has_text="Without").first).to_have_text(
        re.compile("Without: (history|production)$")
    )
    page.locator("#q").fill("released Label:Stable label:tested")
    expect(rows).to_have_count(1)
    expect(chosen).to_have_text(["label stable ×", "label tested ×"])
    chosen.first.click()
    expect(page).to_have_url(re.compile(r"\?q=released\+label%3Atested$"))
    expect(chosen).to_have_count(1)
    chosen.click()
    expect(chosen).to_have_count(0)
    page.locator("#q").fill("production")
    page.locator("#facets a", has_text="staging").click()
    expect(page.locator("#q")).to_have_value("production label:staging")
    expect(rows).to_have_count(1)
    expect(rows.locator(".path")).to_have_text("many/history")
    expect(rows.locator(".why")).to_have_count(1)
    page.locator("#q").fill("label:staging")
    expect(page.locator("#heading")).to_have_text("1 prompt")
    expect(rows.locator(".why")).to_have_count(0)


def test_a_heading_cuts_long_words_and_dates_in_arabic_are_isolated(visits):
    page = visits.open(f"/search?q={'x' * 300}")
    expect(page.locator("#heading")).to_have_text(re.compile(" for “x{70}…”$"))
    parts = page.evaluate(
        """async (texts) => (await import("/assets/search.js")).marked(...texts)
        .map((part) => part.textContent ?? part)""",
        ["تاريخ 2026-12-01", ["12"]],
    )
    assert parts == ["تاريخ \u20662026-", "12", "-01\u2069"]


def test_filters_are_folded_on_a_phone_and_open_on_a_desk(visits):
    page = visits.open("/tags")
    page.set_viewport_size(PHONE)
    page.goto(f"{visits.url}/search?q=review")
    facets, first = page.locator("#facets"), page.locator("#facets li").first
    expect(facets).to_be_visible()
    expect(first).to_be_hidden()
    expect(page.locator("#found li").first).to_be_in_viewport()
    facets.locator("summary").click()
    expect(first).to_be_visible()
    facets.locator("summary").click()
    page.set_viewport_size(DESKTOP)
    expect(first).to_be_visible()
    # The counts are in a column at the end.
    boxes = [count.bounding_box() for count in page.locator("#facets li > span").all()]
    ends = [box["x"] + box["width"] for box in boxes]
    assert len(ends) > 3 and max(ends) - min(ends) < 1


@pytest.mark.parametrize("given", ["tag=nope", "tag=TAG", "owner=nobody", "owner=A"])
def test_a_filter_that_does_not_exist_can_be_taken_off(visits, given):
    page = visits.open(f"/search?q=review&{given}")
    expect(page.locator("#told")).to_contain_text(re.compile("nope|Invalid tag|nobody|'A'"))
    expect(page.locator("#more")).to_be_hidden()
    page.locator("#chosen a").click()
    expect(page.locator("#found li").first).to_be_visible()
    visits.faults.clear()  # the browser logs the refusal


def test_the_arrow_keys_go_through_the_results(visits):
    page = visits.open("/search?q=review")
    links = page.locator("#found h3 a")
    expect(links.nth(1)).to_be_visible()
    page.keyboard.press("/")
    for number in (0, 1):
        page.keyboard.press("ArrowDown")
        expect(links.nth(number)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("ArrowDown")
    href = links.first.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{href}")


@pytest.mark.usefixtures("installed_tools")
def test_a_host_of_files_shows_the_line_of_a_text(static_visits):
    page = static_visits.open("/search?q=aggregate")
    texts: list[str | None] = []
    page.on(
        "request",
        lambda request: (
            request.url.endswith(".body.txt") and texts.append(request.headers["range"])
        ),
    )
    page.reload()
    row = page.locator("#found li", has_text="SQL query review")
    expect(row.locator(".why mark").first).to_have_text(re.compile("aggregat", re.IGNORECASE))
    assert 0 < len(texts) <= 10
    assert set(texts) == {"bytes=0-16383"}


def test_a_search_that_fails_can_be_tried_again(visits):
    page = visits.open("/search?q=review", fresh=True)
    expect(page.locator("#found li").first).to_be_visible()
    page.context.set_offline(True)
    page.locator("#q").fill("sql")
    expect(page.locator("#told")).to_contain_text("The host cannot be reached.")
    expect(page.locator("#more")).to_have_text("Try again")
    page.context.set_offline(False)
    page.locator("#more").click()
    expect(page.locator("#heading")).to_contain_text("for “sql”")
    expect(page.locator("#found li").first).to_be_visible()
    visits.faults.clear()  # the browser logs the failure


def test_nothing_is_found(visits):
    page = visits.open("/search?q=zzyzx")
    expect(page.locator("#search-status")).to_contain_text("No prompts for “zzyzx”")
    expect(page.locator("#found li")).to_have_count(0)
    expect(page.locator("#more")).to_be_hidden()
    expect(page.locator("#tips")).to_be_visible()
    expect(page.locator("#suggested > li").first).to_be_visible()
    page.locator("#q").fill("sql")
    expect(page.locator("#found li").first).to_be_visible()
    expect(page.locator("#instead")).to_be_hidden()


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("host", ["visits", "static_visits"])
def test_words_that_are_found_alone_are_offered(request, host):
    page = request.getfixturevalue(host).open("/search?q=wcag+of+japanese+commit+zzyzx")
    links = page.locator("#told a")
    expect(links).to_have_text(["wcag", "japanese", "commit"])
    links.nth(1).click()
    expect(page).to_have_url(re.compile(r"/search(\.html)?\?q=japanese$"))
    expect(page.locator("#found li").first).to_be_visible()


def test_the_panel_says_that_nothing_is_found_and_waits_for_a_label(visits):
    page = visits.open("/tags", viewport=PHONE)
    panel, field = page.locator("#results"), page.locator("#q")
    field.fill("zzyzx")
    expect(page.get_by_role("option")).to_have_text(["No prompts for “zzyzx”"])
    for part in ("label:", "label:prod"):
        field.fill(part)
        expect(panel).to_be_hidden()
    field.fill("review label:")
    await_results(page, "review")
    expect(panel).to_be_visible()
    box = panel.bounding_box()
    assert (box["x"], box["width"]) == (20, PHONE["width"] - 40)
    # A long address is one line.
    heights = [one.bounding_box()["height"] for one in page.locator("#results b + *").all()]
    assert len(heights) > 1 and max(heights) == min(heights)


def test_more_than_a_page(visits):
    page = visits.open("/search?q=echo")
    expect(page.locator("#found li")).to_have_count(PAGE_SIZE)
    expect(page.locator("#search-status")).to_contain_text(f"{ECHOES} prompts")
    page.locator("#more").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#found li")).to_have_count(ECHOES)
    expect(page.locator("#more")).to_be_hidden()
    assert len(set(titles(page))) == ECHOES
    # The keyboard focus moves to the first new result.
    first = page.locator("#found li").nth(PAGE_SIZE)
    assert first.evaluate("one => one.contains(document.activeElement)")


def test_the_search_page_without_a_query(visits, hub):
    page = visits.open("/search")
    expect(page.locator("#found li")).to_have_count(0)
    expect(page.locator("#more")).to_be_hidden()
    expect(page.locator("#tips")).to_be_hidden()
    newest = hub.get("/api/v1/repos?sort=new").json()["data"][:3]
    expect(page.locator("#suggested > li")).to_have_count(len(newest))
    shown = page.locator("#suggested h3").all_inner_texts()
    assert shown == [repo["title"] for repo in newest]


@pytest.mark.parametrize("query", ["+++", "  ", "%", "日本", "a" * 100])
def test_any_query_is_answered(visits, query):
    page = visits.open("/search")
    page.locator("#q").fill(query)
    if query.strip():
        expect(page.locator("#search-status")).not_to_have_text("")
    else:
        page.locator("#q").press("Enter")
        expect(page.locator("#search-status")).to_have_text("")


def test_what_is_found_is_text(visits):
    page = visits.open("/")
    type_query(page, "pre textarea template")
    await_results(page, "pre textarea template")
    option = page.get_by_role("option").first
    expect(option).to_contain_text("<script>alert(1)</script>")
    href = option.evaluate("one => (one.closest('a') ?? one.querySelector('a')).pathname")
    assert href == f"/{MARKUP}"
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=*")
    expect(page.locator("#found li").first).to_contain_text("onerror=alert(2)")
    expect(page.locator("#found img, #found script")).to_have_count(0)


def test_an_empty_hub_says_that_it_has_no_prompts(browser: Browser, tmp_path: Path):
    content, site, state = (f"{tmp_path}/{name}" for name in ("content", "site", "state"))
    Path(content).mkdir()
    with serving(Settings(content, site, state, queries=True)) as server:
        page = browser.new_page()
        page.goto(f"{server.url}/search?q=email")
        expect(page.locator("#instead")).to_contain_text("There are no prompts yet.")
        expect(page.locator("#tips")).to_have_count(0)
        # As a session that has ended gives for a page.
        page.route("**/new.html", lambda route: route.fulfill(body="<main><form></form></main>"))
        page.reload()
        expect(page.locator("#tips")).to_be_visible()
        expect(page.locator("#instead")).not_to_contain_text("null")
        page.close()
