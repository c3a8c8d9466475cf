"""The service fills prompts in for readers without scripts, by the rules of all clients."""

import io
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from builder.model.names import RESERVED_OWNERS
from builder.model.service_urls import ACCOUNT_URL, is_account_url, is_fill_url
from builder.model.settings import READS_PER_MINUTE
from builder.pipeline.build import build
from builder.text.filling import FILLED_CHARS_MAX
from builder.text.prompts import variable_names
from builder.text.values import as_text
from server.bodies import VALUES_BYTES_MAX
from tests.clients.vectors import FILL, name_of
from tests.support.catalogues import write_owner, write_version, write_withdrawn
from tests.support.clock import StopClock
from tests.support.hubs import Hub, lines_of

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SECRET = "the patient's name"


def publish(hub: Hub, name: str, body: str, **fields: Any) -> None:
    write_owner(hub.settings.content, "ada")
    write_version(hub.settings.content, "ada", name, "1.0.0", body, **fields)
    build(hub.settings, index=False)


def fill(hub: Hub, name: str, values: dict[str, str], **options: Any) -> TestResponse:
    fields = {f"v.{key}": value for key, value in values.items()}
    return hub.app.test_client().post(fill_path(name), data=fields, **options)


def fill_path(name: str) -> str:
    return f"{ACCOUNT_URL}/fill/ada/{name}/1.0.0"


def can_be_sent(case: dict[str, Any]) -> bool:
    """True for a case that a form can have: all values are text, and an empty field is no value."""
    declared = {one["name"]: one for one in case["variables"]}
    return (
        case["body"] != ""
        and {*variable_names(case["body"])} <= declared.keys()
        and all(
            isinstance(value, str) or (value is not None and "error" not in case)
            for value in case["values"].values()
        )
        and not any(
            "\r\n" in as_text(value)
            or (value == "" and (name not in declared or declared[name]["required"]))
            for name, value in case["values"].items()
        )
    )


CASES = [case for case in FILL if can_be_sent(case)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    hub = Hub(tmp_path_factory.mktemp("fill"))
    write_owner(hub.settings.content, "ada")
    for number, case in enumerate(CASES):
        write_version(
            hub.settings.content,
            "ada",
            f"case-{number}",
            "1.0.0",
            case["body"],
            variables=case["variables"],
        )
    build(hub.settings, index=False)
    yield hub
    hub.close()


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: name_of(CASES[number]))
def test_it_fills_in_as_all_clients(shared: Hub, number: int, stop_clock: StopClock):
    case = CASES[number]
    values = {name: as_text(value) for name, value in case["values"].items()}
    answer = fill(
        shared, f"case-{number}", values, environ_base={"REMOTE_ADDR": f"192.0.2.{number}"}
    )
    if "error" not in case:
        assert (answer.status_code, answer.text) == (200, case["text"])
        assert answer.content_type == "text/plain; charset=utf-8"
    else:
        assert answer.status_code == {"unknown_variable": 400}.get(case["error"], 422)


def test_a_browser_gets_pages(hub: Hub):
    publish(
        hub,
        "note",
        "Say {{what}} <i> {{times}} times.\r\n{{why}}",
        title="Note <b>",
        variables=[
            {"name": "what"},
            {"name": "times", "type": "integer", "default": 2},
            {"name": "why", "required": False},
            {"name": "how", "required": False},
        ],
    )
    page = fill(hub, "note", {"what": "", "times": "two", "why": "</textarea>"}, headers=BROWSER)
    assert page.status_code == 422 and "Note &lt;b&gt;" in page.text
    assert "Enter a value." in page.text and "Enter a whole number, such as 12." in page.text
    assert page.text.count('aria-invalid="true"') == 2 and "&lt;/textarea&gt;" in page.text
    assert 'value="two"' in page.text and 'id="filled"' not in page.text
    page = fill(hub, "note", {"what": "a\r\nb", "times": "", "why": ""}, headers=BROWSER)
    assert page.status_code == 200
    assert "autofocus>\nSay a\nb &lt;i&gt; 2 times.\r\n</textarea>" in page.text
    assert page.headers["Cache-Control"] == "no-store" and "Set-Cookie" not in page.headers
    # A program gets the text, or one line for each fault.
    assert fill(hub, "note", {}).text == "what: Enter a value.\n"
    assert fill(hub, "note", {"what": "a\r\nb"}).text == "Say a\nb <i> 2 times.\r\n"


