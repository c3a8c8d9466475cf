"""The ways through the site, with scripts on the embedded server, and without on plain files."""

import pytest
from playwright.sync_api import Page, expect

from builder.emit.catalogue import HOME_ROWS
from builder.model.plural import day
from builder.text.prompts import fill, parse_document
from tests.site.browser import keep_notes
from tests.site.catalogue import MEETING_NOTES, PAGES, SQL_REVIEW, UNLIKE


@pytest.fixture(params=["scripts", "no scripts"])
def start(request: pytest.FixtureRequest, installed_tools: None) -> Page:
    """The home page."""
    if request.param == "scripts":
        return request.getfixturevalue("visits").open("/")
    return request.getfixturevalue("static_visits").open("/", scripts=False)


def follow(page: Page, name: str, path: str, *, within: str = "body") -> None:
    """Follow the first link of this name, which must lead to this path."""
    page.locator(within).get_by_role("link", name=name, exact=True).first.click()
    page.wait_for_url(f"**{path}")


def heading(page: Page) -> str:
    return page.get_by_role("heading", level=1).inner_text()


def test_through_lists_to_a_prompt_and_its_versions(start):
    page = start
    follow(page, "Prompts", "/top", within="nav[aria-label=Site]")
    follow(page, "New", "/new", within="nav[aria-label=Order]")
    follow(page, "Next", "/new/2")
    follow(page, "Previous", "/new")
    follow(page, "Tags", "/tags", within="nav[aria-label=Site]")
    page.locator("main").get_by_role("link", name="sql").first.click()
    page.wait_for_url("**/tags/sql")
    assert "sql" in heading(page)
    follow(page, "New", "/tags/sql/new", within="main")
    follow(page, "SQL query review", f"/{SQL_REVIEW}")
    page.locator("ol.steps a", has_text="1.0.0").click()
    page.wait_for_url(f"**/{SQL_REVIEW}/1.0.0")
    follow(page, "mara-okafor", "/mara-okafor", within="main")
    follow(page, "SQL query review", f"/{SQL_REVIEW}")


@pytest.mark.parametrize(
    "path, current",
    [
        ("/", "Hub"), ("/new/2", "Prompts"), (f"/{SQL_REVIEW}", "Prompts"),
        (f"/{SQL_REVIEW}/1.0.0", "Prompts"), ("/mara-okafor", "Prompts"), ("/tags", "Tags"),
        ("/tags/sql", "Tags"), ("/connect", "Connect"), ("/docs", "API"),
        ("/account/login", "Sign in"), ("/search", None), ("/no-such-owner", None),
    ],
)  # fmt: skip
def test_the_header_marks_where_one_is(visits, path, current):
    page = visits.open(path)
    marked = page.get_by_role("banner").locator("[aria-current]")
    assert marked.all_inner_texts() == ([current] if current else [])


def test_the_home_page_searches_tries_a_prompt_and_lists_new_and_top_ones(start):
    page = start
    lists = page.locator("main .rows:visible")
    expect(lists).to_have_count(2)
    for one in lists.all():
        expect(one.locator("> li")).to_have_count(HOME_ROWS)
    expect(page.locator("main .tags small")).to_have_count(6)
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("main #q")).to_be_in_viewport()
    expect(page.locator("#fill")).to_be_in_viewport()
    updated = page.locator("section", has_text="Last updated")
    updated.get_by_role("link", name="all", exact=True).click()
    page.wait_for_url("**/top")
    follow(page, "Trending", "/trending", within="nav[aria-label=Order]")


@pytest.mark.parametrize(
    ("sort", "time"), [("new", "created_at"), ("top", "updated_at"), ("trending", "updated_at")]
)
def test_a_list_shows_the_times_that_sort_it(visits, hub, sort, time):
    rows = hub.get(f"/api/v1/repos?sort={sort}").json()["data"]
    assert any(row["created_at"][:10] != row["updated_at"][:10] for row in rows)
    shown = visits.open(f"/{sort}").locator("main time:visible")
    days = [text.removeprefix("first ") for text in shown.all_inner_texts()]
    assert days == [day(row[time]) for row in rows]


