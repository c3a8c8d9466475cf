"""Any two versions of a prompt compared, and the ways there."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from builder.text.hidden_chars import MARKS_MAX
from tests.site.browser import PHONE, Visits
from tests.site.catalogue import (
    ALERT,
    BREAKOUT,
    CALLED,
    CUT,
    HISTORY,
    INVISIBLE,
    LONG_LINE,
    MARKUP,
    RELEASED,
    SQL_REVIEW,
)
from tests.site.comparing import COMPARE, expect_compared


def summary(page: Page) -> str:
    return page.locator("#told").inner_text()


@pytest.fixture(params=["hub", "files"])
def on_each_host(request: pytest.FixtureRequest, installed_tools: None) -> Visits:
    """The embedded server, and a host with files alone, below a path."""
    return request.getfixturevalue("visits" if request.param == "hub" else "static_visits")


def test_words_are_marked_and_the_rest_is_folded(on_each_host):
    page = on_each_host.open(f"{COMPARE}?from=1.0.0&to=1.1.0")
    expect_compared(page, "1.0.0", "1.1.0")
    assert summary(page) == "Nothing changes for callers. 1 line removed, 1 line added."
    expect(page.locator(".changes ins").first).to_have_text("very")
    expect(page.locator(".changes del")).to_have_count(0)
    expect(page.locator(".changes .gap")).to_have_text("17 lines unchanged")
    line = "Be very kind to {{whom}}.\n"
    row = ["21", "21", "±", line, line]
    assert page.locator(".changes tr.changed td").all_text_contents() == row
    expect(page.locator("#lead")).to_have_text("Now Be very kind to {{whom}}.")
    facts = page.locator("#facts dd")
    steps = page.locator("#facts li").all_text_contents()
    assert steps == ["1.1.0 2025-02-13 Label stable", "1.0.0 2025-02-11"]
    assert facts.nth(0).locator("p").all_text_contents() == ["many"]
    assert facts.nth(1).locator("p").all_text_contents() == ["311 bytes, raw", "316 bytes, raw"]


def test_a_fact_of_both_versions_is_shown_once(visits):
    page = visits.open(f"{COMPARE}?from=2.0.0&to=2.0.1")
    expect(page.locator("h1")).to_have_text("Released 2.0.0 → 2.0.1")
    counts = [one.locator("p").count() for one in page.locator("#facts dd").all()]
    assert counts == [1, 2]  # the publisher once
    expect(page.locator("#words")).to_be_hidden()


def test_a_very_long_line_is_cut_as_on_the_page_of_the_version(visits):
    page = visits.open(f"/{LONG_LINE}/compare")
    cut = page.locator(".changes em:visible")
    expect(cut).to_have_count(2)
    compared = cut.all_text_contents()
    page = visits.open(f"/{LONG_LINE}/1.1.0")
    assert compared == page.locator(".changes em").all_text_contents()
    assert compared[0] == "… 145,956 characters not shown …"


def test_the_versions_between_are_listed(visits):
    page = visits.open(f"/{HISTORY}/compare?from=1.0.0&to=1.33.0")
    expect_compared(page, "1.0.0", "1.33.0")
    steps = page.locator("#facts li")
    expect(steps).to_have_count(8)
    expect(steps.first).to_contain_text("1.33.0")
    expect(steps.last).to_contain_text("1.0.0")
    assert page.locator("#facts li.now").count() == 2


def test_side_by_side_is_a_choice_without_a_script(visits):
    page = visits.open(f"/{CALLED}/compare?from=1.2.0&to=1.3.0")
    expect_compared(page, "1.2.0", "1.3.0")
    expect(page.locator(".changes .to").first).to_be_hidden()
    page.get_by_label("Side by side").check()
    old, new = (
        page.locator(f".changes .{one} td:last-child").first.bounding_box()
        for one in ("removed", "added")
    )
    assert old["x"] + old["width"] <= new["x"]
    page.set_viewport_size(PHONE)
    expect(page.get_by_label("Side by side")).to_be_hidden()
    expect(page.locator(".changes .to").first).to_be_hidden()


def test_labels_and_latest_are_compared(on_each_host):
    page = on_each_host.open(f"{COMPARE}?from=stable&to=latest")
    expect_compared(page, "1.1.0", "2.0.1")
    assert page.title().startswith("stable to latest · Compare versions")
    options = page.locator("#to option").all_inner_texts()
    assert options[:3] == ["latest (2.0.1)", "stable (1.1.0)", "tested (2.0.0)"]
    assert [one.partition(" ")[0] for one in options[3:]] == ["2.0.1", "2.0.0", "1.1.0", "1.0.0"]


def test_without_a_choice_the_latest_is_compared_with_the_one_before(visits):
    page = visits.open(COMPARE)
    page.wait_for_url(f"**{COMPARE}?from=2.0.0&to=2.0.1")
    expect(page.locator("#told")).to_have_text(
        "Nothing changes for callers. The text is unchanged; only its metadata differs."
    )
    page = visits.open(f"{COMPARE}?to=stable")
    page.wait_for_url(f"**{COMPARE}?from=1.0.0&to=stable")
    expect_compared(page, "1.0.0", "1.1.0")


def test_the_address_follows_the_choice_and_back_returns(visits):
    page = visits.open(f"{COMPARE}?from=1.0.0&to=1.1.0")
    expect_compared(page, "1.0.0", "1.1.0")
    page.get_by_label("to", exact=True).select_option("tested")
    page.wait_for_url("**?from=1.0.0&to=tested")
    expect_compared(page, "1.0.0", "2.0.0")
    page.get_by_role("button", name="Swap").click()
    page.wait_for_url("**?from=tested&to=1.0.0")
    expect_compared(page, "2.0.0", "1.0.0")
    page.go_back()
    expect_compared(page, "1.0.0", "2.0.0")
    page.go_back()
    expect_compared(page, "1.0.0", "1.1.0")
    expect(page.get_by_label("to", exact=True)).to_have_value("1.1.0")
    shared = visits.open(f"{COMPARE}?{page.url.partition('?')[2]}")
    expect_compared(shared, "1.0.0", "1.1.0")


def test_by_keyboard_alone(visits):
    page = visits.open(f"{COMPARE}?from=1.0.0&to=1.1.0")
    expect_compared(page, "1.0.0", "1.1.0")
    page.get_by_label("From", exact=True).focus()
    page.keyboard.press("Tab")
    expect(page.get_by_label("to", exact=True)).to_be_focused()
    page.keyboard.type("2.0.0")
    expect_compared(page, "1.0.0", "2.0.0")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Swap")).to_be_focused()
    page.keyboard.press("Enter")
    expect_compared(page, "2.0.0", "1.0.0")


@pytest.mark.parametrize(
    "query, sentence",
    [
        ("from=9.9.9&to=latest",
         "This prompt has no version or label “9.9.9”. Choose one from the list."),
        ("from=1.0.0&to=__proto__",
         "This prompt has no version or label “__proto__”. Choose one from the list."),
        ("from=%3Cimg%20src=x%20onerror=alert(1)%3E&to=1.0.0",
         "This prompt has no such version or label. Choose one from the list."),
        ("from=1.0.0&to=1.0.0", "Both sides are 1.0.0. Choose another version on one side."),
        ("from=stable&to=1.1.0", "stable and 1.1.0 are the same version, 1.1.0. "
         "Choose another version on one side."),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_told(visits, query, sentence):
    page = visits.open(f"{COMPARE}?{query}")
    expect(page.locator("#told")).to_have_text(sentence)
    expect(page.locator("#told")).to_have_class(re.compile("faults"))
    unlisted = int("has no" in sentence)
    expect(page.locator("[aria-invalid=true]")).to_have_count(unlisted)
    expect(page.locator("table.changes")).to_have_count(0)
    page.get_by_label("From", exact=True).select_option("1.0.0")
    page.get_by_label("to", exact=True).select_option("tested")
    expect_compared(page, "1.0.0", "2.0.0")
    expect(page.locator("#told")).not_to_have_class(re.compile("faults"))
    # A later error does not leave the comparison before it.
    page.get_by_label("to", exact=True).select_option("1.0.0")
    expect(page.locator("#told")).to_have_class(re.compile("faults"))
    expect(page.locator("h1")).to_have_text("Compare versions")
    expect(page.locator("#facts dt, table.changes, #words:visible")).to_have_count(0)


@pytest.mark.parametrize(
    "pattern, what, status, sentence",
    [
        ("**/versions.json", "The list of versions", None,
         "could not be loaded. Check your connection, then try again."),
        ("**/versions/1.1.0.json", "The text of 1.1.0", 500,
         "could not be loaded: the host answered 500. Try again in a moment."),
        ("**/versions/1.1.0.json", "The text of 1.1.0", 429,
         "could not be loaded, because your address has read too much. "
         "Wait a minute, then try again."),
    ],
)  # fmt: skip
def test_a_host_in_trouble_is_told_and_asked_again(visits, pattern, what, status, sentence):
    page = visits.open("/tags")
    page.route(pattern, lambda route: fail(route, status))
    page.goto(f"{visits.url}{COMPARE}?from=1.0.0&to=1.1.0")
    expect(page.locator("#told")).to_have_text(f"{what} {sentence} Try again")
    page.unroute(pattern)
    page.get_by_role("button", name="Try again").click()
    expect_compared(page, "1.0.0", "1.1.0")
    # The browser itself logs these failures.
    assert all(one.startswith(("failed: ", "console: Failed to load")) for one in visits.faults)
    visits.faults.clear()


def fail(route: Route, status: int | None) -> None:
    if status is None:
        route.abort()
    else:
        route.fulfill(status=status)


def test_a_text_that_is_gone_is_told(visits):
    page = visits.open("/tags")
    page.route("**/versions/1.1.0.json", lambda route: route.fulfill(status=410))
    page.goto(f"{visits.url}{COMPARE}?from=1.0.0&to=1.1.0")
    expect(page.locator("#told")).to_have_text(
        "The text of 1.1.0 is not on this site. It may have been withdrawn."
    )
    page.unroute("**/versions/1.1.0.json")
    visits.faults.clear()


def test_a_withdrawn_version_cannot_be_chosen(visits):
    page = visits.open("/tags")

    def withdraw(route: Route) -> None:
        answer = route.fetch()
        listed = answer.json()
        for entry in listed["data"]:
            if entry["version"] in ("1.0.0", "2.0.1"):
                entry["withdrawn"] = {"at": "2026-01-01T00:00:00Z", "reason": "secret", "note": ""}
        route.fulfill(response=answer, json=listed)

    page.route("**/versions.json", withdraw)
    page.goto(f"{visits.url}{COMPARE}?from=1.0.0&to=latest")
    expect(page.locator("#told")).to_contain_text("Version 1.0.0 has been withdrawn")
    expect(page.locator("#from option[value='1.0.0']")).to_have_text("1.0.0 · withdrawn")
    expect(page.locator("#from option[value='1.0.0']")).to_be_disabled()
    page.get_by_label("From", exact=True).select_option("stable")
    expect_compared(page, "1.1.0", "2.0.0")  # the latest that is not withdrawn
    page.unroute("**/versions.json")


def test_what_others_write_is_text(visits):
    page = visits.open(f"/{MARKUP}/compare?from=1.0.0&to=1.1.0")
    expect_compared(page, "1.0.0", "1.1.0")
    expect(page.locator(".changes")).to_contain_text(ALERT)
    expect(page.locator("#lead")).to_contain_text(BREAKOUT)
    expect(page.locator("main :is(img, script, iframe)")).to_have_count(0)


def test_invisible_characters_are_shown(visits):
    page = visits.open(f"/{INVISIBLE}/compare?from=1.0.0&to=1.1.0")
    expect_compared(page, "1.0.0", "1.1.0")
    marks = page.locator(".changes .changed .was .invisible")
    titles = marks.evaluate_all("all => all.map((one) => one.title)")
    assert titles == ["U+200B", "U+2060", "U+202E", "U+2066", "U+FEFF"]
    page = visits.open(f"/{CUT}/compare?from=1.0.0&to=1.1.0")
    expect(page.locator(".changes em").first).to_contain_text("more characters not shown")
    assert page.locator(":not(.to *).invisible").count() == MARKS_MAX


def test_without_scripts_it_leads_to_the_changes_of_each_version(static_visits):
    page = static_visits.open(f"/{RELEASED}/versions", scripts=False)
    expect(page.get_by_role("button", name="Compare")).to_be_hidden()
    page.goto(f"{static_visits.url}{COMPARE}?from=1.0.0&to=2.0.0")
    expect(page.get_by_role("main")).to_contain_text("needs JavaScript")
    expect(page.get_by_label("From", exact=True)).to_be_hidden()
    page.get_by_role("link", name="the list of versions").click()
    page.wait_for_url(f"**/{RELEASED}/versions")
    page.get_by_role("link", name="changes in 1.1.0").click()
    expect(page.locator("#changes ins")).to_have_text(" very")


def test_the_list_of_versions(visits):
    page = visits.open(f"/{RELEASED}/versions")
    rows = page.get_by_role("list", name="newest first").locator("> li")
    assert rows.locator(".ver").all_inner_texts() == ["2.0.1", "2.0.0", "1.1.0", "1.0.0"]
    labels = [row.locator(".label").all_text_contents() for row in rows.all()]
    assert labels == [[], ["Label tested"], ["Label stable"], []]
    expect(page.get_by_label("From", exact=True)).to_have_value("2.0.0")
    expect(page.get_by_label("to", exact=True)).to_have_value("2.0.1")
    expect(rows.nth(2)).to_contain_text("Now Be very kind to {{whom}}.")
    expect(rows.nth(2)).to_contain_text("316 bytes")
    expect(rows.nth(3).get_by_role("link", name="changes")).to_have_count(0)
    page.get_by_label("From", exact=True).select_option("1.0.0")
    page.get_by_role("button", name="Compare").click()
    expect_compared(page, "1.0.0", "2.0.1")
    page.wait_for_url(f"**{COMPARE}?from=1.0.0&to=2.0.1")


def test_the_moves_of_labels_are_a_picture_in_words_and_a_table(static_visits):
    page = static_visits.open(f"/{RELEASED}/versions", scripts=False)
    picture = page.get_by_role("img", name="stable: 1.0.0 from 2026-02-21, 1.1.0 from 2026-02-21.")
    expect(picture).to_be_visible()
    expect(picture.locator("circle")).to_have_count(4)
    # Two labels, each with a line of its own.
    assert picture.locator("g[text-anchor=start]").locator("line").count() == 6
    page.get_by_text("Each move of a label").click()
    cells = page.get_by_role("region", name="Moves of labels").locator("tbody tr")
    expect(cells).to_have_count(3)


@pytest.mark.parametrize(
    "version, sentence, next_one",
    [
        ("1.0.0", "You are looking at 1.0.0; the latest is 2.0.1.", "1.1.0"),
        ("2.0.0", "You are looking at 2.0.0; the latest is 2.0.1.", None),
        ("2.0.1", "This is the latest version.", None),
    ],
)
def test_a_version_says_where_it_stands(on_each_host, version, sentence, next_one):
    page = on_each_host.open(f"/{RELEASED}/{version}")
    standing = page.locator("#standing")
    expect(standing).to_contain_text(sentence)
    expect(standing.locator("[rel=next]")).to_have_count(1 if next_one else 0)
    if version == "2.0.1":
        expect(standing.get_by_role("link")).to_have_count(0)
        return
    if next_one:
        standing.get_by_role("link", name=f"Next: {next_one}").click()
        page.wait_for_url(f"**/{RELEASED}/{next_one}")
        page.go_back()
    standing.get_by_role("link", name="Compare with the latest").click()
    page.wait_for_url(f"**{COMPARE}?from={version}&to=latest")
    expect(page.locator("h1")).to_have_text(f"Released {version} → 2.0.1")


def test_a_version_leads_to_the_latest_without_scripts(static_visits):
    page = static_visits.open(f"/{RELEASED}/1.0.0", scripts=False)
    page.get_by_role("link", name="See the latest version").click()
    page.wait_for_url(f"**/{RELEASED}")


def test_the_moves_of_a_label_lead_to_what_changed(visits):
    page = visits.open(f"/{RELEASED}", viewport=PHONE)
    page.get_by_role("link", name="compare 1.0.0 with 1.1.0").click()
    expect_compared(page, "1.0.0", "1.1.0")


def test_its_scripts_are_loaded_there_alone(visits):
    requested: list[str] = []
    page = visits.open("/tags")
    page.on("request", lambda request: requested.append(request.url.rpartition("/")[2]))
    for path in ("/", f"/{SQL_REVIEW}", f"/{SQL_REVIEW}/1.0.0", f"/{RELEASED}/versions"):
        page.goto(visits.url + path, wait_until="networkidle")
    alone = {"compare.js", "callers.js", "changes.js", "changes_table.js", "jsdiff.js"}
    assert not alone & {*requested}
    page.goto(visits.url + COMPARE, wait_until="networkidle")
    assert alone <= {*requested}
