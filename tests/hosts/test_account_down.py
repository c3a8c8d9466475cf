"""The account settings and the exchange of tokens while the service is down, or without one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.model.service_urls import TRUSTED_URL
from tests.hosts.standing_in import BASE_URLS, STARTED, Answer, Asker, Place
from tests.support.servers import free_port

pytestmark = pytest.mark.usefixtures("installed_tools")


@pytest.fixture(scope="module", params=STARTED)
def down(request: pytest.FixtureRequest, place: Place) -> Iterator[Asker]:
    """Each host while the service is down."""
    folder = place.folder / f"{request.param}-alone"
    folder.mkdir()
    with place.started(request.param, folder, upstream=f"127.0.0.1:{free_port()}") as ask:
        yield ask


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "DELETE"])
def test_a_page_says_that_accounts_are_unavailable(down: Asker, place: Place, method: str):
    page = Path(place.sites[BASE_URLS[down.name]].out, "503.html").read_bytes()
    assert b"Your account is temporarily unavailable" in page and b"Try again in a minute" in page
    for target in ("/account", "/account/login?next=%2f", "/account/a/b%0a"):
        answer = down(target, method, b"a=b" if method == "POST" else None)
        assert answer.status == 503
        assert answer.body == (b"" if method == "HEAD" else page)
        check_unavailable(answer)
    assert down("/").status == 200


def check_unavailable(answer: Answer) -> None:
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Retry-After"] == "5"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_conditions_and_ranges_do_not_shorten_that_page(down: Asker):
    page = down("/account").body
    conditions = {"If_None_Match": "*", "If_Modified_Since": "Fri, 01 Jan 2100 00:00:00 GMT"}
    for headers in (conditions, {"Range": "bytes=0-9"}, {"If_Match": '"x"'}):
        answer = down("/account", **headers)
        assert (answer.status, answer.body) == (503, page)
        check_unavailable(answer)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_jobs_get_an_error_and_the_time_to_retry(down: Asker, method: str):
    answer = down(TRUSTED_URL, method, b"{}" if method == "POST" else None)
    assert (answer.status, answer.error) == (503, "unavailable")
    assert answer.headers["Retry-After"] == "5"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("name", ["nginx", "worker"])
def test_without_a_service_account_pages_do_not_exist(place: Place, tmp_path: Path, name: str):
    changes = {"upstream": "", "reads_per_minute": 0}
    with place.started(name, tmp_path, **changes) as ask:
        for target in ("/account", "/account/login", "/account/"):
            page = ask(target)
            assert page.status == 404
            assert page.headers["Content-Type"] == "text/html; charset=utf-8"
            assert page.body == ask("/404").body
            assert (ask(target, "POST", b"a=b").status, ask(target, "POST").error) == (
                405, "method_not_allowed",
            )  # fmt: skip
        assert (ask(TRUSTED_URL).status, ask(TRUSTED_URL).error) == (404, "not_found")
        refused = ask(TRUSTED_URL, "POST", b"{}")
        assert (refused.status, refused.error) == (405, "method_not_allowed")
        assert "POST" not in refused.headers["Allow"]