def test_the_home_page_shows_the_times_that_sort_its_lists(visits):
    page = visits.open("/")
    for lists in page.locator("main .rows:visible").all():
        shown = lists.locator("time:visible").all()
        times = [one.get_attribute("datetime") for one in shown]
        assert len(times) == HOME_ROWS and times == sorted(times, reverse=True)


def test_a_prompt_on_the_home_page_is_filled_in_where_it_stands(visits, hub):
    page = visits.open("/")
    keep_notes(page)
    fields = page.locator("#fill [data-variable]")
    values = {
        one.get_attribute("data-variable"): f"<{number}>" for number, one in enumerate(fields.all())
    }
    assert values
    expect(page.locator("#left")).to_contain_text("left to fill")
    for field, value in zip(fields.all(), values.values(), strict=True):
        field.fill(value)
    expect(page.locator("#left")).to_have_text("Filled in")
    button = page.locator("#copy-filled")
    button.click()
    expect(button).to_have_text("Copied")
    raw = hub.get(page.locator("#prompt").get_attribute("data-raw")).content.decode()
    text = fill(parse_document(raw).body, values)
    assert page.evaluate("navigator.clipboard.readText()") == text


def test_from_version_to_version(start):
    page = start
    page.goto(page.url.rstrip("/") + f"/{MEETING_NOTES}/2.0.0")
    for version in ("1.1.0", "1.0.0"):
        page.locator("ol.steps a", has_text=version).click()
        page.wait_for_url(f"**/{version}")
    expect(page.locator("#changes")).to_have_count(0)
    # A version's page is not written again for the next one: the way up leads over all of them.
    follow(page, "All versions", f"/{MEETING_NOTES}#versions")
    page.locator("ol.steps a", has_text="2.0.0").click()
    page.wait_for_url(f"**/{MEETING_NOTES}/2.0.0")


@pytest.mark.parametrize("kind", UNLIKE)
def test_it_can_be_read_without_scripts(static_visits, kind):
    page = static_visits.open(PAGES[kind].partition("?")[0], scripts=False)
    expect(page.locator("html")).to_have_attribute("lang", "en")
    assert page.title().strip()
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    for role in ("banner", "main", "contentinfo", "search"):
        expect(page.get_by_role(role)).to_have_count(1)
    expect(page.get_by_role("navigation", name="Site")).to_have_count(1)
    parts = page.locator(
        "main :is(h1, h2, h3, #prompt, pre.snippet):not([hidden], [hidden] *, details *)"
    )
    for choice in page.get_by_role("radio").all():
        choice.check()
    # Each group of choices shows one of its parts.
    folded = page.locator(".tab :is(h2, h3, pre.snippet, #prompt):not(details *)")
    hidden = folded.locator("visible=false")
    assert parts.locator("visible=true").count() + hidden.count() == parts.count()
    groups = page.locator(":has(> .tab)").count()
    expect(page.locator(".tab").locator("visible=true")).to_have_count(groups)
    # Without scripts, controls without effect are hidden.
    expect(page.locator("button:visible:not(form[action] button)")).to_have_count(0)
    expect(
        page.locator("#fill").locator("input, select, textarea").locator("visible=true")
    ).to_have_count(0)


def test_the_search_page_without_scripts_says_where_else_to_look(static_visits):
    page = static_visits.open("/search", scripts=False)
    ways = page.get_by_role("main").get_by_role("link")
    hrefs = ways.evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    assert {"/prompts/tags", "/prompts/top"} <= set(hrefs)
    expect(ways.first).to_be_visible()


def test_the_search_form_without_scripts_goes_there(static_visits):
    page = static_visits.open("/", scripts=False)
    page.locator("#q").fill("sql review")
    page.locator("#q").press("Enter")
    page.wait_for_url("**/prompts/search?q=sql+review")
