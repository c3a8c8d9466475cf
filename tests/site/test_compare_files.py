"""Two versions with files compared in the browser, as their pages show it."""

import json

from playwright.sync_api import Page, Route, expect

from builder.model.version_files import FILES_MAX
from tests.site.browser import Visits
from tests.site.catalogue import FOLDER, RELEASED
from tests.site.comparing import COMPARE, expect_compared

PAIR = f"/{FOLDER}/compare?from=1.0.0&to=1.1.0"


def shown(page: Page, part: str) -> list[str]:
    """The texts of some parts of a page, without white space, which differs in its sources."""
    texts = page.locator(part).evaluate_all("all => all.map((one) => one.textContent)")
    return ["".join(one.split()) for one in texts]


def test_it_shows_what_the_page_of_the_version_shows(visits, static_visits):
    for each in (visits, static_visits):
        page = each.open(PAIR)
        expect_compared(page, "1.0.0", "1.1.0")
        expect(page.locator("#told")).to_contain_text(
            "2 files changed, 1 file added, 1 file removed."
        )
        parts = (".can-do:not(#can-do) dl", "details.file", "table.changes tbody tr")
        # The new sides, which the pages of versions do not have.
        page.eval_on_selector_all(".to", "all => all.forEach((one) => one.remove())")
        compared = [shown(page, part) for part in parts]
        page = each.open(f"/{FOLDER}/1.1.0")
        assert compared == [shown(page, part) for part in parts]
        assert all(compared)


def test_the_other_way_round_new_is_gone(visits):
    page = visits.open(f"/{FOLDER}/compare?from=1.1.0&to=1.0.0")
    expect_compared(page, "1.1.0", "1.0.0")
    assert "old.examplenewscripts/old.sh:2" in shown(page, ".can-do li")
    expect(page.locator(".can-do del").filter(has_text="api.tracker.example")).to_have_count(1)
    expect(page.locator("details.file", has_text="scripts/commits.sh")).to_contain_text("removed")


def compare_with(visits: Visits, **fields: object) -> Page:
    """The comparison, where the record of 1.1.0 has these fields."""
    page = visits.open("/tags")

    def answer(route: Route) -> None:
        response = route.fetch()
        record = response.json()
        record["data"] |= fields
        route.fulfill(response=response, body=json.dumps(record))

    page.route("**/versions/1.1.0.json", answer)
    page.goto(visits.url + PAIR)
    expect(page.locator(".can-do")).to_be_visible()
    page.unroute("**/versions/1.1.0.json")
    return page


def test_an_executable_bit_alone_is_a_change(visits):
    record = f"/api/v1/repos/{FOLDER}/versions/1.0.0.json"
    old = visits.open("/tags").request.get(visits.url + record).json()["data"]
    files = [one | {"executable": not one["executable"]} for one in old["files"]]
    page = compare_with(visits, content=old["content"], files=files)
    expect(page.locator("#told")).to_have_text(
        "Nothing changes for callers. The text is unchanged. 4 files with another executable bit."
    )
    expect(page.locator("details.file")).to_have_count(4)
    assert shown(page, "details.file")[0] == (
        "assets/mark.pngexecutablebit·executableOnlytheexecutablebithaschanged."
    )


def test_a_file_that_is_text_in_one_version_alone_says_in_which(visits):
    page = visits.open("/tags")
    path = "references/kinds.md"
    sides = {"1.0.0": b"", "1.1.0": b""}

    def answer(route: Route) -> None:
        body = sides[route.request.url.partition("/versions/")[2][:5]]
        route.fulfill(body=body, content_type="text/plain")

    page.route(f"**/{path}.txt", answer)
    for old, new, where in (
        (b"\xff", b"1", " in 1.0.0"),
        (b"1", b"\0", " in 1.1.0"),
        (b"\xff", b"\0", ""),
    ):
        sides |= {"1.0.0": old, "1.1.0": new}
        page.goto(visits.url + PAIR)
        file = page.locator("details.file", has_text=path)
        expect(file).to_contain_text(f"Not text{where}, so there are no lines to compare.")
    page.unroute(f"**/{path}.txt")


def test_few_of_many_files_are_loaded(visits):
    path = f"/api/v1/repos/{FOLDER}/versions/1.1.0.files/scripts/commits.sh.txt"
    one = {
        "size": 9,
        "sha256": "0" * 64,
        "media_type": "",
        "executable": False,
        "url": visits.url + path,
    }
    loaded: list[str] = []
    visits.open("/tags").on("request", lambda request: loaded.append(request.url))
    files = [one | {"path": f"{number:03}.sh"} for number in range(FILES_MAX)]
    page = compare_with(visits, files=files)
    assert page.locator("details.file").count() > FILES_MAX
    assert len([url for url in loaded if ".files/" in url]) <= 30
    expect(page.locator("details.file", has_text="199.sh")).to_contain_text("Not compared here")


def test_a_version_that_is_only_a_text(visits):
    page = compare_with(visits, content="Only a text.\n", files=[])
    expect(page.locator("#told")).to_contain_text("4 files removed.")
    page = visits.open("/tags")
    page.route(
        f"**/{FOLDER}/1.0.0", lambda route: route.fulfill(body="<p>x", content_type="text/html")
    )
    page.goto(visits.url + PAIR)
    expect(page.locator(".can-do")).to_contain_text(
        "1.0.0 is only a text, to which the rules were not applied."
    )
    page.unroute(f"**/{FOLDER}/1.0.0")


def test_texts_alone_load_neither_pages_nor_the_script_for_files(visits):
    requested: list[str] = []
    page = visits.open("/tags")
    page.on("request", lambda request: requested.append(request.url))
    page.goto(f"{visits.url}{COMPARE}?from=1.0.0&to=1.1.0", wait_until="networkidle")
    expect_compared(page, "1.0.0", "1.1.0")
    assert not [one for one in requested if one.endswith(("compare_files.js", f"{RELEASED}/1.0.0"))]


def test_a_file_that_cannot_be_read_is_reported(visits):
    page = visits.open("/tags")
    page.route("**/kinds.md.txt", lambda route: route.fulfill(status=503))
    page.goto(visits.url + PAIR)
    expect(page.locator("#told")).to_contain_text(
        "The file references/kinds.md could not be loaded: the host answered 503."
    )
    page.unroute("**/kinds.md.txt")
    page.get_by_role("button", name="Try again").click()
    expect_compared(page, "1.0.0", "1.1.0")
    visits.faults.clear()
