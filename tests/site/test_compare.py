"""Any two versions of a prompt compared, and the ways there."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from builder.hosts.configuration import HostedSite
from publisher.web.compare import STEPS_MAX
from tests.conformance.nginx import started_nginx
from tests.site.browser import DESKTOP, PHONE, Visits
from tests.site.catalogue import (
    CALLED,
    FOLDER,
    HISTORY,
    LEFT,
    RELEASED,
    SQL_REVIEW,
    WITHDRAWN,
)
from tests.site.conftest import Tabs, visited
from tests.support.servers import Server, free_port

COMPARE = f"/{RELEASED}/compare"
SERVICE = "**/account/compare/**"


def expect_compared(page: Page, before: str, after: str) -> None:
    """Until these versions are on the page, with what changed."""
    expect(page.locator("h1")).to_contain_text(f" {before} → {after}")
    expect(page.locator("table.changes").first).to_be_visible()


@pytest.fixture(params=["hub", "files"])
def on_each_host(request: pytest.FixtureRequest, installed_tools: None) -> Visits:
    """The embedded server, and a host with files alone, below a path."""
    return request.getfixturevalue("visits" if request.param == "hub" else "static_visits")


def test_words_are_marked_and_the_rest_is_folded(on_each_host):
    page = on_each_host.open(f"{COMPARE}?from=1.0.0&to=1.1.0")
    expect_compared(page, "1.0.0", "1.1.0")
    expect(page.locator(".changes ins").first).to_have_text(" very")
    expect(page.locator(".changes del")).to_have_count(0)
    page.get_by_text("17 lines unchanged").click()
    expect(page.locator(".gap .changes").first).to_be_visible()
    row = page.locator(".changes tr.changed td:not(.to)").all_text_contents()
    assert row == ["21", "21", "±", "Be very kind to {{whom}}.\n"]
    expect(page.get_by_role("heading", name="Versions", exact=True)).to_be_visible()
    expect(page.locator(".steps a")).to_have_text(["1.1.0", "1.0.0"])
    page.locator(".steps a").first.click()
    page.wait_for_url(f"**/{RELEASED}/1.1.0#changes")


def test_the_service_says_what_changes_for_callers_and_shows_both_sides(visits):
    page = visits.open(f"/{CALLED}/compare?from=1.2.0&to=1.3.0#beside")
    expect_compared(page, "1.2.0", "1.3.0")
    expect(page.locator("#told")).to_have_text("4 lines removed, 7 lines added.")
    expect(page.locator(".callers h3")).to_have_text("For applications major")
    expect(page.get_by_label("Side by side")).to_be_checked()
    old, new = (
        page.locator(f".changes .{one} td[dir]").first.bounding_box()
        for one in ("removed", "added")
    )
    assert old["x"] + old["width"] <= new["x"]
    page.set_viewport_size(PHONE)
    expect(page.get_by_label("Side by side")).to_be_hidden()
    expect(page.locator(".changes .to").first).to_be_hidden()
    page = visits.open(f"/{FOLDER}/compare")
    expect(page.locator("details.file")).to_have_count(4)


def test_without_a_service_it_shows_what_each_version_changed(static_visits):
    page = static_visits.open(f"/{FOLDER}/compare")
    expect_compared(page, "1.0.0", "1.1.0")
    expect(page.locator("details.file")).to_have_count(4)
    page = static_visits.open(f"{COMPARE}?from=2.0.1&to=1.0.0")
    expect_compared(page, "1.0.0", "2.0.1")
    expect(page.locator("#told")).to_have_text("What each version changed, oldest first.")
    headings = page.locator("#shown h2").all_inner_texts()
    assert [one.partition(" +")[0] for one in headings] == [
        "1.1.0 · Changes since 1.0.0", "2.0.0 · Changes since 1.1.0", "2.0.1 · Changes since 2.0.0"
    ]  # fmt: skip
    expect(page.locator("#shown").get_by_text("The text is unchanged.")).to_be_visible()
    page.locator("tr.changed a").first.click()
    page.wait_for_url(f"**/{RELEASED}/1.1.0#R21")
    expect(page.locator("#R21")).to_be_in_viewport()
    page = static_visits.open(f"/{HISTORY}/compare?from=1.0.0")
    expect(page.locator("#told")).to_contain_text(f"newest {STEPS_MAX} of")
    expect(page.locator("#shown section")).to_have_count(STEPS_MAX)


def test_labels_and_latest_are_compared(on_each_host):
    page = on_each_host.open(f"{COMPARE}?from=stable&to=latest")
    expect_compared(page, "1.1.0", "2.0.1")
    assert page.title().startswith("stable to latest · Compare versions")
    options = page.locator("#to option").all_inner_texts()
    assert options[:3] == ["latest (2.0.1)", "stable (1.1.0)", "tested (2.0.0)"]
    assert [one.partition(" ")[0] for one in options[3:]] == ["2.0.1", "2.0.0", "1.1.0", "1.0.0"]
    page.goto(f"{on_each_host.url}{COMPARE}?to=stable")
    page.wait_for_url(f"**{COMPARE}?from=1.0.0&to=stable")
    expect_compared(page, "1.0.0", "1.1.0")


def test_other_versions_are_chosen_by_keyboard_and_back_returns(on_each_host):
    page = on_each_host.open(f"{COMPARE}?from=1.0.0&to=1.1.0")
    expect_compared(page, "1.0.0", "1.1.0")
    page.get_by_label("From", exact=True).focus()
    page.keyboard.press("Tab")
    page.keyboard.type("tested")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{COMPARE}?from=1.0.0&to=tested")
    expect_compared(page, "1.0.0", "2.0.0")
    page.go_back()
    expect_compared(page, "1.0.0", "1.1.0")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (f"{COMPARE}?from=1.0.0&to=__proto__", "has no version or label “__proto__”. Choose"),
        (f"{COMPARE}?from=%3Cimg%20src=x%20onerror=alert(1)%3E", "This prompt has no such version"),
        (f"{COMPARE}?from=1.0.0&to=1.0.0", "Both sides are 1.0.0. Choose another version on one"),
        (f"/{WITHDRAWN}/compare?from=1.1.0", "Version 1.1.0 has been withdrawn"),
    ],
)
def test_what_cannot_be_compared_is_reported(on_each_host, path, sentence):
    page = on_each_host.open(path)
    expect(page.locator("#told.faults")).to_contain_text(sentence)
    is_one_wrong = "Both sides" not in sentence
    expect(page.locator("[aria-invalid=true]")).to_have_count(int(is_one_wrong))
    expect(page.get_by_role("link", name="Swap")).to_have_count(0)
    expect(page.locator("#from option:disabled")).to_have_count(int("withdrawn" in sentence))
    expect(page.locator("table.changes, #words")).to_have_count(0)
    page.get_by_label("From", exact=True).select_option("1.0.0")
    page.get_by_label("To", exact=True).select_option("latest")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("h1")).to_contain_text(" 1.0.0 → ")


def test_one_version_has_none_to_compare_it_with(on_each_host):
    page = on_each_host.open(f"/{LEFT}/compare?to=1.0.1")
    expect(page.locator("#told.faults")).to_contain_text("only one version that can be read")
    expect(page.locator("select")).to_have_count(0)


@pytest.mark.parametrize("status", [None, 404, 429, 503])
def test_while_the_service_fails_the_texts_are_compared(visits, status):
    page = visits.open("/tags")
    page.route(SERVICE, partial(fail, status))
    page.goto(f"{visits.url}{COMPARE}?from=1.0.0&to=1.1.0")
    expect_compared(page, "1.0.0", "1.1.0")
    expect(page.locator("#shown h2")).to_have_text("1.1.0 · Changes since 1.0.0 +1 −1")
    page.unroute(SERVICE)
    page.reload()
    told = "1 line removed, 1 line added. Variables and parameters are as before."
    expect(page.locator("#told")).to_have_text(told)
    # The browser itself logs these failures.
    assert all(one.startswith(("failed: ", "console: Failed to load")) for one in visits.faults)
    visits.faults.clear()


def fail(status: int | None, route: Route) -> None:
    if status is None:
        route.abort()
    else:
        route.fulfill(status=status, body="<h1>Busy</h1>", content_type="text/html")


@pytest.mark.parametrize("file", ["versions.json", "released/1.1.0"])
def test_a_text_that_cannot_be_loaded_is_reported(static_visits, file):
    page = static_visits.open("/tags")
    page.route(f"**/{file}", partial(fail, 503))
    page.goto(f"{static_visits.url}{COMPARE}?from=1.0.0&to=1.1.0")
    expect(page.locator("#told.faults")).to_contain_text(
        "could not be loaded. Open this page again"
    )
    page.unroute(f"**/{file}")
    page.reload()
    expect_compared(page, "1.0.0", "1.1.0")
    static_visits.faults.clear()


@pytest.fixture
def proxied_visits(
    hub: Server, tabs: Tabs, tmp_path: Path, installed_tools: None
) -> Iterator[Visits]:
    """The embedded server behind nginx, on the configuration that `hubctl hosts` writes."""
    site = HostedSite(
        hub.settings.out, hub.settings.base_url,
        listen=f"127.0.0.1:{free_port()}", upstream=f"127.0.0.1:{hub.port}", reads_per_minute=0,
    )  # fmt: skip
    with started_nginx(site, tmp_path) as url:
        yield from visited(tabs(url))


def test_without_scripts_the_service_compares(proxied_visits):
    page = proxied_visits.open(COMPARE, scripts=False)
    expect(page.get_by_label("From", exact=True)).to_be_hidden()
    page.get_by_role("link", name="Compare the latest version").click()
    expect(page.locator("h1")).to_have_text("Released 2.0.0 → 2.0.1")
    page.get_by_label("From", exact=True).select_option("stable")
    page.get_by_label("To", exact=True).select_option("2.0.0")
    page.get_by_role("button", name="Compare").click()
    expect_compared(page, "1.1.0", "2.0.0")
    page.get_by_role("link", name="Swap").click()
    expect_compared(page, "2.0.0", "1.1.0")
    page.get_by_label("Side by side").check()
    expect(page.locator(".changes .to").last).to_be_visible()


def test_without_scripts_and_service_it_leads_to_the_changes_of_each_version(static_visits):
    page = static_visits.open(f"/{RELEASED}/versions", scripts=False)
    expect(page.get_by_role("button", name="Compare")).to_be_hidden()
    page.goto(f"{static_visits.url}{COMPARE}?from=1.0.0&to=2.0.0")
    expect(page.get_by_role("main")).to_contain_text("needs JavaScript")
    expect(page.get_by_label("From", exact=True)).to_be_hidden()
    page.get_by_role("link", name="the list of versions").click()
    page.wait_for_url(f"**/{RELEASED}/versions")
    page.get_by_role("link", name="changes in 1.1.0").click()
    expect(page.locator("#changes ins")).to_have_text(" very")
    page.get_by_role("link", name="See the latest version").click()
    page.wait_for_url(f"**/{RELEASED}")


def test_the_list_of_versions(visits):
    page = visits.open(f"/{RELEASED}/versions")
    rows = page.get_by_role("list", name="newest first").locator("> li")
    assert rows.locator(".ver").all_inner_texts() == ["2.0.1", "2.0.0", "1.1.0", "1.0.0"]
    labels = [row.locator(".label").all_text_contents() for row in rows.all()]
    assert labels == [[], ["Label tested"], ["Label stable"], []]
    expect(page.get_by_label("From", exact=True)).to_have_value("2.0.0")
    expect(page.get_by_label("To", exact=True)).to_have_value("2.0.1")
    expect(rows.nth(2)).to_contain_text("Now Be very kind to {{whom}}.")
    expect(rows.nth(2)).to_contain_text("316 bytes")
    expect(rows.nth(2)).not_to_contain_text("many")  # the owner, who published it
    expect(rows.nth(3).get_by_role("link", name="changes")).to_have_count(0)
    page.get_by_label("From", exact=True).select_option("1.0.0")
    page.get_by_role("button", name="Compare").click()
    expect_compared(page, "1.0.0", "2.0.1")
    page.wait_for_url(f"**{COMPARE}?from=1.0.0&to=2.0.1")


def test_a_phone_shows_the_last_ten_versions_first(static_visits):
    page = static_visits.open(f"/{HISTORY}/versions", scripts=False, viewport=PHONE)
    rows, wide = page.locator(".past > li:visible"), page.locator(".past .wide:visible")
    expect(rows).to_have_count(10)
    expect(wide).to_have_count(0)
    page.get_by_label("24 older").check()
    expect(rows).to_have_count(34)
    page.set_viewport_size(DESKTOP)
    expect(wide).to_have_count(34)


def test_the_moves_of_labels_are_a_picture_in_words_and_a_table(static_visits):
    page = static_visits.open(f"/{RELEASED}/versions", scripts=False)
    picture = page.get_by_role("img", name="stable: 1.0.0 from 21 Feb 2026, 1.1.0 from 21 Feb")
    expect(picture).to_be_visible()
    expect(picture.locator("circle")).to_have_count(4)
    # Two labels, each with lines of its own.
    expect(page.locator("p:has(+ svg) > span")).to_have_text(["stable", "tested"])
    assert picture.locator("g:not([text-anchor])").locator("line").count() == 4
    page.get_by_text("Each move of a label").click()
    cells = page.locator(".records tbody tr")
    expect(cells).to_have_count(3)


def test_a_version_says_where_it_stands(on_each_host):
    page = on_each_host.open(f"/{RELEASED}/2.0.1")
    standing = page.locator("#standing")
    expect(standing).to_have_text("This is the latest version.")
    page.locator(".steps").get_by_role("link", name="1.0.0", exact=True).click()
    expect(standing).to_contain_text("You are looking at 1.0.0; the latest is 2.0.1.")
    page.locator(".steps").get_by_role("link", name="1.1.0", exact=True).click()
    page.wait_for_url(f"**/{RELEASED}/1.1.0")
    standing.get_by_role("link", name="Compare with the latest").click()
    page.wait_for_url(f"**{COMPARE}?from=1.1.0&to=latest")
    expect(page.locator("h1")).to_have_text("Released 1.1.0 → 2.0.1")


def test_its_scripts_are_loaded_there_alone(visits):
    requested: list[str] = []
    page = visits.open("/tags")
    page.on("request", lambda request: requested.append(request.url.rpartition("/")[2]))
    for path in ("/", f"/{SQL_REVIEW}", f"/{SQL_REVIEW}/1.0.0", f"/{RELEASED}/versions"):
        page.goto(visits.url + path, wait_until="networkidle")
    alone = {"compare.js", "changes.js"}
    assert not alone & {*requested}
    page.goto(visits.url + COMPARE, wait_until="networkidle")
    assert alone & {*requested} == {"compare.js"}  # the service compares
