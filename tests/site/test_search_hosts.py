"""Searches on hosts that answer late, wrongly or not at all, and on those that have only files."""

import re

import msgspec
import pytest
from playwright.sync_api import Route, expect

from builder.hosts.configuration import HostedSite
from builder.model.answers import CatalogueLine
from builder.model.routes import PAGE_SIZE
from tests.conformance.nginx import started_nginx
from tests.site.catalogue import ECHOES, SQL_REVIEW
from tests.site.conftest import BASE_PATH
from tests.site.test_search import PARTLY, await_results, titles, type_query
from tests.support.searches import CASES, LINES
from tests.support.servers import free_port


def test_a_late_answer_does_not_replace_a_newer_one(visits):
    page = visits.open("/search")
    late: list[Route] = []
    page.route(re.compile(r"/api/v1/repos\?q=review&"), lambda route: late.append(route))
    page.locator("#q").fill("review")
    with page.expect_request(re.compile(r"\?q=review&")):
        pass
    page.locator("#q").fill("japanese")
    expect(page.locator("#search-status")).to_contain_text("“japanese”")
    with page.expect_response(re.compile(r"\?q=review&")) as answer:
        late[0].continue_()
    answer.value.finished()
    page.evaluate("new Promise((done) => setTimeout(done, 0))")
    expect(page.locator("#search-status")).to_contain_text("“japanese”")


def test_a_host_that_does_not_answer_is_reported(visits):
    page = visits.open("/search?q=echo", fresh=True)  # nothing is in a cache
    expect(page.locator("#found li")).to_have_count(PAGE_SIZE)
    page.context.set_offline(True)
    page.locator("#more").click()
    status = page.locator("#search-status")
    expect(status).to_contain_text("Try again")
    page.context.set_offline(False)
    page.locator("#more").click()
    expect(page.locator("#found li")).to_have_count(ECHOES)
    # Only the browser has said something of it.
    assert len(visits.faults) == 2
    assert all("INTERNET_DISCONNECTED" in fault for fault in visits.faults)
    visits.faults.clear()


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("host", ["static_visits", "ignoring_visits"])
def test_a_host_that_has_only_files(request, host):
    visits = request.getfixturevalue(host)
    page = visits.open("/")
    type_query(page, "sql review")
    await_results(page, "sql review")
    expect(page.locator("#search-status")).to_contain_text(PARTLY)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", selected=True)).to_contain_text("SQL query review")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{SQL_REVIEW}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("SQL query review")

    for kind, q in {"chat": "commit message", "skill": "release notes", "prompt": "sql"}.items():
        page = visits.open(f"/search?q={q}")
        expect(page.locator("#found").get_by_role("img", name=kind).first).to_be_visible()

    page = visits.open("/search?q=echo")
    expect(page.locator("#found li")).to_have_count(PAGE_SIZE)
    expect(page.locator("#search-status")).to_contain_text(f"{ECHOES} prompts for “echo”")
    expect(page.locator("#search-status")).to_contain_text(PARTLY)
    page.locator("#more").click()
    expect(page.locator("#found li")).to_have_count(ECHOES)
    assert len(set(titles(page))) == ECHOES


@pytest.mark.usefixtures("installed_tools")
def test_the_catalogue_stands_in_while_the_service_is_down(hub, tabs, tmp_path):
    closed = f"127.0.0.1:{free_port()}"
    site = HostedSite(hub.settings.out, listen=f"127.0.0.1:{free_port()}", upstream=closed)
    with started_nginx(site, tmp_path) as url:
        visits = tabs(url)
        page = visits.open("/search?q=echo")
        expect(page.locator("#heading")).to_have_text(f"{ECHOES} prompts for “echo”")
        expect(page.locator("#told")).to_contain_text(PARTLY)
        page.locator("#more").click()
        expect(page.locator("#found li")).to_have_count(ECHOES)
        assert len(set(titles(page))) == ECHOES
        # The page requested only the first page of results, and only the browser logs the failure.
        assert len(visits.faults) == 1 and "503" in visits.faults[0]
        visits.faults.clear()


