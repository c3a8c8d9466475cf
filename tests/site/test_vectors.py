"""The page's form fills in as all other implementations do.

A form cannot name what is unknown, has no types, and an empty field has no value. So it is tried
with the shared cases that have a text or lack a value.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from builder.pipeline.build import build
from builder.text.prompts import variable_names
from builder.text.values import as_text
from tests.clients.vectors import FILL, name_of
from tests.site.browser import Visits, keep_notes
from tests.site.conftest import Tabs
from tests.support.catalogues import settings_in, write_owner, write_version
from tests.support.servers import file_host


def can_be_typed(case: dict[str, Any]) -> bool:
    declared = {one["name"]: one for one in case["variables"]}
    return (
        case["body"] != ""  # which cannot be published
        and case.get("error") in (None, "missing_variable")
        # Publishing declares variables that are not declared.
        and {*case["values"], *variable_names(case["body"])} <= declared.keys()
        and not any(
            # Browsers end lines of fields with \n.
            "\r" in as_text(value) or (value == "" and declared[name]["required"])
            for name, value in case["values"].items()
        )
    )


CASES = {f"case-{number}": case for number, case in enumerate(FILL) if can_be_typed(case)}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = settings_in(tmp_path_factory.mktemp("vectors"))
    write_owner(settings.content, "ada")
    for name, case in CASES.items():
        write_version(
            settings.content, "ada", name, "1.0.0", case["body"], variables=case["variables"]
        )
    build(settings, index=False)
    with file_host(settings.out) as url:
        yield url


@pytest.fixture(scope="module")
def pages(tabs: Tabs, url: str) -> Visits:
    return tabs(url)


@pytest.mark.parametrize("name", CASES, ids=lambda name: name_of(CASES[name]))
def test_the_form_fills_in_as_all_others(pages, name):
    case = CASES[name]
    page: Page = pages.open(f"/ada/{name}.html")
    keep_notes(page)
    for variable, value in case["values"].items():
        control = page.locator(f'#fill [data-variable="{variable}"]')
        if value is None:
            continue
        if control.evaluate("one => one.localName") == "select":
            control.select_option(label=as_text(value))
        else:
            control.fill(as_text(value))
    page.locator("#copy-filled").click()
    expect(page.locator("#copy-filled")).to_have_text("Copied")
    left = page.locator("#left")
    if "error" in case:
        expect(left).to_contain_text("left to fill")
    else:
        expect(left).not_to_contain_text("left to fill")
        assert page.evaluate("navigator.clipboard.readText()") == case["text"]
    assert pages.end() == []
