"""The files of a version in the editor, in a real browser: with scripts and without."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from builder.model.request_bodies import PUBLICATION_BYTES_MAX
from builder.model.version_files import BYTES_MAX, FILES_MAX
from tests.publisher.web.pages.conftest import People, Visitor
from tests.publisher.web.pages.test_editor_browser import (
    FIELD,
    context_of,
    expect_kept,
    faults,
    preview,
    shown,
    text_of,
)
from tests.publisher.web.pages.test_editor_files import IMAGE, RUN, files_of
from tests.site.test_axe import COLOUR_RULES, axe, violations_both_ways

__all__ = ["axe", "faults"]  # fixtures
CHOICE = "Text in the field"


@pytest.fixture
def writer(people: People) -> Visitor:
    """A user with a prompt that has files."""
    visitor = people.guest()
    people.publish_story(visitor, "Run it.", files=[RUN, IMAGE])
    return visitor


@pytest.fixture
def page(browser: Browser, people: People, writer: Visitor, faults: list[str]) -> Iterator[Page]:
    """The editor, open on that prompt."""
    context = context_of(browser, people, writer, faults)
    page = context.new_page()
    page.goto(edit_url(people, writer))
    yield page
    context.close()


def edit_url(people: People, writer: Visitor) -> str:
    return f"{people.url}/account/prompts/{writer.handle}/story"


def upload(page: Page, name: str, data: bytes, field: str = "#upload") -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    page.locator(field).set_input_files(file)


def publish(page: Page, version: str) -> None:
    page.get_by_role("button", name=f"Publish {version}").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("story")
    expect(page.get_by_role("main")).to_contain_text(f"{version} is published.")


def choose(page: Page, text: str) -> None:
    """Show a text in the field, and wait until it is there."""
    page.get_by_label(CHOICE).select_option(label=text)
    name = text if text == "Prompt" else f"File {text}"
    expect(text_of(page)).to_have_attribute("aria-label", name)


def test_add_replace_remove_and_make_executable(
    page: Page, people: People, writer: Visitor
) -> None:
    upload(page, "new.md", b"New.\n")
    expect(page.locator("#files-size")).to_have_text("3 files, 281 of 5,000,000 bytes")
    expect(page.locator("#unsaved")).to_be_hidden()  # the page has all that the browser kept
    page.get_by_label("Executable: new.md").check()
    page.get_by_label("Remove: image.png").check()
    page.get_by_label("Folder for these files").fill("scripts")
    upload(page, "run.sh", b"echo ho\n")
    preview(page)
    for words in ("new.md added", "image.png removed", "scripts/run.sh changed"):
        expect(page.locator("#differs details").filter(has_text=words)).to_have_count(1)
    publish(page, "1.0.1")
    assert files_of(people, writer, "1.0.1") == {
        "new.md": (b"New.\n", True),
        "scripts/run.sh": (b"echo ho\n", True),
    }


def test_edit_texts_of_files_in_the_field_of_the_prompt(
    page: Page, people: People, writer: Visitor
) -> None:
    choose(page, "scripts/run.sh")
    expect(text_of(page)).to_contain_text("echo hi")
    text_of(page).press("Control+End")
    page.keyboard.type("echo {{ho}}")
    page.reload()
    expect(page.locator(FIELD)).to_have_value("Run it.")
    page.get_by_role("button", name="Use it").click()
    choose(page, "scripts/run.sh")
    expect(text_of(page)).to_contain_text("echo {{ho}}")
    choose(page, "Prompt")
    expect(text_of(page)).to_have_text("Run it.")
    # Another field has another history: what was typed in the file stays there.
    text_of(page).press("Control+z")
    expect(text_of(page)).to_have_text("Run it.")
    text_of(page).press("Control+End")
    page.keyboard.type(" Twice.")
    page.get_by_role("button", name="New text file").click()
    page.keyboard.type("docs/new.md")
    choose(page, "docs/new.md")
    expect(shown(page)).to_have_text("Run it. Twice.")
    text_of(page).press("Control+End")
    page.keyboard.type("New é")
    preview(page)
    expect(page.locator(FIELD)).to_have_value("Run it. Twice.")
    publish(page, "1.0.1")
    assert files_of(people, writer, "1.0.1") | {"image.png": None} == {
        "docs/new.md": ("New é".encode(), False),
        "image.png": None,
        "scripts/run.sh": (b"#!/bin/sh\r\necho hi\r\necho {{ho}}", True),
    }


def test_a_plain_field_edits_files_too(page: Page, people: People, writer: Visitor) -> None:
    page.get_by_role("button", name="Use a plain text field").click()
    page.get_by_label(CHOICE).select_option(label="scripts/run.sh")
    field = page.get_by_label("File scripts/run.sh")
    expect(field).to_have_value("#!/bin/sh\necho hi\n")
    field.fill("echo plain\n")
    preview(page)
    publish(page, "1.0.1")
    assert files_of(people, writer, "1.0.1")["scripts/run.sh"] == (b"echo plain\r\n", True)


def test_a_binary_file_is_refused_in_the_field(page: Page) -> None:
    page.get_by_label(CHOICE).select_option(label="image.png")
    told = page.locator("#files-told")
    expect(told).to_have_text("image.png is not a text. Replace it instead.")
    expect(page.get_by_label(CHOICE)).to_have_value("")
    upload(page, "latin.txt", b"caf\xe9")
    page.get_by_label(CHOICE).select_option(label="latin.txt")
    expect(told).to_contain_text("latin.txt is not a text")
    expect(text_of(page)).to_have_text("Run it.")


def test_a_file_that_cannot_be_read_is_not_shown_as_empty(page: Page, faults: list[str]) -> None:
    page.route("**/files/**", lambda route: route.fulfill(status=503))
    page.get_by_label(CHOICE).select_option(label="scripts/run.sh")
    expect(page.locator("#files-told")).to_contain_text("cannot be read right now")
    expect(text_of(page)).to_have_text("Run it.")
    faults[:] = [fault for fault in faults if "503" not in fault]


def test_one_button_replaces_a_file(page: Page, people: People, writer: Visitor) -> None:
    choose(page, "scripts/run.sh")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Replace: scripts/run.sh").click()
    other = {"name": "other.txt", "mimeType": "text/plain", "buffer": b"other"}
    chooser.value.set_files(other)
    # The field shows the prompt again, as what it showed is no longer there.
    expect(text_of(page)).to_have_text("Run it.")
    preview(page)
    publish(page, "1.0.1")
    assert files_of(people, writer, "1.0.1")["scripts/run.sh"] == (b"other", True)


def test_limits_are_checked_before_anything_is_sent(page: Page, tmp_path: Path) -> None:
    told = page.locator("#files-told")
    upload(page, "big.bin", bytes(BYTES_MAX))
    expect(told).to_have_text(
        "big.bin has 5,000,000 bytes and is not added: a version has at most 200 files and "
        "5,000,000 bytes of them. Remove some first."
    )
    expect(page.locator("#files-size")).to_contain_text("2 files, 276 of")
    page.get_by_label("Remove: image.png").check()
    upload(page, "fits.bin", bytes(BYTES_MAX - 20))
    expect(page.locator("#files-size")).to_have_text("2 files, 5,000,000 of 5,000,000 bytes")
    page.get_by_label("Remove: fits.bin").check()
    paths = [tmp_path / f"{number}.txt" for number in range(FILES_MAX)]
    for path in paths:
        path.touch()
    page.locator("#upload").set_input_files(paths)
    expect(told).to_contain_text("199.txt has 0 bytes and is not added")
    expect(page.locator("#files-size")).to_contain_text("200 files")


def test_a_form_that_is_too_large_is_not_sent(page: Page) -> None:
    upload(page, "folder.zip", bytes(PUBLICATION_BYTES_MAX), "#zip")
    expect(page.locator("#unsaved")).to_contain_text(f"and {PUBLICATION_BYTES_MAX:,} is the limit")


def test_rename_a_file_and_edit_it(page: Page, people: People, writer: Visitor) -> None:
    page.locator("summary", has_text="scripts/run.sh").click()
    # Nothing lies over the field.
    page.locator("[open] > [name=file-path]").click()
    page.get_by_label("Path").last.fill("bin/run.sh")
    expect(page.locator(".file-state").last).to_have_text("renamed")
    page.get_by_label("Path").last.fill("scripts/run.sh ")
    expect(page.locator(".file-state").last).to_have_text("")
    page.get_by_label("Path").last.fill("bin/run.sh")
    choose(page, "bin/run.sh")
    expect(text_of(page)).to_contain_text("echo hi")
    text_of(page).press("Control+End")
    page.keyboard.type("echo ho")
    preview(page)
    expect(page.locator(".file-state").last).to_have_text("changed")
    publish(page, "1.0.1")
    found = files_of(people, writer, "1.0.1")
    assert found["bin/run.sh"] == (b"#!/bin/sh\r\necho hi\r\necho ho", True)
    assert found.keys() == {"bin/run.sh", "image.png"}


def test_a_wrong_path_is_named(page: Page, faults: list[str]) -> None:
    upload(page, "a b.md", b"x")
    page.locator("[value=preview]").first.evaluate("it => it.click()")
    expect(page.get_by_role("alert")).to_contain_text("“a b.md” cannot be a path")
    page.get_by_label("Path").last.fill("a-b.md")
    preview(page)
    faults[:] = [fault for fault in faults if "422" not in fault]


def test_the_browser_keeps_files_while_one_types(
    page: Page, people: People, writer: Visitor, browser: Browser
) -> None:
    upload(page, "kept.bin", b"\0kept")
    page.get_by_label("Remove: image.png").check()
    choose(page, "scripts/run.sh")
    text_of(page).fill("echo kept")
    expect_kept(page, "kept.bin", "echo kept")
    page.goto(edit_url(people, writer))
    expect(page.locator("#files-size")).to_contain_text("2 files")
    page.get_by_role("button", name="Use it").click()
    expect(page.locator("#files-size")).to_have_text("2 files, 14 of 5,000,000 bytes")
    preview(page)
    publish(page, "1.0.1")
    assert files_of(people, writer, "1.0.1") == {
        "kept.bin": (b"\0kept", False),
        "scripts/run.sh": (b"echo kept", True),
    }
    assert not any("writing" in key for key in page.evaluate("Object.keys(localStorage)"))


def test_a_browser_without_room_says_so_and_keeps_the_text(page: Page) -> None:
    page.evaluate(
        """() => {
          const set = Storage.prototype.setItem;
          Storage.prototype.setItem = function (key, value) {
            if (value.length > 10_000) throw new DOMException("full", "QuotaExceededError");
            set.call(this, key, value);
          };
        }"""
    )
    upload(page, "large.bin", bytes(20_000))
    expect(page.locator("#unsaved")).to_contain_text("has no room to keep your files")
    text_of(page).fill("Kept text.")
    expect_kept(page, "Kept text.")


def test_axe_finds_nothing(page: Page, axe: str) -> None:
    upload(page, "new.md", b"New.\n")
    choose(page, "scripts/run.sh")
    text_of(page).fill("echo ho")
    page.evaluate(axe)
    assert violations_both_ways(page, *COLOUR_RULES) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    preview(page)
    page.evaluate(axe)
    assert violations_both_ways(page, *COLOUR_RULES) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