def test_it_fills_in_the_version_that_the_page_shows(hub: Hub):
    publish(hub, "note", "Say {{what}}.")
    page = Path(hub.settings.out, "ada/note.html").read_text()
    assert f'action="/prompts{fill_path("note")}"' not in page  # the site has no service
    build(hub.settings._replace(queries=True), index=False)
    page = Path(hub.settings.out, "ada/note.html").read_text()
    root = hub.settings.base_path
    assert f'method="post" enctype="multipart/form-data" action="{root}{fill_path("note")}"' in page
    assert 'name="v.what"' in page
    answer = hub.app.test_client().get(fill_path("note"))
    assert answer.status_code == 303
    assert answer.headers["Location"] == f"{root}/ada/note/1.0.0"


@pytest.mark.parametrize("path", ["ada/note/2.0.0", "ada/none/1.0.0", "../x/1.0.0", "a%2fb/x/1"])
def test_what_is_not_there(hub: Hub, path: str):
    publish(hub, "note", "Say {{what}}.")
    for method in ("GET", "POST"):
        url = f"{ACCOUNT_URL}/fill/{path}"
        answer = hub.app.test_client().open(url, method=method, headers=BROWSER)
        assert answer.status_code == 404
        assert answer.data == Path(hub.settings.out, "404.html").read_bytes()


@pytest.mark.parametrize("version", ["1.0.0", ""], ids=["version", "prompt"])
def test_a_withdrawn_version_says_why(hub: Hub, version: str):
    publish(hub, "note", "Say {{what}}.")
    write_version(hub.settings.content, "ada", "note", "1.1.0", "Say {{what}} again.")
    write_withdrawn(hub.settings.content, "ada/note", version, note="A <b>claim</b>")
    build(hub.settings, index=False)
    page = fill(hub, "note", {"what": SECRET}, headers=BROWSER)
    assert page.status_code == 410 and page.content_type == "text/html; charset=utf-8"
    what = "Version 1.0.0" if version else "This prompt"
    assert f"{what} was withdrawn</h1>" in page.text and "A &lt;b&gt;claim" in page.text
    answer = fill(hub, "note", {"what": SECRET})
    assert (answer.status_code, answer.json["error"]["code"]) == (410, "withdrawn")
    assert "A <b>claim</b>" in answer.json["error"]["message"]


def test_limits(hub: Hub, stop_clock: StopClock):
    publish(hub, "note", "Say {{what}}. " * 10)
    assert fill(hub, "note", {"what": "x" * (VALUES_BYTES_MAX + 1)}).status_code == 413
    long = "x" * (FILLED_CHARS_MAX // 10)
    assert fill(hub, "note", {"what": long}).status_code == 413
    assert fill(hub, "note", {"what": long[1000:]}).status_code == 200
    statuses = [fill(hub, "note", {"what": "x"}).status_code for _ in range(READS_PER_MINUTE)]
    assert statuses == [200] * (READS_PER_MINUTE - 3) + [429] * 3
    refused = fill(hub, "note", {"what": "x"})
    assert int(refused.headers["Retry-After"]) > 0 and "Too many prompts" in refused.text


def test_nothing_is_kept(hub: Hub, log: io.StringIO):
    publish(hub, "note", "Say {{what}}.")
    folders = [Path(one) for one in (hub.settings.content, hub.settings.out, hub.settings.state)]

    def files() -> dict[Path, bytes]:
        return {
            path: path.read_bytes()
            for folder in folders
            for path in folder.rglob("*")
            if path.is_file()
        }

    before = files()
    assert SECRET in fill(hub, "note", {"what": SECRET}).text
    assert fill(hub, "note", {"what": "", "other": SECRET}).status_code == 400
    assert files() == before
    assert [line["status"] for line in lines_of(log)] == [200, 400]
    assert SECRET not in log.getvalue()


def test_every_host_passes_it_on_to_the_service():
    assert is_fill_url(fill_path("note")) and is_account_url(fill_path("note"))
    assert ACCOUNT_URL.strip("/") in RESERVED_OWNERS