def test_a_site_without_searches_asks_for_none(static_visits):
    page = static_visits.open("/")
    urls: list[str] = []
    page.on("request", lambda request: "/api/" in request.url and urls.append(request.url))
    type_query(page, "review")
    expect(page.get_by_role("option").first).to_be_visible()
    page.locator("#q").fill("sql")
    expect(page.locator("#search-status")).to_contain_text("“sql”")
    # The catalogue, once.
    assert len(urls) == 1 and urls[0].endswith("/api/v1/catalogue.jsonl")


def test_a_catalogue_is_searched_by_the_server_s_rules(static_visits):
    page = static_visits.open("/")
    answers = page.evaluate(
        """async ([path, text, queries]) => {
            const { Catalogue } = await import(path);
            const catalogue = await Catalogue.read(new Blob([text]).stream());
            return queries.map(([q, tag]) => catalogue.page(q, 0, 50, { tag }));
        }""",
        [
            f"{BASE_PATH}/assets/catalogue.js",
            "\n".join(msgspec.json.encode(line).decode() for line in LINES),
            [[case.q, case.tags or None] for case in CASES],
        ],
    )
    for case, answer in zip(CASES, answers, strict=True):
        found = [f"{repo['owner']}/{repo['name']}" for repo in answer["repos"]]
        corrected = {one["from"]: one["to"] for one in answer["corrected"] or ()} or None
        assert (found, answer["match"], corrected) == (
            case.found.split(), case.match, case.corrected
        ), case.q  # fmt: skip
        without = [" ".join(one["without"]) for one in answer["matches"]]
        assert without == (without if case.without is None else [*case.without]), case.q


@pytest.mark.usefixtures("installed_tools")
@pytest.mark.parametrize("host", ["visits", "static_visits"])
def test_a_page_says_how_a_query_was_taken(request, host):
    page = request.getfixturevalue(host).open("/search?q=japanese+xyzzy")
    status = page.locator("#told")
    expect(status).to_contain_text("Rows name the words that they lack.")
    expect(page.locator("#found li").first).to_be_visible()
    page.locator("#q").fill("reveiw sql")
    expect(status).to_contain_text("Searched for “review” instead of “reveiw”.")
    expect(status).not_to_contain_text("closest")
    expect(page.locator("#found li").first).to_contain_text("SQL query review")


def test_an_empty_catalogue(static_visits):
    page = static_visits.open("/")
    path = f"{BASE_PATH}/assets/catalogue.js"
    read = """async (path) => {
        const { Catalogue } = await import(path);
        return (await Catalogue.read(new Blob().stream())).page('sql', 0, 50, {});
    }"""
    answer = page.evaluate(read, path)
    assert (answer["repos"], answer["total"], answer["match"]) == ([], 0, "some")
    assert answer["corrected"] is None
    assert answer["facets"] == {"tags": [], "owners": [], "labels": []}


@pytest.mark.parametrize(
    ("count", "searched", "partly"),
    [(2, 2, PARTLY), (3, 3, PARTLY), (4, 3, re.compile("only 3 prompts"))],
)
def test_the_first_prompts_of_a_larger_catalogue_are_searched(
    static_visits, count, searched, partly
):
    page = static_visits.open("/")
    lines = [
        msgspec.json.encode(CatalogueLine("ann", f"n{number}", "Word", "", [], "1.0.0", "", ""))
        for number in range(count)
    ]
    lines = [line.decode() + "\n" for line in lines]
    answer = page.evaluate(
        """async ([path, lines]) => {
            const { Catalogue } = await import(path);
            let isCancelled = false;
            const stream = new ReadableStream({
                pull(controller) {
                    if (lines.length) controller.enqueue(new TextEncoder().encode(lines.shift()));
                    else controller.close();
                },
                cancel() { isCancelled = true; },
            }, { highWaterMark: 0 });
            const { repos, partly } = (await Catalogue.read(stream, 3)).page("word", 0, 50, {});
            const names = repos.map(({ name }) => name);
            return { names, partly, isCancelled, left: lines.length };
        }""",
        [f"{BASE_PATH}/assets/catalogue.js", [*lines, *["\n"] * 100]],
    )
    assert answer["names"] == [f"n{number}" for number in range(searched)]
    assert partly.search(answer["partly"])
    # The rest of a larger file is not loaded.
    assert answer["isCancelled"] == (count > 3)
    assert (answer["left"] > 0) == (count > 3)
