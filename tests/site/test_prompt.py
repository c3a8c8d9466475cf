"""The page of a prompt: filling its variables in, and taking the text home, exact to the byte."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from builder.text.prompts import fill, parse_document
from tests.site.browser import DESKTOP, PHONE, keep_notes
from tests.site.catalogue import (
    ALERT,
    BOM,
    CHAT_CRLF,
    CRLF,
    CUT,
    FRONT,
    INVISIBLE,
    KINDS,
    LARGE,
    LONG_LINE,
    MARKUP,
    RUNS,
    SQL_REVIEW,
)  # fmt: skip
from tests.support.servers import Server


def clipboard(page: Page) -> str:
    return page.evaluate("navigator.clipboard.readText()")


def copy(page: Page, which: str) -> str:
    keep_notes(page)
    page.evaluate("navigator.clipboard.writeText('')")
    # Without variables, one button copies both.
    button = page.locator(f"#copy-{which}, #copy-filled").last
    button.click()
    expect(button).to_have_text("Copied")
    return clipboard(page)


def raw_text(hub: Server, repo: str) -> str:
    return hub.get(f"/api/v1/repos/{repo}/raw").content.decode()


def body(text: str) -> str:
    return parse_document(text).body


def test_the_filled_in_prompt_in_three_actions(visits, hub):
    page = visits.open("/many/echo-00")
    keep_notes(page)
    page.get_by_label("what").click()  # 1
    page.keyboard.type("it, please,")  # 2
    button = page.locator("#copy-filled")
    expect(button).to_have_accessible_name("Copy")
    button.click()  # 3
    expect(button).to_have_text("Copied")
    expect(button).to_have_attribute("aria-live", "polite")
    assert clipboard(page) == "Say it, please, again.\n"


def test_by_keyboard_alone(visits):
    page = visits.open("/many/echo-00")
    keep_notes(page)
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.get_by_label("what").evaluate("one => one === document.activeElement"):
            break
    page.keyboard.type("tabs")
    page.keyboard.press("Tab")
    expect(page.locator("#copy-filled")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#copy-filled")).to_have_text("Copied")
    assert clipboard(page) == "Say tabs again.\n"


def test_what_is_typed_is_shown_at_once(visits, hub):
    page = visits.open(f"/{KINDS}")
    marks = page.locator("mark.variable[data-name=free]")
    expect(marks).to_have_count(3)
    placeholders = marks.all_inner_texts()
    assert placeholders == ["{{free}}", "{{free}}", "{{ free }}"]
    control = page.locator("#fill [data-variable=free]")
    control.fill("so be it")
    assert marks.all_inner_texts() == ["so be it"] * 3
    control.fill("")
    assert marks.all_inner_texts() == placeholders
    expect(page.locator("#prompt")).to_contain_text("literal {{free}}")


def test_each_type_has_its_control(visits):
    page = visits.open(f"/{KINDS}")
    controls = page.locator("#fill [data-variable]").evaluate_all(
        """all => Object.fromEntries(
          all.map((one) => [one.dataset.variable, [one.localName, one.value]])
        )"""
    )
    assert controls == {
        "style": ["select", "rich"],
        "number": ["input", "7"],
        "share": ["input", ""],
        "loud": ["select", "false"],
        "list": ["textarea", '["a","b"]'],
        "free": ["textarea", ""],
    }
    # Each has a name, and is described.
    for name in controls:
        expect(page.get_by_label(name, exact=True)).to_have_attribute("data-variable", name)
    expect(page.get_by_label("free", exact=True)).to_have_accessible_description(
        re.compile("Whatever you like")
    )


def test_defaults_and_choices_are_copied(visits, hub):
    page = visits.open(f"/{KINDS}")
    page.locator("#fill summary").click()
    page.get_by_label("style", exact=True).select_option("<b>")
    page.get_by_label("loud", exact=True).select_option("true")
    page.get_by_label("number", exact=True).fill("12")
    page.get_by_label("free", exact=True).fill("two\nlines")
    values = {
        "style": "<b>", "number": "12", "loud": "true", "list": '["a","b"]', "free": "two\nlines",
    }  # fmt: skip
    assert copy(page, "filled") == fill(raw_text(hub, KINDS), values)
    assert copy(page, "raw") == raw_text(hub, KINDS)


@pytest.mark.parametrize("value", ["{{schema}}", "\\{{", "$& $1 $$ $`", ALERT, "</mark>", "\u202e"])
def test_what_is_filled_in_is_not_looked_at_again(visits, hub, value):
    page = visits.open(f"/{SQL_REVIEW}")
    page.locator("#fill [data-variable=query]").fill(value)
    expect(page.locator("mark.variable[data-name=query]").first).to_have_text(value)
    # The one that is optional and has no default is left empty; the required ones stay.
    values = {"dialect": "PostgreSQL", "query": value, "plan": ""}
    assert copy(page, "filled") == fill(body(raw_text(hub, SQL_REVIEW)), values)


@pytest.mark.parametrize("repo", [CRLF, BOM, FRONT, LARGE, INVISIBLE, CUT, MARKUP, CHAT_CRLF])
def test_the_raw_text_is_copied_as_it_was_published(visits, hub, repo):
    assert copy(visits.open(f"/{repo}"), "raw") == raw_text(hub, repo)


@pytest.mark.parametrize("repo", [CRLF, BOM, FRONT, LARGE, CHAT_CRLF, RUNS, CUT])
def test_the_filled_in_text_is_exact(visits, hub, repo):
    page = visits.open(f"/{repo}")
    name = "x" if repo in (RUNS, CUT) else "what"
    page.locator(f"#fill [data-variable={name}]").fill("Grüße\n🙂")
    assert copy(page, "filled") == fill(body(raw_text(hub, repo)), {name: "Grüße\n🙂"})


def test_hostile_variables_are_filled_in_by_name(visits, hub):
    page = visits.open(f"/{MARKUP}")
    page.locator("#fill summary").click()
    page.locator("#fill [data-variable=name]").fill("mine")
    page.locator("#fill [data-variable=__proto__]").fill("proto")
    text = copy(page, "filled")
    assert "mine" in text and "proto" in text and "{{constructor}}" in text


def test_it_works_on_a_host_with_files_alone_below_a_path(static_visits, hub):
    page = static_visits.open(f"/{SQL_REVIEW}")
    page.locator("#fill [data-variable=query]").fill("SELECT 1")
    assert "SELECT 1" in copy(page, "filled")
    assert copy(page, "raw") == raw_text(hub, SQL_REVIEW)


def test_an_older_version_is_taken_as_itself(visits, hub):
    page = visits.open(f"/{SQL_REVIEW}/1.0.0")
    raw = hub.get(f"/api/v1/repos/{SQL_REVIEW}/raw?version=1.0.0").content.decode()
    assert copy(page, "raw") == raw != raw_text(hub, SQL_REVIEW)
    page.locator("#fill [data-variable=query]").fill("SELECT 1")
    assert "SELECT 1" in copy(page, "filled")


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("path", [FRONT, f"{SQL_REVIEW}/1.0.0"])
def test_the_text_and_the_skill_are_downloaded_with_and_without_scripts(visits, hub, path, scripts):
    page = visits.open(f"/{path}", scripts=scripts)
    owner, name, *version = path.split("/")
    raw = hub.get(f"/api/v1/repos/{owner}/{name}/raw" + "".join(f"?version={v}" for v in version))
    assert download(page, "Copy", "Download") == (f"{name}.md", raw.content)
    latest = hub.get(f"/api/v1/repos/{owner}/{name}").json()["data"]["latest_version"]
    pinned = version[0] if version else latest
    skill = hub.get(f"/api/v1/repos/{owner}/{name}/versions/{pinned}/skill.md").content
    assert download(page, "Agents", "Download SKILL.md") == ("SKILL.md", skill)


def download(page: Page, tab: str, link: str) -> tuple[str, bytes]:
    page.get_by_role("radio", name=tab, exact=True).check()
    with page.expect_download() as downloading:
        page.get_by_role("link", name=link, exact=True).click()
    return downloading.value.suggested_filename, Path(downloading.value.path()).read_bytes()


def test_front_matter_is_a_part_of_the_source(visits):
    page = visits.open(f"/{FRONT}")
    assert page.locator("#prompt").inner_text().startswith("  Say ")
    front = page.get_by_label("Front matter")
    expect(front).to_be_hidden()
    page.get_by_role("radio", name="Source").check()
    expect(front).to_contain_text("model: some/model")
    expect(page.locator("#prompt")).not_to_contain_text("some/model")


def test_snippets_are_copied(visits, hub):
    page = visits.open(f"/{SQL_REVIEW}")
    keep_notes(page)
    snippets = page.locator("pre.snippet")
    buttons = snippets.locator("button.copy")
    expect(buttons).to_have_count(snippets.count())
    texts = []
    for choice in page.get_by_role("radio").all():
        choice.check()
        for summary in page.locator(".tab:visible summary").all():
            summary.click()
        for button in buttons.locator("visible=true").all():
            page.evaluate("navigator.clipboard.writeText('')")
            button.click()
            expect(button).to_have_text("Copied")
            texts.append(clipboard(page))
    assert len({*texts}) == snippets.count()
    assert f"hub pull {SQL_REVIEW}" in texts
    (curl,) = (text for text in texts if text.startswith("curl") and text.endswith("/raw.txt"))
    url = curl.split()[-1]
    assert hub.session.get(url).content.decode() == raw_text(hub, SQL_REVIEW)


@pytest.mark.parametrize("version", ["", "/1.0.0"])
def test_a_prompt_is_loaded_in_each_language(visits, hub, version, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    page = visits.open(f"/{SQL_REVIEW}{version}")
    query = f"?version={version[1:]}" if version else ""
    text = hub.get(f"/api/v1/repos/{SQL_REVIEW}/raw{query}").content.decode()

    def snippets(tab: str, language: str = "") -> list[str]:
        page.get_by_role("radio", name=tab).check()
        part = page.locator(".tab:visible")
        part = part.locator("details", has_text=language) if language else part
        return [
            one.text_content().removesuffix("Copy").strip() for one in part.locator("pre").all()
        ]

    # The code as a reader would run it.
    fetch, code = snippets("Clients", "Python 3.9")
    assert "BAKED_URL" in hub.session.get(fetch.split()[-1]).text
    loaded: dict[str, Any] = {}
    exec(code, loaded)
    assert loaded["prompt"].content == text
    fetch, code = snippets("Clients", "Deno")
    imported = code.replace('from "./hub.js"', f"= await import('{fetch.split()[-1]}')")
    script = imported.replace("import {", "const {")
    content, filled = page.evaluate(f"async () => {{ {script}\nreturn [prompt.content, text]; }}")
    assert (content, filled) == (text, loaded["text"])
    assert f'"id":"{SQL_REVIEW}{version.replace("/", "@")}"' in snippets("Assistant")[-1]
    added = snippets("Agents")
    if version:
        assert "@1.0.0 --as skill" in added[0]
    else:
        path = urlsplit(added[0].split()[-1]).path
        index = hub.get(f"{path}/.well-known/agent-skills/index.json").json()
        assert hub.get(f"{path}/SKILL.md").status_code == 200 and len(index["skills"]) == 1
    assert "hub pull" in snippets("Clients")[0]


def test_what_is_left_to_fill_is_told(visits):
    page = visits.open(f"/{SQL_REVIEW}")
    keep_notes(page)
    left = page.locator("#left")
    expect(left).to_have_text("3 left to fill")
    page.get_by_label("purpose").fill("a report")
    expect(left).to_have_text("2 left to fill")
    page.get_by_label("query").fill("SELECT 1")
    page.get_by_label("schema").fill("none")
    expect(left).to_have_text("Filled in")
    for button in page.locator("#copy-filled, #copy-raw").all():
        button.click()
        expect(button).to_have_text("Copied")


@pytest.mark.parametrize(
    "repo, buttons",
    [
        (LONG_LINE, ["Copy"]),
        (SQL_REVIEW, ["Copy", "Copy without values", "Link with these values"]),
        (FRONT, ["Copy", "Copy without values", "Link with these values"]),
    ],
)
def test_there_are_buttons_only_where_they_differ(visits, repo, buttons):
    page = visits.open(f"/{repo}")
    assert page.locator(".use button:visible").all_inner_texts() == buttons


@pytest.mark.parametrize("viewport", [PHONE, DESKTOP])
def test_the_main_button_stays_in_sight_along_a_long_prompt(visits, viewport):
    page = visits.open(f"/{LARGE}", viewport=viewport)
    height = page.locator("#prompt").evaluate("one => one.clientHeight")
    page.evaluate("(top) => scrollTo(0, top)", height / 2)
    expect(page.locator("#copy-filled")).to_be_in_viewport(ratio=1)
    if viewport == DESKTOP:
        expect(page.get_by_label("what")).to_be_in_viewport(ratio=1)


def test_on_a_phone_the_fields_are_before_the_text_and_facts_after_it(visits):
    page = visits.open(f"/{SQL_REVIEW}", viewport=PHONE)
    boxes = [page.locator(one).bounding_box() for one in ("#fill", "#prompt", "#facts")]
    assert [box["y"] for box in boxes] == sorted(box["y"] for box in boxes)
    for link, part in (("Text", "#prompt"), ("Details", "#facts")):
        page.locator(".glance").get_by_role("link", name=link).click()
        expect(page.locator(part)).to_be_in_viewport()


def test_optional_variables_are_folded_until_they_are_wanted(visits):
    page = visits.open(f"/{KINDS}")
    control = page.get_by_label("number", exact=True)
    expect(control).to_be_hidden()
    page.locator("mark.variable[data-name=number]").click()
    expect(control).to_be_focused()


def test_values_are_in_the_fragment_of_a_link_that_fills_them_in(visits, hub):
    page = visits.open(f"/{KINDS}")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.get_by_label("free", exact=True).fill("one & two\n=#")
    page.locator("#fill summary").click()
    page.get_by_label("loud", exact=True).select_option("true")
    keep_notes(page)
    page.locator("#copy-link").click()
    expect(page.locator("#copy-link")).to_have_text("Copied")
    link = clipboard(page)
    assert link.startswith(f"{visits.url}/{KINDS}#")
    # What is as the author left it, is not in the link, and no request had a value.
    assert "style" not in link and not any("two" in url for url in requests)
    other = visits.open(link.removeprefix(visits.url))
    expect(other.get_by_label("free", exact=True)).to_have_value("one & two\n=#")
    expect(other.get_by_label("loud", exact=True)).to_have_value("true")
    expect(other.get_by_label("style", exact=True)).to_have_value("rich")
    values = {
        "style": "rich", "number": "7", "loud": "true", "list": '["a","b"]',
        "free": "one & two\n=#",
    }  # fmt: skip
    assert copy(other, "filled") == fill(raw_text(hub, KINDS), values)


def test_a_fragment_that_names_a_part_fills_in_nothing(visits):
    page = visits.open(f"/{KINDS}#versions")
    expect(page.locator("#left")).to_have_text("2 left to fill")
    assert page.url.endswith("#versions")
    field = page.get_by_label("free", exact=True)
    field.fill("typed")
    page.evaluate("location.hash = 'free'")
    page.evaluate("new Promise((done) => setTimeout(done))")  # the event has been handled
    expect(field).to_have_value("typed")


KEEP_OPENED = """() => {
  globalThis.opened = new Promise((resolve) => { globalThis.open = (...all) => resolve(all); });
}"""


@pytest.mark.parametrize("repo, value", [("many/echo-00", "it & that"), (CUT, "x"), (CRLF, "ü")])
def test_a_link_opens_an_assistant_with_the_filled_text(visits, hub, repo, value):
    page = visits.open(f"/{repo}")
    page.locator("#fill [data-variable]").first.fill(value)
    page.get_by_role("radio", name="Assistant").check()
    page.evaluate(KEEP_OPENED)
    keep_notes(page)
    page.get_by_role("link", name="Open in Claude").click()
    address, target, features = page.evaluate("() => opened")
    name = page.locator("#fill [data-variable]").first.get_attribute("data-variable")
    text = fill(body(raw_text(hub, repo)), {name: value}).strip()
    assert (target, features) == ("_blank", "noopener")
    if repo == CUT:  # The page shows a part of it, and the link must not cut it.
        assert address == "https://claude.ai"
        expect(page.locator("#copied")).to_contain_text("It is copied: paste it there")
        assert clipboard(page) == text
    else:
        assert address == "https://claude.ai/new?q=" + quote(text, safe="!'()*~")


def test_on_a_phone_a_tab_shows_what_it_opens(visits):
    page = visits.open(f"/{SQL_REVIEW}", viewport=PHONE)
    page.get_by_text("Assistant", exact=True).click()
    # Below the header, so the bar at the foot covers little of it.
    assert page.locator("fieldset.tabs").first.bounding_box()["y"] < PHONE["height"] / 4
