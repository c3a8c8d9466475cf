"""What changes for callers, as the browser finds it: the rule of the pages of versions."""

import json

from playwright.sync_api import Page, expect

from builder.text.messages import parse_messages
from tests.builder.text.test_interface import CASES, Published
from tests.site.catalogue import CALLED
from tests.site.comparing import COMPARE, expect_compared


def record(version: Published) -> dict[str, object]:
    """The fields of a record, as the API gives them."""
    variables = [
        {"type": "string", "default": None, "enum": None}
        | {"required": fields.get("default") is None}
        | fields
        for fields in version.variables
    ]
    messages = [1] if parse_messages(version.text) is not None else None
    parameters = version.parameters
    return {
        "body": version.text, "messages": messages, "variables": variables,
        "parameters": parameters,
    }  # fmt: skip


def test_the_browser_has_the_rule_of_the_build(visits):
    page = visits.open(COMPARE)
    for case, (before, after, expected) in CASES.items():
        found = page.evaluate(
            """async ([before, after]) => {
              const { callerChanges } = await import(new URL("/assets/callers.js", location));
              return callerChanges(JSON.parse(before), JSON.parse(after))
                .map(({ kind, name, old, now }) => [kind, name, old, now]);
            }""",
            [json.dumps(record(before)), json.dumps(record(after))],
        )
        assert [tuple(change) for change in found] == expected, case


def box(page: Page) -> str:
    return "".join(page.locator(".callers").text_content().split())


def test_the_box_is_that_of_the_page_of_the_version(visits):
    page = visits.open(f"/{CALLED}/compare?from=1.2.0&to=1.3.0")
    expect_compared(page, "1.2.0", "1.3.0")
    compared = box(page)
    assert "limitawidertype:integerstringdefault:2012model" in compared
    assert "becauseofthefirst5" in compared and "Itsnumbersaysminor." in compared
    page = visits.open(f"/{CALLED}/1.3.0")
    assert box(page) == compared


def test_the_way_back_is_judged_for_itself(visits):
    page = visits.open(f"/{CALLED}/compare?from=1.3.0&to=1.2.0")
    expect_compared(page, "1.3.0", "1.2.0")
    expect(page.locator(".callers")).to_contain_text("one text now, not messages")
    expect(page.locator(".callers")).not_to_contain_text("Its number")
