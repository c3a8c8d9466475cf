"""A version as a file of another format, made in the browser by the rules of `write_as`."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Download, Page, expect

from builder.render.pages import ASSETS
from builder.text.formats import SUFFIXES, write_as
from tests.clients.exports import read_cases
from tests.node import PROGRAMS
from tests.site.browser import PHONE
from tests.site.catalogue import BOM, CHAT_CRLF, COMMIT_MESSAGE, FRONT, KINDS, LARGE, SQL_REVIEW
from tests.support.servers import DEADLINE_SECONDS

# Formats that the script writes; a skill is a file of the site.
MADE = ("dotprompt", "prompty")
CASES = [case for case in read_cases() if case["format"] in MADE]
# Each case's text and losses. `readJson` and `writeAs` are the script's own.
WRITE_ALL = """readJson(cases).map((one) => writeAs(one.get("record"), one.get("format")))"""
IN_NODE = f"""
import {{ readFileSync }} from "node:fs";
const [, script] = process.argv;
const {{ readJson, writeAs }} = await import(script);
const cases = readFileSync(0, "utf8");
console.log(JSON.stringify({WRITE_ALL}));
"""
IN_BROWSER = f"""async (cases) => {{
  const {{ readJson, writeAs }} = await import("/assets/download.js");
  return {WRITE_ALL};
}}"""


def check(written: list[dict[str, Any]]) -> None:
    for case, made in zip(CASES, written, strict=True):
        assert made == {key: case[key] for key in ("text", "losses")}, case["name"]


def test_the_cases_that_all_implementations_pass_in_node(installed_tools):
    done = subprocess.run(
        [PROGRAMS / "node", "--input-type=module", "--eval", IN_NODE,
         Path(ASSETS, "download.js")],
        input=json.dumps(CASES), capture_output=True, text=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check(json.loads(done.stdout))


def test_the_cases_that_all_implementations_pass(visits):
    page = visits.open("/tags")
    check(page.evaluate(IN_BROWSER, json.dumps(CASES)))


def test_numbers_and_the_order_of_keys_are_those_of_the_record(visits):
    """JavaScript's objects and numbers would change them."""
    record = read_cases()[0]["record"]
    record["parameters"] = {
        "b": 1.0, "1": 2**63 - 1, "__proto__": {"2": [1e-05, 1.2345678901234568e20], "1": -0.0},
        "max_tokens": 4096.0, "constructor": "\u2028 {\\\"n1\\\"} \\", "0": [{"0": []}, {}],
    }  # fmt: skip
    cases = [{"record": record, "format": format} for format in MADE]
    written = visits.open("/tags").evaluate(IN_BROWSER, json.dumps(cases))
    for case, made in zip(cases, written, strict=True):
        assert (made["text"], made["losses"]) == write_as(record, case["format"])


def open_menu(page: Page) -> None:
    page.get_by_role("radio", name="Formats").check()


def download(page: Page, name: str) -> Download:
    with page.expect_download() as downloading:
        page.get_by_role("group", name="Download as").get_by_text(name, exact=True).click()
    return downloading.value


@pytest.mark.parametrize("repo", [SQL_REVIEW, COMMIT_MESSAGE, CHAT_CRLF, BOM, FRONT, LARGE, KINDS])
def test_each_format_is_saved_with_what_it_cannot_hold(visits, hub, repo):
    page = visits.open(f"/{repo}", viewport=PHONE)
    latest = hub.get(f"/api/v1/repos/{repo}").json()["data"]["latest_version"]
    record = hub.get(f"/api/v1/repos/{repo}/versions/{latest}").json()["data"]
    for control in page.locator("#fill [data-variable]:is(textarea, input):visible").all():
        control.fill("7")
    open_menu(page)
    status = page.locator(".download [role=status]")
    for format in MADE:
        file = download(page, format)
        text, losses = write_as(record, format)
        assert file.suggested_filename == record["name"] + SUFFIXES[format]
        assert Path(file.path()).read_bytes() == text.encode()
        expect(status).to_contain_text(f"Downloaded {file.suggested_filename}.")
        for loss in losses:
            expect(status).to_contain_text(loss)
        assert losses or "cannot hold" not in (status.text_content() or "")
    file = download(page, "Skill")
    assert file.suggested_filename == "SKILL.md"
    assert Path(file.path()).read_bytes() == hub.get(f"/{repo}/{latest}/SKILL.md").content


def test_an_older_version_is_saved_as_itself_by_keyboard(visits, hub):
    page = visits.open(f"/{SQL_REVIEW}/1.0.0")
    record = hub.get(f"/api/v1/repos/{SQL_REVIEW}/versions/1.0.0").json()["data"]
    open_menu(page)
    page.get_by_role("radio", name="Formats").focus()
    for _ in range(2):  # the text itself, then the first of the formats
        page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="dotprompt")).to_be_focused()
    with page.expect_download() as downloading:
        page.keyboard.press("Enter")
    assert Path(downloading.value.path()).read_text("utf-8") == write_as(record, "dotprompt")[0]


@pytest.mark.parametrize("scripts", [True, False])
def test_markdown_is_the_published_text_and_needs_no_script(visits, hub, scripts):
    page = visits.open(f"/{FRONT}", scripts=scripts)
    open_menu(page)
    shown = page.get_by_role("group", name="Download as").locator("a, button").all()
    names = [one.text_content() for one in shown if one.is_visible()]
    assert names == ["Markdown", *(MADE if scripts else ()), "Skill"]
    expect(page.get_by_text("Turn on JavaScript for more formats.")).to_be_visible(
        visible=not scripts
    )
    file = download(page, "Markdown")
    assert file.suggested_filename == "front.md"
    assert Path(file.path()).read_bytes() == hub.get(f"/api/v1/repos/{FRONT}/raw").content


def test_it_works_on_a_host_with_files_alone_below_a_path(static_visits, hub):
    page = static_visits.open(f"/{SQL_REVIEW}")
    open_menu(page)
    assert b"Review this {{dialect}} query." in Path(download(page, "Skill").path()).read_bytes()


def test_its_script_is_loaded_for_a_download_alone(visits):
    requested: list[str] = []
    page = visits.open("/tags")
    page.on("request", lambda request: requested.append(request.url.rpartition("/")[2]))
    page.goto(f"{visits.url}/{SQL_REVIEW}", wait_until="networkidle")
    open_menu(page)
    assert "prompt.js" in requested and not {"download.js", "1.1.0.json"} & {*requested}
    download(page, "prompty")
    assert {"download.js", "1.1.0.json"} <= {*requested}


def test_a_record_that_cannot_be_loaded_is_told_and_asked_again(visits):
    page = visits.open(f"/{SQL_REVIEW}")
    status = page.locator(".download [role=status]")
    page.route("**/1.1.0.json", lambda route: route.fulfill(status=503))
    open_menu(page)
    page.get_by_role("button", name="prompty").click()
    expect(status).to_have_text("The text could not be loaded. Try again in a moment.")
    page.unroute("**/1.1.0.json")
    download(page, "prompty")
    expect(status).to_have_text(re.compile("^Downloaded sql-review.prompty"))
    assert all(one.startswith("console: Failed to load") for one in visits.faults)
    visits.faults.clear()
